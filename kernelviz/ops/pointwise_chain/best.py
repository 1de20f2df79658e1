"""The variant that a user of a chain of element-wise steps gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, whole_vectors

FEW_OF_ROWS, SOME_OF_ROWS = 2**13, 2**20
"""H200: 4 rows of 1198 fp32 take 1.40 us in 13 steps in CUDA C++ and 1.65 in torch.compile, whose code is that of the kernel
for the sizes; 5 rows of 11,419 bf16 in 10 steps 1.96 and 1.83; 9 rows of 68,758 fp32 in 3 steps 4.29, and 3.69; 9 rows of
120,450 fp16 in one step 2.89 and 3.05."""
FEW_STEPS, MOST_STEPS = 2, 16
"""H200: 49 rows of 143 fp16 take 1.39 us in 2 steps in CUDA C++ and 1.30 in torch.compile. More than 16 steps are no kernel
for the sizes."""
FEW_ROWS = 16
"""H200, fp16: 10 rows of 444,807 take 22.5 us in Triton in 9 steps and 36.5 packed, 25 of 1,055,930 46.2 and 41.1 in 3
steps."""
FEW_NUMBERS, SOME_NUMBERS = 2**12, 2**17
"""Elements with one number a step. H200, bf16, 6 steps: 3195 take 1.26 us in CUDA C++ and 1.29 in torch.compile; fp16, 5
steps: 16,354 1.49 and 1.35; fp16, 2 steps: 314,409 1.78 packed and 1.92."""


def chain(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton for the sizes up to 16 steps of at most 2^20 elements, but CUDA C++ for more than two steps of at most 2^13;
    CUDA C++ for more steps or elements, but Triton's loop for at least 3 steps of fewer than 16 rows that are not whole
    16-byte vectors; CUDA C++ packs 16-bit floats in pairs, of at most 2^13 elements where rows are whole pairs.

    The kernel of CUDA C++ loads the factors of rows that are not whole vectors in two pieces, and shares them only between
    rows that begin at the same place of a vector.

    >>> from kernelviz.ops.catalog.best import H200
    >>> cases = ((8192, 4096, 4), (300, 64, 4), (631, 1, 3), (2, 181569, 1), (3, 3_682_465, 3), (100, 64, 3))
    >>> problems = [Problem(op="pointwise_chain", sizes=dict(zip("mnk", case)), dtype="bf16") for case in cases]
    >>> [chain(problem, H200)[0] for problem in problems]
    ['cuda_fused_packed', 'triton_known_size', 'cuda_fused', 'triton_known_size', 'triton_fused', 'cuda_fused_packed']
    """
    m, n, k = (problem.sizes[axis] for axis in "mnk")
    half = problem.dtype != "fp32"
    if k <= MOST_STEPS and m * n <= SOME_OF_ROWS:
        if m * n > FEW_OF_ROWS or k <= FEW_STEPS:
            return ("triton_known_size", "cuda_fused")
        return (
            ("cuda_fused_packed", "cuda_fused", "triton_fused")
            if half and n % 2 == 0
            else ("cuda_fused", "triton_fused")
        )
    if m < FEW_ROWS and k > FEW_STEPS and not whole_vectors(problem, "n"):
        return ("triton_fused", "cuda_fused")
    return ("cuda_fused_packed", "cuda_fused") if half else ("cuda_fused", "triton_fused")


def scalar_chain(problem: Problem, card: Card) -> tuple[str, ...]:
    """One kernel of CUDA C++ that loads all numbers at once for at most 16 steps of up to 2^12 elements; up to 2^17 elements
    Triton for the size, whose one step is a loop of Triton; else CUDA C++, with packed pairs of 16-bit floats.

    Triton computes in fp32, which takes longer than memory in many steps, and loads no vectors under a mask of another
    length.

    >>> from kernelviz.ops.catalog.best import H200
    >>> cases = ((2**27, 4, "bf16"), (2**27, 8, "fp32"), (33, 1, "bf16"), (16_354, 5, "fp16"), (2**15, 1, "fp32"))
    >>> problems = [Problem(op="pointwise_chain_scalar", sizes={"n": n, "k": k}, dtype=dtype) for n, k, dtype in cases]
    >>> [scalar_chain(problem, H200)[0] for problem in problems]
    ['cuda_scalars_packed', 'cuda_scalars_fused', 'cuda_scalars_fused', 'triton_scalars_known_size', 'triton_scalars_fused']
    """
    n, k = problem.sizes["n"], problem.sizes["k"]
    if n <= SOME_NUMBERS and k <= MOST_STEPS:
        if n <= FEW_NUMBERS:
            return ("cuda_scalars_fused", "triton_scalars_known_size")
        if k == 1:
            return ("triton_scalars_fused", "triton_scalars_known_size")
        return ("triton_scalars_known_size", "cuda_scalars_fused")
    return ("cuda_scalars_packed", "cuda_scalars_fused") if problem.dtype != "fp32" else ("cuda_scalars_fused",)
