"""The variant that a user of a chain of element-wise steps gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, elements_a_multiprocessor, triton_vectorises, whole_vectors

FEW = 2**19
"""H200, 4 steps: 2^19 elements take 2.6 us in Triton and 2.8 packed; 2^21 take 4.8 and 4.5."""
FEW_STEPS = 4
"""Steps of fp32 arithmetic that take no longer than moving 16-bit elements."""


def chain(problem: Problem, card: Card) -> tuple[str, ...]:
    """Packed pairs of 16-bit floats in CUDA C++; Triton for fp32, up to 2^19 elements, and for rows that are no whole 16-byte
    vectors.

    Of such rows CUDA C++ takes an element a thread, so that no pairs are packed.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8, 4096), (8192, 4096), (8192, 4097))
    >>> sizes = [{"m": m, "n": n, "k": 4} for m, n in shapes]
    >>> [chain(Problem(op="pointwise_chain", sizes=one, dtype="bf16"), H200)[0] for one in sizes]
    ['triton_fused', 'cuda_fused_packed', 'triton_fused']
    """
    many = problem.sizes["m"] * problem.sizes["n"] > FEW
    packed = problem.dtype != "fp32" and many and whole_vectors(problem, "n")
    return ("cuda_fused_packed", "triton_fused") if packed else ("triton_fused", "cuda_fused")


def scalar_chain(problem: Problem, card: Card) -> tuple[str, ...]:
    """One kernel of Triton for at most four steps, and one of CUDA C++ for more, in packed pairs of 16-bit floats, as well as
    for more than 1024 elements a multiprocessor that are no multiple of 16.

    Triton computes in fp32, which takes longer than memory from more steps on, and loads no vectors under a mask of another
    length.

    >>> from kernelviz.ops.catalog.best import H200
    >>> cases = ((2**27, 4), (2**27, 8), (2**27 + 1, 4), (33, 1))
    >>> sizes = [{"n": n, "k": k} for n, k in cases]
    >>> [scalar_chain(Problem(op="pointwise_chain_scalar", sizes=one, dtype="bf16"), H200)[0] for one in sizes]
    ['triton_scalars_fused', 'cuda_scalars_packed', 'cuda_scalars_packed', 'triton_scalars_fused']
    """
    n = problem.sizes["n"]
    loads_well = triton_vectorises(n) or elements_a_multiprocessor(n, card) <= 1024
    if problem.sizes["k"] <= FEW_STEPS and loads_well:
        return ("triton_scalars_fused", "cuda_scalars_packed", "cuda_scalars_fused")
    return ("cuda_scalars_packed", "cuda_scalars_fused", "triton_scalars_fused")
