"""The variant that a user of `histogram` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

FEWEST, FEW = 2**14, 2**19
"""H200: 2^16 bytes take 3.3 us with counters a warp and 3.6 with counters a lane, 303,862 take 3.35 and 3.62, 942,304 4.25 and
3.95; 2^28 take 103 and 63. Up to the first, one block counts all in one launch, which was not measured yet: 891 and 8,992 bytes
took 2.56 and 2.75 us with counters of several blocks in two launches, and 3.35 and 3.30 with counters a warp."""


def histogram(problem: Problem, card: Card) -> tuple[str, ...]:
    """Counters for each lane, which never wait for each other; counters for each warp up to 2^19 bytes, and for a block up to
    2^14, since clearing and adding counters takes longer than counting.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [histogram(Problem(op="histogram", sizes={"n": n}, dtype="uint8"), H200)[0] for n in (1, 8992, 65536, 268435456)]
    ['cuda_shared', 'cuda_shared', 'cuda_per_warp', 'cuda_per_lane']
    """
    if problem.sizes["n"] <= FEWEST:
        return ("cuda_shared", "cuda_per_warp")
    return ("cuda_per_warp",) if problem.sizes["n"] <= FEW else ("cuda_per_lane", "cuda_per_warp")
