"""The variant that a user of a chain of element-wise steps gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, whole_vectors

FEW_OF_ROWS, SOME_OF_ROWS = 2**13, 2**20
"""H200: 32 rows of 57 fp32 take 1.27 us in 6 steps in CUDA C++ and 1.39 in Triton for the sizes, 5 rows of 88,258 fp16 in 3
steps 3.54 and 2.23, 1,316,525 rows of one bf16 in 5 steps 4.73 and 6.45, when they did not yet have the kernel of one number a
step."""
FEW_STEPS, MOST_STEPS = 2, 16
"""H200: 49 rows of 143 fp16 take 1.39 us in 2 steps in CUDA C++ and 1.30 in torch.compile. More than 16 steps are no kernel
for the sizes."""
FEWEST_ROWS, FEW_ROWS = 3, 16
"""H200, fp16: 10 rows of 444,807 take 22.5 us in Triton's loop in 9 steps and 36.5 packed, 25 of 1,055,930 46.2 and 41.1 in 3
steps; bf16, 3 of 12,904,451 142 and 189 in 4 steps; 2 of 15,104,991 fp16, which share less, 131 and 121 in 3. fp32, 9 rows
of 384,201 42.6 and 36.9 in 11 steps in CUDA C++."""
SHORT_ROW = 32
"""Elements of fp32, of which Triton has 16 a thread and CUDA C++ 32, so that its waves of blocks are coarser. H200: 413,856 rows
of 32 take 26.5 us in Triton's loop in 8 steps and 28.0 in CUDA C++, 6,673,919 of 2 24.5 and 25.9 in 6, 6,620,031 of one 18.0
and 17.8 in 11."""
FEW_NUMBERS, SOME_NUMBERS = 2**10, 2**17
"""Elements with one number a step. H200, bf16, 6 steps: 9 take 1.01 us in CUDA C++ and 1.06 in Triton for the
size; fp16, 8 steps: 3173 1.33 and 1.25, 4 steps: 22,477 1.56 and 1.44; bf16, 8 steps: 281,647 1.91 and 1.90."""
FEW_VECTORS_OF = 2**14
"""Elements with one number a step, from which on whole vectors of 16-bit numbers are packed. H200, bf16: 65,536 take 1.49 us
so in 2 steps and 1.61 in Triton for the size, 16,920 1.38 and 1.42 in 8."""


def chain(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton for the sizes up to 16 steps of at most 2^20 elements, but CUDA C++ for more than two steps of at most 2^13, or of
    rows that are whole 16-byte vectors; CUDA C++ for more steps or elements, but Triton's loop for at least 3 steps of
    3 to 15 rows of 16-bit numbers that are not whole vectors, and of at least 16 rows of fp32 of a power of two up to 32;
    CUDA C++ packs 16-bit floats in pairs, of at most 2^13 elements where rows are whole pairs.

    The kernel of CUDA C++ loads the factors of rows that are not whole vectors in two pieces, and shares them only between
    rows that begin at the same place of a vector. H200: 22 rows of 2312 bf16 take 1.47 us packed in 3 steps and 1.57 in Triton
    for the sizes, 512 rows of 128 fp16 1.71 and 1.86 in 16, 78 rows of 280 fp32 1.64 and 2.82 in 15.

    >>> from kernelviz.ops.catalog.best import H200
    >>> cases = ((8192, 4096, 4), (300, 63, 4), (631, 1, 3), (2, 181569, 1), (3, 3_682_465, 3), (100, 64, 3))
    >>> problems = [Problem(op="pointwise_chain", sizes=dict(zip("mnk", case)), dtype="bf16") for case in cases]
    >>> [chain(problem, H200)[0] for problem in problems]
    ['cuda_fused_packed', 'triton_known_size', 'cuda_fused', 'triton_known_size', 'triton_fused', 'cuda_fused_packed']
    """
    m, n, k = (problem.sizes[axis] for axis in "mnk")
    half = problem.dtype != "fp32"
    vectors = whole_vectors(problem, "n")
    if k <= MOST_STEPS and m * n <= SOME_OF_ROWS:
        if k <= FEW_STEPS or (m * n > FEW_OF_ROWS and not vectors):
            return ("triton_known_size", "cuda_fused", *(("cuda_fused_packed",) if half else ()))
        return (
            ("cuda_fused_packed", "cuda_fused", "triton_fused")
            if half and n % 2 == 0
            else ("cuda_fused", "triton_fused")
        )
    repeated = (
        FEWEST_ROWS <= m < FEW_ROWS and not vectors if half else m >= FEW_ROWS and n <= SHORT_ROW and n.bit_count() == 1
    )
    if repeated and k > FEW_STEPS:
        return ("triton_fused", "cuda_fused")
    return ("cuda_fused_packed", "cuda_fused") if half else ("cuda_fused", "triton_fused")


def scalar_chain(problem: Problem, card: Card) -> tuple[str, ...]:
    """One kernel of CUDA C++ that loads all numbers at once for at most 16 steps of up to 2^10 elements; up to 2^17 elements
    Triton for the size, whose one step is a loop of Triton; else, and for several steps of more than 2^14 elements that are whole
    vectors of 16-bit numbers, CUDA C++, with packed pairs of 16-bit floats.

    Triton computes in fp32, which takes longer than memory in many steps, and loads no vectors under a mask of another
    length.

    >>> from kernelviz.ops.catalog.best import H200
    >>> cases = ((2**27, 4, "bf16"), (33, 1, "fp32"), (16_354, 5, "fp16"), (2**15, 1, "fp32"), (2**16, 2, "bf16"))
    >>> problems = [Problem(op="pointwise_chain_scalar", sizes={"n": n, "k": k}, dtype=dtype) for n, k, dtype in cases]
    >>> [scalar_chain(problem, H200)[0] for problem in problems]
    ['cuda_scalars_packed', 'cuda_scalars_fused', 'triton_scalars_known_size', 'triton_scalars_fused', \
'cuda_scalars_packed']
    """
    n, k = problem.sizes["n"], problem.sizes["k"]
    if n <= SOME_NUMBERS and k <= MOST_STEPS:
        if n <= FEW_NUMBERS:
            return ("cuda_scalars_fused", "triton_scalars_known_size")
        if k == 1:
            return ("triton_scalars_fused", "triton_scalars_known_size")
        if problem.dtype == "fp32" or n <= FEW_VECTORS_OF or not whole_vectors(problem, "n"):
            return ("triton_scalars_known_size", "cuda_scalars_fused")
    return ("cuda_scalars_packed", "cuda_scalars_fused") if problem.dtype != "fp32" else ("cuda_scalars_fused",)
