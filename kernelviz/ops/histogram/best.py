"""The variant that a user of `histogram` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

FEWEST, FEW = 2**14, 2**20
"""H200: 2^16 bytes take 3.3 us with counters a warp and 3.6 with counters a lane; 2^28 take 103 and 63. 891 and 8,992 bytes
take 2.56 and 2.75 us with counters a block, and 3.35 and 3.30 with counters a warp."""
LANE_BYTES = 16
"""That one lane loads at once. H200: 1 byte takes 2.41 us with counters in memory alone, and 2.50 with counters a block."""


def histogram(problem: Problem, card: Card) -> tuple[str, ...]:
    """Counters for each lane, which never wait for each other; counters for each warp up to 2^20 bytes, for each block up to
    2^14, and in memory alone up to 16, since clearing and adding counters takes longer than counting.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [histogram(Problem(op="histogram", sizes={"n": n}, dtype="uint8"), H200)[0] for n in (1, 891, 65536, 268435456)]
    ['cuda_global', 'cuda_shared', 'cuda_per_warp', 'cuda_per_lane']
    """
    if problem.sizes["n"] <= LANE_BYTES:
        return ("cuda_global", "cuda_shared")
    if problem.sizes["n"] <= FEWEST:
        return ("cuda_shared", "cuda_per_warp")
    return ("cuda_per_warp",) if problem.sizes["n"] <= FEW else ("cuda_per_lane", "cuda_per_warp")
