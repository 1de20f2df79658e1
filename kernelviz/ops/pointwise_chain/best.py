"""The variant that a user of a chain of element-wise steps gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, elements_a_multiprocessor, triton_vectorises, whole_vectors
from kernelviz.ops.pointwise_chain.at_once import at_once

FEW = 2**19
"""H200, 4 steps: 2^19 elements take 2.6 us in Triton and 2.8 packed; 2^21 take 4.8 and 4.5."""
FEW_ELEMENTS, MOST_STEPS = 2**16, 16
"""Up to which `cuda_scalars_fused` has one element a thread. H200, bf16, 8 steps: 451 take 1.25 us, 1.89 packed and 2.51 in
Triton; fp16, one step: 33 take 1.22 and 1.23 in Triton, 32,768 take 1.48 and 1.40."""
FEW_STEPS = 4
"""H200, bf16, one number a step: 2^27 elements take 128 us in Triton and 129 packed in 4 steps, 232 and 128 in 16."""
FEW_IN_PIECES = 2**18
"""The same for fp32 rows that are not whole 16-byte vectors, which only CUDA C++ reads as vectors. Not measured yet."""


def chain(problem: Problem, card: Card) -> tuple[str, ...]:
    """CUDA C++ with the factors of all steps loaded at once for at most 16 steps of so few elements that about 1000 threads a
    multiprocessor have all of them, with packed pairs of 16-bit floats where rows are whole pairs; packed pairs also for more
    than 2^19 elements; Triton for other 16-bit floats and for fp32, unless it has more than 2^18 elements in rows that are not
    whole vectors.

    Triton loads the factors of a step when it starts: k latencies of memory. H200, fp32: 631 rows of one element and 3 steps took
    1.64 us in Triton, 1.22 in torch.compile, which loads all at once; the limits of CUDA C++ are estimates.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"m": 8192, "n": 4096, "k": 4}
    >>> [chain(Problem(op="pointwise_chain", sizes={**sizes, "m": m}, dtype="bf16"), H200)[0] for m in (8, 300, 8192)]
    ['cuda_fused_packed', 'cuda_fused_packed', 'cuda_fused_packed']
    >>> chain(Problem(op="pointwise_chain", sizes={"m": 631, "n": 1, "k": 3}, dtype="fp32"), H200)[0]
    'cuda_fused'
    >>> chain(Problem(op="pointwise_chain", sizes={"m": 2, "n": 181569, "k": 1}, dtype="fp32"), H200)[0]
    'cuda_fused'
    """
    m, n, k = (problem.sizes[axis] for axis in "mnk")
    elements = m * n
    if at_once(m, n, k, dtype_named(problem.dtype).itemsize_bytes) is not None:
        pairs = problem.dtype != "fp32" and n % 2 == 0
        return ("cuda_fused_packed", "cuda_fused", "triton_fused") if pairs else ("cuda_fused", "triton_fused")
    if problem.dtype == "fp32" and elements > FEW_IN_PIECES and not whole_vectors(problem, "n"):
        return ("cuda_fused", "triton_fused")
    packed = problem.dtype != "fp32" and elements > FEW
    return ("cuda_fused_packed", "triton_fused") if packed else ("triton_fused", "cuda_fused")


def scalar_chain(problem: Problem, card: Card) -> tuple[str, ...]:
    """One kernel of CUDA C++ for up to 2^16 elements and two to 16 steps, whose numbers it loads at once; else one of Triton for
    at most four steps, and one of CUDA C++ for more, with packed pairs of 16-bit floats, as well as for more than 1024 elements
    a multiprocessor that are no multiple of 16.

    Triton computes in fp32, which takes longer than memory from more steps on, and loads no vectors under a mask of another
    length.

    >>> from kernelviz.ops.catalog.best import H200
    >>> cases = ((2**27, 4, "bf16"), (2**27, 8, "bf16"), (2**27, 8, "fp32"), (2**27 + 1, 4, "bf16"), (33, 2, "bf16"))
    >>> sizes = [({"n": n, "k": k}, dtype) for n, k, dtype in cases]
    >>> [scalar_chain(Problem(op="pointwise_chain_scalar", sizes=one, dtype=dtype), H200)[0] for one, dtype in sizes]
    ['triton_scalars_fused', 'cuda_scalars_packed', 'cuda_scalars_fused', 'cuda_scalars_packed', 'cuda_scalars_fused']
    """
    n = problem.sizes["n"]
    if n <= FEW_ELEMENTS and 1 < problem.sizes["k"] <= MOST_STEPS:
        return ("cuda_scalars_fused", "triton_scalars_fused", "cuda_scalars_packed")
    loads_well = triton_vectorises(n) or elements_a_multiprocessor(n, card) <= 1024
    if problem.sizes["k"] <= FEW_STEPS and loads_well:
        return ("triton_scalars_fused", "cuda_scalars_packed", "cuda_scalars_fused")
    if problem.dtype == "fp32" and problem.sizes["k"] > FEW_STEPS:
        return ("cuda_scalars_fused", "triton_scalars_fused")
    return ("cuda_scalars_packed", "cuda_scalars_fused", "triton_scalars_fused")
