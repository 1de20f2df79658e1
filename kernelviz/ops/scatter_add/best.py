"""The variant that a user of `scatter_add` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes, whole_vectors

WARP = 32
VECTOR_BYTES = 16
"""Bytes of a row, from which on vectors of elements are added at once. H200: bf16, 60 million rows of 2 to 348,459 take 821 us
one by one and 944 in vectors, 8,990 of one to 24 4.17 and 4.36, 29,705 of 8 to 435 5.99 and 4.93."""
COPIED_SUMS, UNEVEN_SUMS, SHARED_SUMS = 1800, 7264, 2**14
"""fp32 numbers of which a block of an H200 has 32 copies in shared memory, 8, and at least two. H200, us in shared memory and by
the best other kernel: 25,073 uneven rows to 4,359 numbers 101 and 146, 160,867 to 8,503 753 and 342; 57.9 million additions to
35,072 numbers without copies 529 and 146."""
ADDITIONS_SAVED = 4
"""Elements of src for each sum that a block adds to memory, as `shared_table` has them."""
BLOCK_ELEMENTS = 2**13
"""Of src, for each block with sums in shared memory."""
MANY_OF_A_SUM = 384
"""Rows of a sum on average, whose atomic additions to one address take 1.8 us one after the other: 4.7 ns each on an H200, where
526,337 rows to one of 64 take 2479 us. There the sums of a block take 75; 13,333 rows to 27 of 3 bf16 take 8.5 and 11.6."""

FEW_SUMS = 2**15
"""Elements of the table: an estimate. H200: bf16, 1.2 million rows to 56 of 552 (30,912 elements) take 1393 us by segments and
1216 by atomic additions; 262,144 to 8192 of 1024 take 157 and 539."""
FEW_ADDITIONS, FEW_FP32_ADDITIONS = 2**23, 2**22
"""Elements of src, of which each counts twice in 16 bits besides those of the table, to which the sums are added in a second
launch. H200, us by atomic additions and by segments: bf16, 176 rows of 13,586 to 3 sums (4.8 million) 11.6 and 14.8, 38,352 of 64
to 609,272 (44 million) 50.0 and 31.4. The numbers are estimates."""

SPARSE = 16
"""Times as many sums as rows, so that the table decides, of which atomic additions in 16 bits copy each element to fp32 and back
(12 bytes) and segments read and write it (4). H200: bf16, 134,201 rows of 13 to 7.5 million take 429 us by additions and 132 by
segments, 65,536 of 2 to 16.8 million 152 and 108; 14,827 of 31 to 96,028 9.51 and 17.6."""

FEW_ROWS, FEW_LONG_ROWS = 1024, 2**22
"""Of src, as few_rows.MOST_ROWS, and elements of src where rows have the same id: each row is read before its block knows that
another one adds it. H200: bf16, 13 rows of 746,931 to other sums each take 61 us in one launch and 67 by segments; 488 of
420,424 to 16 sums take 265 and 112."""
FEW_OF_A_SUM = 16
"""Rows of a sum on average, up to which the block that adds them up one after the other takes little longer than a launch. H200:
200 rows to 16 sums of 1427 fp16 take 3.9 us so and 9.6 by atomic additions, 366 to 7 of 607 take 8.9 and 8.7."""
TILE_ADDITIONS, TILE_ROW = 2**16, 128
"""Of uneven rows in fp32, and elements of one, from which Triton's tiles are faster, whose threads have several elements of a
row: estimates. H200: 300 rows of 230 take 2.60 us so and 2.90 with a thread for each element, 33 of 111,355 10.6 and 13.2; 2 of
1546 1.73 and 1.36, 17,236 of 34 4.07 and 3.46, 605,235 of 67 639 and 605."""
TILE_ADDITIONS_16BIT, TILE_ROW_16BIT = 2**24, 8
"""Of short rows in 16 bits, and elements of one, from which the same holds: estimates. H200: 3.6 million rows of 16 take 132 us
so and 146 with 16-byte additions, 60 million of 2 892 and 820. The tiles copy the table to fp32 and back: so rows are 16 for
each sum or more."""


def segments(problem: Problem, card: Card) -> tuple[str, ...]:
    """In 16 bits one launch for at most 1,024 rows of different ids, or of 2^22 elements with up to 16 rows for a sum; sums in
    shared memory for few sums of many rows; segments of sorted ids for rows of at least 32 elements, or in 16 bits of a 16th as
    many rows as sums, except for few additions or sums; else atomic additions, one by one in rows of less than 16 bytes, and in
    Triton's tiles for uneven fp32 rows of 128 elements and many of 8 in 16 bits.

    Few sums of many rows are up to 1,800 fp32 numbers, 7,264 of uneven rows, or 2^14 of such of fewer than 32 elements, with 384
    rows for each sum and four additions for each number of a block. Sorting the ids takes as long for a short row as for a long
    one, and a row of fewer elements than a warp has threads leaves threads idle. A table of few elements has few threads that
    add up rows.
    Atomic additions to few numbers wait for each other. H200: 2^26 of them to 1024 numbers take 3044 us.

    In fp32 atomic additions are one launch, too, and need no list of the ids: 26 rows of 28 take 1.19 us by them, and 2.02 in the
    launch for few rows.

    >>> from kernelviz.ops.catalog.best import H200
    >>> def best(v, t, d, dtype="bf16"):
    ...     return segments(Problem(op="scatter_add", sizes={"v": v, "t": t, "d": d}, dtype=dtype), H200)[0]
    >>> [best(8192, 262144, d) for d in (1024, 2)]
    ['cuda_segments', 'cuda_atomics']
    >>> best(512, 2**25, 2), best(1, 526337, 64, "fp32"), best(5, 175285, 161), best(11, 160867, 773)
    ('cuda_shared', 'cuda_shared', 'cuda_shared', 'cuda_segments')
    >>> best(5, 4, 130440), best(118, 13, 746931), best(16, 488, 420424), best(56, 1193240, 552)
    ('cuda_few_rows', 'cuda_few_rows', 'cuda_segments', 'cuda_atomics_vec16')
    >>> best(7462943, 134201, 13), best(2043, 17236, 34, "fp32"), best(7, 100, 3835, "fp32"), best(3, 25073, 1453)
    ('cuda_segments', 'cuda_atomics_vec16', 'triton_atomics', 'cuda_shared')
    """
    v, t, d = (problem.sizes[axis] for axis in ("v", "t", "d"))
    is_fp32, even = problem.dtype == "fp32", whole_vectors(problem, "d")
    if not is_fp32 and t <= FEW_ROWS and (t <= v or (t <= FEW_OF_A_SUM * v and t * d <= FEW_LONG_ROWS)):
        return ("cuda_few_rows", "cuda_atomics_vec16", "triton_atomics")
    most_sums = COPIED_SUMS if even else SHARED_SUMS if d < WARP else UNEVEN_SUMS
    blocks = min(card.multiprocessors, -(-t * d // BLOCK_ELEMENTS))
    many = t >= max(MANY_OF_A_SUM, ADDITIONS_SAVED * blocks) * v
    if many and v * d <= most_sums:
        return ("cuda_shared", "cuda_atomics_vec16", "triton_atomics")
    if is_fp32:
        tiles = not even and d >= TILE_ROW and t * d >= TILE_ADDITIONS
    else:
        tiles = TILE_ROW_16BIT <= d < WARP and v <= t // 16 and t * d >= TILE_ADDITIONS_16BIT
    if row_bytes(problem, "d") < VECTOR_BYTES:
        atomics: tuple[str, ...] = ("cuda_atomics", "cuda_atomics_vec16", "triton_atomics")
    else:
        atomics = ("triton_atomics", "cuda_atomics_vec16") if tiles else ("cuda_atomics_vec16", "triton_atomics")
    sparse = not is_fp32 and v >= SPARSE * t
    if d < WARP and not sparse:
        return atomics
    few = t * d <= FEW_FP32_ADDITIONS if is_fp32 else (v + 2 * t) * d <= FEW_ADDITIONS
    if few or (v * d <= FEW_SUMS and even):
        return (*atomics, "cuda_segments")
    return ("cuda_segments", "triton_segments")
