"""The variant that a user of a chain of element-wise steps gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, whole_vectors

FEW_ELEMENTS, FEW_STEPS, MOST_STEPS = 2**20, 4, 16
"""Up to which Triton for the sizes is chosen, and steps of which it has a kernel. H200: 2 rows of 262,144 fp32 take 4.73 us so in
4 steps and 4.91 in CUDA C++, 5 of 88,258 fp16 2.23 and 3.54 in 3; 78 of 280 fp32 2.82 and 1.64 in 15, 1,316,525 of one bf16 6.45
and 4.73 in 5."""
SHORT_CHAIN = 2**16
"""Elements up to which all factors of a thread are loaded at once in CUDA C++, and the code is shorter. H200: 22 rows of 61 fp16
take 1.22 us so in 7 steps and 1.34 in Triton, 2 of 1261 fp32 1.53 and 2.98 in 15, 533 of 59 fp16 1.67 and 1.73 in 7; but 2,216 of
124 bf16 7.71 and 2.45 in 9. 134 of 6 bf16 take 1.23 packed in 15 steps, 1.35 so; 22 of 61 fp16 4.58 packed."""
FEW_ROWS = 16
"""Of 16-bit numbers that are no whole vectors, which share too few factors to be packed. H200: 14 rows of 1,473,641 fp16 take 507
us packed in 7 steps, 109 in fp32 and 97 in Triton's loop, 234,064 of 67 20.4, 23.0 and 45.5 in 4."""
FEW_NUMBERS, SOME_NUMBERS = 2**10, 2**19
"""Elements with one number a step. H200, bf16: 9 take 1.01 us in 6 steps in CUDA C++ and 1.06 in Triton for the size; fp16: 3173
1.33 and 1.25 in 8, 490,834 1.89 and 1.78 in 2, 52,873,662 49.4 and 56.3 in 7."""

LEAST_STEPS, MOST_SCALARS = 4, 2**30
"""Steps of more elements from which on Triton is chosen, and elements up to which it has a kernel for their number."""


def chain(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton compiled for the sizes up to 2^20 elements in up to four steps, or 16 for more than 2^16 elements if rows are not
    whole 16-byte vectors; else CUDA C++, which packs 16-bit floats in pairs if rows are whole vectors, whole pairs of up to 2^16
    elements, or at least 16 rows of more.

    The kernel of CUDA C++ loads the factors of rows that are not whole vectors in two pieces, and shares them only between
    rows that begin at the same place of a vector. H200: 6 rows of 34,074 bf16 take 1.94 us in Triton in 5 steps, and 2.02.

    >>> from kernelviz.ops.catalog.best import H200
    >>> cases = ((8192, 4096, 8), (3000, 63, 12), (100, 64, 3), (100, 64, 5), (3, 3_682_465, 3))
    >>> problems = [Problem(op="pointwise_chain", sizes=dict(zip("mnk", case)), dtype="bf16") for case in cases]
    >>> [chain(problem, H200)[0] for problem in problems]
    ['cuda_fused_packed', 'triton_known_size', 'triton_known_size', 'cuda_fused_packed', 'cuda_fused']
    """
    m, n, k = (problem.sizes[axis] for axis in "mnk")
    vectors = whole_vectors(problem, "n")
    short = m * n <= SHORT_CHAIN
    if m * n <= FEW_ELEMENTS and k <= (FEW_STEPS if vectors or short else MOST_STEPS):
        return ("triton_known_size", "cuda_fused", "cuda_fused_packed")
    if problem.dtype != "fp32" and (vectors or (n % 2 == 0 if short else m >= FEW_ROWS)):
        return ("cuda_fused_packed", "cuda_fused", "triton_fused")
    if short:
        return ("cuda_fused", "triton_known_size", "cuda_fused_packed")
    return ("cuda_fused", "triton_fused", "triton_known_size")


def scalar_chain(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton compiled for the size in up to 16 steps for more than 2^10 and at most 2^19 elements, and for more multiples of 4
    of fp32 in at least four steps; else CUDA C++, which packs 16-bit floats in pairs beyond 2^10 elements.

    Triton computes in fp32, which takes longer than memory in many steps, and loads no vectors under a mask of another length.
    H200, fp32: 1,250,968 take 3.55 us so in 7 steps and 3.97 in CUDA C++, 78,327,208 145.3 and 150.3 in 8, 1,110,856 3.31 and
    3.29 in 2, 2^27 250 and 258 in 4.

    >>> from kernelviz.ops.catalog.best import H200
    >>> cases = ((2**27, 4, "bf16"), (33, 1, "bf16"), (16_354, 5, "fp16"), (2**27, 4, "fp32"))
    >>> problems = [Problem(op="pointwise_chain_scalar", sizes={"n": n, "k": k}, dtype=dtype) for n, k, dtype in cases]
    >>> [scalar_chain(problem, H200)[0] for problem in problems]
    ['cuda_scalars_packed', 'cuda_scalars_fused', 'triton_scalars_known_size', 'triton_scalars_known_size']
    """
    n, k = problem.sizes["n"], problem.sizes["k"]
    several = problem.dtype == "fp32" and n % 4 == 0 and n <= MOST_SCALARS and k >= LEAST_STEPS
    if k <= MOST_STEPS and n > FEW_NUMBERS and (n <= SOME_NUMBERS or several):
        return ("triton_scalars_known_size", "cuda_scalars_packed", "cuda_scalars_fused")
    if n <= FEW_NUMBERS or problem.dtype == "fp32":
        return ("cuda_scalars_fused", "triton_scalars_known_size")
    return ("cuda_scalars_packed", "cuda_scalars_fused")
