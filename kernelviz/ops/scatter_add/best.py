"""The variant that a user of `scatter_add` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, whole_vectors

WARP = 32
SHARED_SUMS = 2**14
"""64 KiB of fp32, which a block has on every card."""
ADDITIONS_SAVED = 4
"""Elements of src for each sum that a block adds to memory, as `shared_table` has them. Not measured yet."""

FEW_SUMS = 2**15
"""Elements of the table: an estimate. H200: bf16, 1.2 million rows to 56 of 552 (30,912 elements) take 1393 us by segments and
1216 by atomic additions; 262,144 to 8192 of 1024 take 157 and 539."""
FEW_ADDITIONS, FEW_FP32_ADDITIONS = 2**21, 2**22
"""Elements of src and, in 16 bits, twice those of the table, which is copied to fp32 and back: estimates. Segments take five
launches, atomic additions three in 16 bits and one in fp32. H200: fp16, 4 rows to 5 of 130,440 take 9.9 us by segments and 8.7 by
atomic additions, a million of which takes 1.9 us where they are many; bf16, 64 to 8192 of 1024 take 9.5 and 37."""

FEW_ROWS = 1024
"""Of src, as few_rows.MOST_ROWS."""
FEW_OF_A_SUM = 16
"""Rows of a sum on average, up to which the block that adds them up one after the other takes little longer than a launch.
Not measured yet."""


def segments(problem: Problem, card: Card) -> tuple[str, ...]:
    """One launch for at most 1,024 rows of at most 2^22 elements in all, unless more than 16 belong to a sum on average; else
    one sum for each row of the table, but atomic additions for at most 2^21 elements (2^22 of fp32) and for tables of at most
    2^15 elements in rows of whole 16-byte vectors; for rows of fewer than 32 elements sums in shared memory, if they fit and each
    block has four additions for each of them, else atomic additions.

    Sorting the ids takes as long for a short row as for a long one, and a row of fewer elements than a warp has threads leaves
    threads idle. A table of few elements has few threads that add up rows. Atomic additions to few numbers wait for each other.
    H200: 2^26 of them to 1024 numbers take 3044 us.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"v": 8192, "t": 262144}
    >>> [segments(Problem(op="scatter_add", sizes={**sizes, "d": d}, dtype="bf16"), H200)[0] for d in (1024, 2)]
    ['cuda_segments', 'cuda_atomics_vec16']
    >>> segments(Problem(op="scatter_add", sizes={"v": 512, "t": 2**25, "d": 2}, dtype="bf16"), H200)[0]
    'cuda_shared'
    >>> few = ({"v": 5, "t": 4, "d": 130440}, {"v": 56, "t": 1193240, "d": 552})
    >>> [segments(Problem(op="scatter_add", sizes=one, dtype="fp16"), H200)[0] for one in few]
    ['cuda_few_rows', 'cuda_atomics_vec16']
    """
    v, t, d = (problem.sizes[axis] for axis in ("v", "t", "d"))
    if t <= min(FEW_ROWS, FEW_OF_A_SUM * v) and t * d <= FEW_FP32_ADDITIONS:
        return ("cuda_few_rows", "cuda_atomics_vec16", "triton_atomics")
    if d < WARP:
        if v * d <= SHARED_SUMS and t >= ADDITIONS_SAVED * card.multiprocessors * v:
            return ("cuda_shared", "cuda_atomics_vec16", "triton_atomics")
        return ("cuda_atomics_vec16", "triton_atomics")
    few = t * d <= FEW_FP32_ADDITIONS if problem.dtype == "fp32" else (2 * v + t) * d <= FEW_ADDITIONS
    if few or (v * d <= FEW_SUMS and whole_vectors(problem, "d")):
        return ("cuda_atomics_vec16", "cuda_segments", "triton_segments")
    return ("cuda_segments", "triton_segments")
