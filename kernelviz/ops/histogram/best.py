"""The variant that a user of `histogram` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

FEWEST, FEW = 2**14, 2**19
"""H200: 2^16 bytes take 3.3 us with counters a warp and 3.6 with counters a lane, 303,862 take 3.35 and 3.62, 942,304 4.25 and
3.95; 2^28 take 103 and 63. Up to the first, one block counts all in one launch: 16 bytes take 1.07 us so and 3.33 with counters a
warp, 512 1.08 and 3.30, 7,464 1.93 and 3.36; a line through its times meets the others at 18,000."""


def histogram(problem: Problem, card: Card) -> tuple[str, ...]:
    """Counters for the block up to 2^14 bytes, and for each warp up to 2^19, since clearing and adding more counters would
    take longer than counting; else counters for each lane, which never wait for each other.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [histogram(Problem(op="histogram", sizes={"n": n}, dtype="uint8"), H200)[0] for n in (1, 8992, 65536, 268435456)]
    ['cuda_shared', 'cuda_shared', 'cuda_per_warp', 'cuda_per_lane']
    """
    if problem.sizes["n"] <= FEWEST:
        return ("cuda_shared", "cuda_per_warp")
    return ("cuda_per_warp",) if problem.sizes["n"] <= FEW else ("cuda_per_lane", "cuda_per_warp")
