"""The variant that a user of `row_sum` or `argmax` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, few_slabs, row_bytes

KNOWN_LENGTH, KNOWN_ELEMENTS = 256, 2**16
"""Of a row and of a matrix, for which `cuda_known_length` has a kernel of its own. H200: 40 rows of 100 bf16 take row_sum 1.33 us
so, 1.41 by the kernel that prefetches; 300 of 16 fp32 1.34, and 1.46 by programs of Triton."""
TINY_ROW, PROGRAM_ROW = 2, 2048
"""Elements of many rows and of few of which programs of Triton for the size are fastest. H200: 44,459,814 rows of one fp16 take
argmax 78 us so and 105 by a thread each, 1,375,222 of 3 fp32 9.05 and 7.27; 4,524 of 80 fp32 take row_sum 1.80 us so and 2.18 as
pieces of shared memory, 11,069 of 31 argmax 1.85 and 2.37."""
SHARED_ROW_BYTES = 1024
"""Of a row of which a warp has less than two vectors a thread. H200: 200,000 rows of 512 bytes take row_sum 27 us as pieces of
shared memory and 41 by warps, 300,000 of 666 bytes 67 and 92; 1,348,296 of 992 bytes take argmax 383 and 345."""


def row_sum(problem: Problem, card: Card) -> tuple[str, ...]:
    """CUDA C++ compiled for the row length up to 256 elements a row and 65,536 in all; else Triton compiled for the size for
    rows of one or two elements, and of up to 2048 with at most 16 KiB a multiprocessor; else pieces of shared memory for rows
    up to 1 KiB; else the kernel that prefetches vectors.

    H200: 433 rows of 20,213 bf16 take 6.28 us by the kernel that prefetches and 7.66 by a block each; 459,272 of 1,208 fp16 374
    and by warps 252.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8192, 8192), (2**20, 3), (300_000, 333), (4, 16), (2**20, 2), (64, 512), (2048, 512))
    >>> [row_sum(Problem(op="row_sum", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_streamed', 'cuda_slab_stages', 'cuda_slab_stages', 'cuda_known_length', 'triton_known_size', 'triton_known_size', \
'triton_known_size']
    """
    if short := _short(problem, card, "cuda_row_per_warp"):
        return short
    return ("cuda_streamed", "triton_known_size", "cuda_row_per_block", "cuda_slab_stages", "cuda_row_per_warp")


def argmax(problem: Problem, card: Card) -> tuple[str, ...]:
    """CUDA C++ compiled for the row length up to 256 elements a row and 65,536 in all; else Triton compiled for the size for
    rows of one or two elements, and of up to 2048 with at most 16 KiB a multiprocessor; else pieces of shared memory for rows
    up to 1 KiB; else the packed maximum of vectors.

    H200: 64 rows of 8,388,608 bf16 take 245 us by the packed maximum and 282 if a row is in parts; 2,752,765 of 364 695 as pieces
    of shared memory and 800.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((64, 65_536), (2**20, 3), (2**20, 9), (500, 16), (5000, 16), (2**20, 1))
    >>> [argmax(Problem(op="argmax", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_words', 'cuda_slab_stages', 'cuda_slab_stages', 'cuda_known_length', 'triton_known_size', 'triton_known_size']
    """
    if short := _short(problem, card, "cuda_row_per_thread"):
        return short
    return ("cuda_words", "triton_known_size", "cuda_slab_stages", "cuda_row_per_block", "cuda_slab")


def _short(problem: Problem, card: Card, last: str) -> tuple[str, ...]:
    """The variants for few or short rows, of which `last` is the last one, or none."""
    m, n = problem.sizes["m"], problem.sizes["n"]
    usual = "cuda_streamed" if problem.op == "row_sum" else "cuda_words"
    if n <= KNOWN_LENGTH and m * n <= KNOWN_ELEMENTS:
        return ("cuda_known_length", "triton_known_size", "cuda_slab_stages", usual, last)
    if n <= TINY_ROW or (n <= PROGRAM_ROW and few_slabs(problem, card)):
        return ("triton_known_size", "cuda_known_length", "cuda_slab_stages", usual, last)
    if row_bytes(problem) <= SHARED_ROW_BYTES:
        return ("cuda_slab_stages", "triton_known_size", "cuda_known_length", usual, last)
    return ()
