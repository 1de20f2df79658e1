"""Why a case is faster than its roof: a share above 100 % is explained where it stands."""

from dataclasses import dataclass
from typing import Literal

from kernelviz.core import Cost, DataSheetRoof, Figure
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.roof_checks import WRITTEN_SHARES
from kernelviz.metrics.roofline import SpeedOfLight

AboveRoofKind = Literal["within_intervals", "data_sheet", "warm_data", "last_writes", "other_mix", "faster_kernel"]
SAME_MIX = 0.1
"""A stream whose share of written bytes differs by less has the mix of the problem."""


@dataclass(frozen=True, slots=True)
class AboveRoof:
    """The share of the roof, above 1, and the reason that the facts allow. `stream_bytes`: of the smallest measured stream."""

    kind: AboveRoofKind
    share_fraction: float
    stream_bytes: int | None = None


def above_roof(cost: Cost, light: SpeedOfLight, figure: Figure, headline: Headline = "cold") -> AboveRoof | None:
    """Why a case takes less time than its roofs allow; None if it does not.

    The first reason that applies: both intervals allow the roof; the roof is a data sheet's; the caches were not flushed, and the
    data are compared with memory; the problem is smaller than every measured stream, so more of its last writes stay in the
    cache; no stream has its mix of reads and writes; its kernel is faster than the one that measured the roof.
    """
    share = light.time_s / figure.estimate
    if share <= 1:
        return None
    roof, memory = light.roof, light.memory
    value = roof.rate_flop_per_s or roof.bandwidth_bytes_per_s or 0.0
    widest = (roof.high or value) / value if value else 1.0
    longest = figure.high if figure.high is not None else figure.estimate
    if light.time_s / widest <= longest and (roof.high is not None or figure.high is not None):
        return AboveRoof("within_intervals", share)
    if isinstance(roof, DataSheetRoof):
        return AboveRoof("data_sheet", share)
    if light.bound == "memory" and memory.level != "l2":
        if headline == "warm":
            return AboveRoof("warm_data", share)
        if memory.moved_bytes and cost.written_bytes and cost.moved_bytes < memory.moved_bytes:
            return AboveRoof("last_writes", share, stream_bytes=memory.moved_bytes)
        if memory.name in WRITTEN_SHARES and cost.moved_bytes:
            written = cost.written_bytes / cost.moved_bytes
            if abs(WRITTEN_SHARES[memory.name] - written) >= SAME_MIX:
                return AboveRoof("other_mix", share)
    return AboveRoof("faster_kernel", share)
