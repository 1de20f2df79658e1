"""The variant that a user of `row_sum` or `argmax` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import TMA_BYTES, Card, few_slabs, row_bytes, slabs_of_rows, whole_vectors

KNOWN_LENGTH, KNOWN_ELEMENTS = 256, 2**16
"""Of a row and of a matrix, for which `cuda_known_length` has a kernel of its own. H200: 40 rows of 100 bf16 take 1.33 us so,
1.41 by the kernel that prefetches; 300 of 16 fp32 1.34, and 1.46 by programs of Triton."""
KNOWN_VECTOR_BYTES = 128
"""Of many rows of whole 16-byte vectors that it takes. H200: a million rows of 32 fp32 take 31 us so, and 33.5 through a ring of
slabs."""
THREAD_ROW_BYTES = 64
"""Of a row for a thread: the L1 (256 KiB) holds as much of 2048 rows twice, so that each sector is read from memory once."""
SLAB_ROW_BYTES = 1024
"""H200, 16 bits: 200,000 rows of 512 bytes take 27 us as slabs, 41 by warps; 753,792 of 960 bytes 164 and 218; 300,000 of 666
bytes, which begin within vectors, 67 and 92."""
FEW_ROW = 4096
"""Elements of a row that a program of Triton sums at once. H200: 64 rows of 512 fp32 take 1.51 us so, 1.63 by the kernel that
prefetches; 3 of 312 bf16 1.39 and 1.49, 2 of 2,095 fp16 1.53 and 1.63, 62 of 3,699 bf16 1.83 and 1.84."""
TILE_ROW_BYTES = 512
"""Of a row of whole vectors up to which such a program has 4 KiB of each of many. H200: 12,841 rows of 116 fp32 take 3.00 us so,
3.46 through a ring and 3.75 by warps; 1,903,283 of 52 94.3 and 97.4."""
ARGMAX_SLAB_ROW_BYTES = 512
"""A warp reads as much with a 16-byte vector a thread. H200: 100,000 rows of 2,044 bytes take 67 us as slabs, 49 by warps."""

ARGMAX_TINY_ROW = 4
"""Elements of many rows up to which `cuda_known_length` reads them without shared memory, and a warp writes indices without gaps.
An estimate: H200, 168 million rows of 2 fp32 take 657 us as slabs, 712 through a ring, where a thread writes 32 adjacent bytes of
indices, and 614 by inductor's kernel."""
ARGMAX_TINIEST_ROW = 2
"""Elements of a row of which programs for the size leave no thread idle, as inductor's do. H200: 2,233,404 rows of 2 bf16 take
6.74 us so, and 7.18 by a thread each; 1,375,222 of 3 fp32 9.05 and 7.27."""
ARGMAX_WARP, ARGMAX_ROW = 32, 512
"""Elements of a row up to which the kernel for the length is the best for few rows, and programs for the size for longer ones.
H200: 946 rows of 9 bf16 take 1.37 us by the first and 1.51 by the second, 3 of 43 fp32 1.07 and 1.00; of 62 of 1,755 fp16 the
packed maximum takes 1.74 and programs 1.79."""


def row_sum(problem: Problem, card: Card) -> tuple[str, ...]:
    """The kernel that prefetches vectors and chooses threads and parts of a row by size; programs of Triton for the size for more
    rows than multiprocessors of whole 16-byte vectors, of more than 128 and up to 512 bytes; short rows that are few, or whole
    vectors of at most 128 bytes, or equal parts of one, by the kernel for their length; others of at most 4096 elements that are
    at most four slabs of 4 KiB a multiprocessor by programs for the size, too; many of at most 1 KiB as pieces of shared memory.

    A warp has more threads than a short row has vectors.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8192, 8192), (2**20, 3), (300_000, 333), (4, 16), (2**20, 16), (2**15, 3), (2**20, 100), (2**20, 2))
    >>> shapes = (*shapes, (64, 512), (2048, 512))
    >>> [row_sum(Problem(op="row_sum", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_streamed', 'cuda_slab_stages', 'cuda_slab_stages', 'cuda_known_length', 'cuda_known_length', \
'triton_known_size', 'cuda_slab_stages', 'cuda_known_length', 'triton_known_size', 'triton_known_size']
    """
    m, n, of_row = problem.sizes["m"], problem.sizes["n"], row_bytes(problem)
    whole = whole_vectors(problem, "n")
    part = of_row < TMA_BYTES and TMA_BYTES % of_row == 0
    if whole and KNOWN_VECTOR_BYTES < of_row <= TILE_ROW_BYTES and m > card.multiprocessors:
        return ("triton_known_size", "cuda_slab_stages", "cuda_streamed")
    if _few_short_rows(problem) or part or (whole and of_row <= KNOWN_VECTOR_BYTES):
        return ("cuda_known_length", "cuda_streamed")
    if few_slabs(problem, card) and n <= FEW_ROW:
        second = "triton_block_per_row" if m <= card.multiprocessors else "cuda_slab_stages"
        return ("triton_known_size", second, "cuda_streamed")
    if slabs_of_rows(problem, card, longest_bytes=SLAB_ROW_BYTES):
        return ("cuda_slab_stages", "triton_known_size", "cuda_slab", "cuda_streamed")
    return ("cuda_streamed", "cuda_adaptive")


def argmax(problem: Problem, card: Card) -> tuple[str, ...]:
    """The packed maximum of each 16-byte vector; programs of Triton for the size for rows of one or two elements, and for those
    of at most 512 that are at most four slabs of 4 KiB for each multiprocessor; but the kernel for their length for rows of 3 or
    4 elements, and of at most 32 of no more than 65536 in all; a thread for each fp32 row of at most 64 bytes that are no whole
    16-byte vectors, and others of at most 512 bytes that are many as pieces of shared memory.

    A warp has more threads than such rows have vectors. Few of them take the latency of one load, and the shortest code. H200,
    us by the kernel for their length and by the best other one: bf16 40 x 100 1.36 and 1.40, 500 x 16 1.33 and 1.55, fp32 4 x 256
    1.33 and 1.37; more elements, up to its limit, were not measured. Rows of one element are mostly indices that are stored, and
    programs for the size do not read them: 1,269,239 fp32 take 3.99 us if they are read, torch_eager 3.17. A thread reads fp32 as
    fast from L1 as from shared memory: 3,230,358 rows of 13 take 45.6 us so, and 49.6 through a ring.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (2**20, 3), (2**20, 1), (2**20, 9), (500, 16), (5000, 16), (7, 2), (7, 300), (47_590, 2))
    >>> problems = [Problem(op="argmax", sizes={"m": m, "n": n}, dtype="bf16") for m, n in shapes]
    >>> problems.append(Problem(op="argmax", sizes={"m": 2**20, "n": 13}, dtype="fp32"))
    >>> [argmax(problem, H200)[0] for problem in problems]
    ['cuda_words', 'cuda_known_length', 'triton_known_size', 'cuda_slab_stages', 'cuda_known_length', 'triton_known_size', \
'triton_known_size', 'triton_known_size', 'triton_known_size', 'cuda_row_per_thread']
    """
    n = problem.sizes["n"]
    if n <= ARGMAX_TINIEST_ROW:
        return ("triton_known_size", "cuda_known_length", "cuda_slab")
    if n <= ARGMAX_TINY_ROW or (n <= ARGMAX_WARP and _few_short_rows(problem)):
        return ("cuda_known_length", "cuda_slab", "cuda_slab_stages")
    if n <= ARGMAX_ROW and few_slabs(problem, card):
        second = "triton_block_per_row" if problem.sizes["m"] <= card.multiprocessors else "cuda_slab_stages"
        return ("triton_known_size", second, "cuda_words")
    if problem.dtype == "fp32" and row_bytes(problem) <= THREAD_ROW_BYTES and not whole_vectors(problem, "n"):
        return ("cuda_row_per_thread", "cuda_words")
    if slabs_of_rows(problem, card, longest_bytes=ARGMAX_SLAB_ROW_BYTES):
        return ("cuda_slab_stages", "cuda_slab", "cuda_words")
    return ("cuda_words", "cuda_adaptive")


def _few_short_rows(problem: Problem) -> bool:
    return problem.sizes["n"] <= KNOWN_LENGTH and problem.sizes["m"] * problem.sizes["n"] <= KNOWN_ELEMENTS
