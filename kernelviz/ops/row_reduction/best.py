"""The variant that a user of `row_sum` or `argmax` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import SLAB_BYTES, TMA_BYTES, Card, row_bytes, slabs_of_rows, whole_vectors

KNOWN_LENGTH, KNOWN_ELEMENTS = 256, 2**16
"""Of a row and of a matrix, for which `cuda_known_length` has a kernel of its own. H200: 40 rows of 100 bf16 take 1.33 us so,
1.41 by the kernel that prefetches; 300 of 16 fp32 1.34, and 1.46 by programs of Triton."""
KNOWN_VECTOR_BYTES = 128
"""Of many rows of whole 16-byte vectors that it takes. H200: a million rows of 32 fp32 take 31 us so, and 33.5 through a ring of
slabs; longer rows were not measured."""
THREAD_ROW_BYTES = 64
"""Of a row for a thread: the L1 (256 KiB) holds as much of 2048 rows twice, so that each sector is read from memory once."""
SLAB_ROW_BYTES = 1024
"""H200, 16 bits: 200,000 rows of 512 bytes take 27 us as slabs, 41 by warps; 753,792 of 960 bytes 164 and 218; 300,000 of 666
bytes, which begin within vectors, 67 and 92."""
FEW, FEW_ROW = 4, 1024
"""Rows a multiprocessor, an estimate, and elements of a row that a program of Triton sums at once. H200: 64 rows of 512 fp32 take
1.51 us so, 1.63 by the kernel that prefetches; 3 of 312 bf16 1.39 and 1.49."""
TILE_ROW_BYTES, TILE_SLABS = 80, 4
"""Of a row of whole vectors, and slabs of 4 KiB a multiprocessor from which on a ring of them pays for its start, up to which
programs of Triton have several rows each: estimates. H200: 8,200 rows of 40 bf16 take argmax 2.18 us through a ring, and 1.86 in
torch_compile, whose programs are such; row_sum takes 1.57 by the kernel for the length and 1.45 for 592 rows of 80 fp16, 2.19 by
warps and 2.13 for 2048 of 512 bf16, but 12,084 of 431 4.8 through a ring and 5.9."""
ARGMAX_SLAB_ROW_BYTES = 512
"""A warp reads as much with a 16-byte vector a thread. H200: 100,000 rows of 2,044 bytes take 67 us as slabs, 49 by warps."""

ARGMAX_TINY_ROW = 4
"""Elements of many rows up to which `cuda_known_length` reads them without shared memory, and a warp writes indices without gaps.
An estimate: H200, 168 million rows of 2 fp32 take 657 us as slabs, 712 through a ring, where a thread writes 32 adjacent bytes of
indices, and 614 by inductor's kernel."""


def row_sum(problem: Problem, card: Card) -> tuple[str, ...]:
    """The kernel that prefetches vectors and chooses threads and parts of a row by size; many short rows as pieces of shared
    memory; short rows that are few, or whole 16-byte vectors of at most 128 bytes, or equal parts of one, by the kernel for their
    length; other rows of at most 64 bytes by a thread each; no more than four rows a multiprocessor of at most 1024 elements, and
    more of whole vectors, of 80 bytes to 1 KiB, that are at most four slabs of 4 KiB a multiprocessor, by programs of Triton for
    the size.

    A warp has more threads than a short row has vectors.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8192, 8192), (2**20, 3), (300_000, 333), (4, 16), (2**20, 16), (2**15, 3), (2**20, 100), (2**20, 2))
    >>> shapes = (*shapes, (64, 512), (2048, 512))
    >>> [row_sum(Problem(op="row_sum", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_streamed', 'cuda_slab_stages', 'cuda_slab_stages', 'cuda_known_length', 'cuda_known_length', \
'cuda_row_per_thread', 'cuda_slab_stages', 'cuda_known_length', 'triton_known_size', 'triton_known_size']
    """
    whole = whole_vectors(problem, "n")
    part = row_bytes(problem) < TMA_BYTES and TMA_BYTES % row_bytes(problem) == 0
    if _by_tiles(problem, card):
        return ("triton_known_size", "cuda_row_per_warp", "cuda_streamed")
    if _few_short_rows(problem) or part or (whole and row_bytes(problem) <= KNOWN_VECTOR_BYTES):
        return ("cuda_known_length", "cuda_streamed")
    if problem.sizes["m"] <= FEW * card.multiprocessors and problem.sizes["n"] <= FEW_ROW:
        return ("triton_known_size", "triton_block_per_row", "cuda_streamed")
    if slabs_of_rows(problem, card, longest_bytes=SLAB_ROW_BYTES):
        return ("cuda_slab_stages", "cuda_slab", "cuda_streamed")
    if _short(problem):
        return ("cuda_row_per_thread", "cuda_streamed")
    return ("cuda_streamed", "cuda_adaptive")


def argmax(problem: Problem, card: Card) -> tuple[str, ...]:
    """The packed maximum of each 16-byte vector; rows of one element, and more rows than multiprocessors of whole vectors, of 80
    bytes to 1 KiB, that are at most four slabs of 4 KiB for each, by programs of Triton for the size; other short rows of few
    elements, and all of at most 4, by the kernel for their length; many rows of at most 512 bytes as pieces of shared memory, but
    of fp32 only those of more than 64 bytes or of whole vectors; other rows of at most 64 bytes by a thread each.

    A warp has more threads than such rows have vectors. Few of them take the latency of one load, and the shortest code. H200, us
    by the kernel for their length and by the best other one: bf16 7 x 2 1.12 and 1.18, 40 x 100 1.36 and 1.40, 500 x 16 1.33 and
    1.55, fp32 4 x 256 1.33 and 1.37; more elements, up to its limit, were not measured. Rows of one element are mostly indices
    that are stored, and programs for the size do not read them: 1,269,239 fp32 take 3.99 us if they are read, torch_eager 3.17. A
    thread reads fp32 as fast from L1 as from shared memory: 3,230,358 rows of 13 take 45.6 us so, and 49.6 through a ring.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (2**20, 3), (2**20, 1), (2**20, 9), (500, 16), (5000, 16), (7, 2), (7, 300), (47_590, 2))
    >>> [argmax(Problem(op="argmax", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_words', 'cuda_known_length', 'triton_known_size', 'cuda_slab_stages', 'cuda_known_length', 'cuda_row_per_thread', \
'cuda_known_length', 'cuda_words', 'cuda_known_length']
    """
    if problem.sizes["n"] == 1 or _by_tiles(problem, card):
        return ("triton_known_size", "cuda_known_length", "cuda_slab")
    if _few_short_rows(problem):
        return ("cuda_known_length", "triton_block_per_row", "cuda_words")
    if problem.sizes["n"] <= ARGMAX_TINY_ROW:
        return ("cuda_known_length", "cuda_slab", "cuda_slab_stages")
    by_thread = problem.dtype == "fp32" and _short(problem) and not whole_vectors(problem, "n")
    if slabs_of_rows(problem, card, longest_bytes=ARGMAX_SLAB_ROW_BYTES) and not by_thread:
        return ("cuda_slab_stages", "cuda_slab", "cuda_words")
    if _short(problem):
        return ("cuda_row_per_thread", "cuda_words")
    return ("cuda_words", "cuda_adaptive")


def _by_tiles(problem: Problem, card: Card) -> bool:
    """Whether programs of Triton have several rows of whole vectors each: few bytes in more rows than multiprocessors."""
    m, of_row = problem.sizes["m"], row_bytes(problem)
    is_short = TILE_ROW_BYTES <= of_row <= SLAB_ROW_BYTES and whole_vectors(problem, "n")
    return is_short and m > card.multiprocessors and m * of_row <= TILE_SLABS * SLAB_BYTES * card.multiprocessors


def _few_short_rows(problem: Problem) -> bool:
    return problem.sizes["n"] <= KNOWN_LENGTH and problem.sizes["m"] * problem.sizes["n"] <= KNOWN_ELEMENTS


def _short(problem: Problem) -> bool:
    return row_bytes(problem) <= THREAD_ROW_BYTES
