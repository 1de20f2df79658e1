"""Whether the samples of a device pass the thresholds that the user set: it idles during a run, or memory in use grows."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelviz.core import Sample

IDLE_OVER_S = 30.0
IDLE_LEAST = 10
"""At least so many samples of those 30 s must be of a measurement, so that one pause between two cases raises no alert."""
GROWTH_OVER_S = 600.0
_ENDS_S = 60.0
"""Growth is from the minimum of the first minute to the minimum of the last minute, so that a short peak does not count."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Set by the user. The default of `least_busy_fraction` (60 %) is from the elementwise guide, which has none for memory."""

    least_busy_fraction: float = 0.60
    most_growth_bytes: float = 2.0**30


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertState:
    """The samples compared with the thresholds. None is unknown: no measurement, too few samples, or no such report."""

    busy_fraction: float | None
    growth_bytes: float | None
    too_idle: bool
    growing: bool


def alert_state(samples: Sequence[Sample], thresholds: Thresholds) -> AlertState:
    """Mean utilisation during measurements of the last 30 s, and growth of the memory in use over ten minutes.

    >>> idle = [Sample(at_s=float(i), running=True, busy_fraction=0.2) for i in range(40)]
    >>> alert_state(idle, Thresholds()).too_idle
    True
    """
    busy, growth = (_busy(samples), _growth(samples)) if samples else (None, None)
    return AlertState(
        busy_fraction=busy,
        growth_bytes=growth,
        too_idle=busy is not None and busy < thresholds.least_busy_fraction,
        growing=growth is not None and growth > thresholds.most_growth_bytes,
    )


def _busy(samples: Sequence[Sample]) -> float | None:
    since = samples[-1].at_s - IDLE_OVER_S
    busy = [s.busy_fraction for s in samples if s.at_s > since and s.running and s.busy_fraction is not None]
    return sum(busy) / len(busy) if samples[-1].running and len(busy) >= IDLE_LEAST else None


def _growth(samples: Sequence[Sample]) -> float | None:
    since = samples[-1].at_s - GROWTH_OVER_S
    known = [(s.at_s, s.used_bytes) for s in samples if s.at_s >= since and s.used_bytes is not None]
    if not known or known[-1][0] - known[0][0] < 2 * _ENDS_S:
        return None
    first = min(used for at, used in known if at <= known[0][0] + _ENDS_S)
    last = min(used for at, used in known if at >= known[-1][0] - _ENDS_S)
    return float(last - first)
