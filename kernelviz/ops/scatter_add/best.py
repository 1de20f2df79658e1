"""The variant that a user of `scatter_add` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

WARP = 32
SHARED_SUMS = 2**14
"""64 KiB of fp32, which a block has on every card."""
ADDITIONS_SAVED = 4
"""Elements of src for each sum that a block adds to memory, as `shared_table` has them. Not measured yet."""


def segments(problem: Problem, card: Card) -> tuple[str, ...]:
    """One sum for each row of the table; for rows of fewer than 32 elements sums in shared memory, if they fit and each block
    has four additions for each of them, else atomic additions.

    Sorting the ids takes as long for a short row as for a long one, and a row of fewer elements than a warp has threads leaves
    threads idle. Atomic additions to few numbers wait for each other. H200: 2^26 of them to 1024 numbers take 3044 us.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"v": 8192, "t": 262144}
    >>> [segments(Problem(op="scatter_add", sizes={**sizes, "d": d}, dtype="bf16"), H200)[0] for d in (1024, 2)]
    ['cuda_segments', 'cuda_atomics_vec16']
    >>> segments(Problem(op="scatter_add", sizes={"v": 512, "t": 2**25, "d": 2}, dtype="bf16"), H200)[0]
    'cuda_shared'
    """
    v, t, d = (problem.sizes[axis] for axis in ("v", "t", "d"))
    if d < WARP:
        if v * d <= SHARED_SUMS and t >= ADDITIONS_SAVED * card.multiprocessors * v:
            return ("cuda_shared", "cuda_atomics_vec16", "triton_atomics")
        return ("cuda_atomics_vec16", "triton_atomics")
    return ("cuda_segments", "triton_segments")
