"""The variant that a user of `scatter_add` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

FEW_ROWS, FEW_OF_A_SUM = 1024, 16
"""Of src, which one launch compares with each other instead of a copy of the table in fp32, as few_rows.MOST_ROWS. H200: bf16, 8
rows to 131,344 of 216 take 2.1 us so and 33 by atomic additions, 200 to 16 of 1427 3.9 and 9.6, 176 to 3 of 13,586 18 and 12; 128
to 32 of 1,048,576 179, and 100 by segments."""
SHARED_SUMS, SHARED_ELEMENTS = 2**13, 2**14
"""Elements of a table that a block has in shared memory, with copies against conflicts, and of src that are worth it. H200:
605,235 fp32 rows to 15 of 67 take 66 us so and 605 by atomic additions, 8,990 bf16 to 24 of one 8.6 and 4.2; 160,867 to 11 of 773
753 and 342."""
ADDITIONS_SAVED, BLOCKS = 4, 64
"""Elements of src for each sum that a block adds to memory, as `shared_table` has them, and blocks with as many. H200: 1,721,101
rows to 4,749 of one fp16 take 22 us so and 48 by atomic additions, 1,592 to 8 of 136 fp32 4.9 and 3.6."""
WARP, MANY_ELEMENTS = 32, 2**23
"""Elements of a row that leave no thread of a warp idle, and of src (in 16 bits and the table, which atomic additions copy to
fp32 and back) for which the list of the sorted ids pays. H200: 32,768 rows to 4,096 of 512 bf16 take 23 us by segments and 34 by
atomic additions, 38,352 to 609,272 of 64 31 and 50, 60 to 253 of 97,000 fp32 30 and 14."""


def segments(problem: Problem, card: Card) -> tuple[str, ...]:
    """In 16 bits, one launch for at most 1,024 rows and 16 a sum (one beyond 2^23 elements); else a table in shared memory of
    up to 2^13 elements with 256 additions each and 2^14 in all; sorted segments beyond 2^23 elements if rows have 32 or, in
    16 bits, are fewer than sums; else atomic additions of vectors.

    Elements are those of src, in 16 bits and of the table. In fp32 atomic additions are one launch, too. To few sums they wait
    for each other: 4.7 ns each on an H200.

    >>> from kernelviz.ops.catalog.best import H200
    >>> def best(v, t, d, dtype="bf16"):
    ...     return segments(Problem(op="scatter_add", sizes={"v": v, "t": t, "d": d}, dtype=dtype), H200)[0]
    >>> best(118, 13, 746931), best(512, 2**25, 2), best(8192, 262144, 1024), best(8192, 262144, 2), best(118, 13, 746931, "fp32")
    ('cuda_few_rows', 'cuda_shared', 'cuda_segments', 'cuda_atomics_vec16', 'cuda_segments')
    """
    v, t, d = (problem.sizes[axis] for axis in ("v", "t", "d"))
    is_fp32 = problem.dtype == "fp32"
    many = (t if is_fp32 else v + t) * d > MANY_ELEMENTS
    if not is_fp32 and t <= min(FEW_ROWS, v if many else FEW_OF_A_SUM * v):
        return ("cuda_few_rows", "cuda_segments", "triton_segments", "cuda_atomics_vec16", "cuda_atomics")
    if t >= BLOCKS * ADDITIONS_SAVED * v and v * d <= SHARED_SUMS and t * d >= SHARED_ELEMENTS:
        return ("cuda_shared", "cuda_atomics_vec16", "triton_atomics", "cuda_segments", "cuda_atomics")
    if many and (d >= WARP or (t < v and not is_fp32)):
        return ("cuda_segments", "triton_segments", "cuda_atomics_vec16", "triton_atomics", "cuda_few_rows")
    return (
        "cuda_atomics_vec16",
        "cuda_atomics",
        "triton_atomics",
        "cuda_shared",
        "cuda_segments" if is_fp32 else "cuda_few_rows",
    )
