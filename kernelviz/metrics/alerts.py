"""When a device's samples call for somebody's eye: thresholds of the user's, looked at over some time."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelviz.core import Device, Sample, units

IDLE_OVER_S = 30.0
IDLE_LEAST = 10
"""So many samples with a measurement must lie in those 30 s: one pause between two cases is no alert."""
GROWTH_OVER_S = 600.0
_ENDS_S = 60.0
"""Growth is from the least of the first minute to the least of the last one, so that a short peak is none."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The user's. `least_busy_fraction` is the document's of the elementwise guide (60 %); it names no memory growth."""

    least_busy_fraction: float = 0.60
    most_growth_bytes: float = 2.0**30


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """How the samples stand against the thresholds; None: nothing can be said (no measurement, too few samples, unknown)."""

    busy_fraction: float | None
    growth_bytes: float | None
    too_idle: bool
    growing: bool


def standing(samples: Sequence[Sample], thresholds: Thresholds) -> Standing:
    """Mean utilisation while something was measured in the last 30 s, and growth of the memory in use over ten minutes.

    >>> idle = [Sample(at_s=float(i), running=True, busy_fraction=0.2) for i in range(40)]
    >>> standing(idle, Thresholds()).too_idle
    True
    """
    busy, growth = _busy(samples), _growth(samples)
    return Standing(
        busy_fraction=busy,
        growth_bytes=growth,
        too_idle=busy is not None and busy < thresholds.least_busy_fraction,
        growing=growth is not None and growth > thresholds.most_growth_bytes,
    )


def _busy(samples: Sequence[Sample]) -> float | None:
    if not samples or not samples[-1].running:
        return None
    since = samples[-1].at_s - IDLE_OVER_S
    found = [s.busy_fraction for s in samples if s.at_s > since and s.running and s.busy_fraction is not None]
    return sum(found) / len(found) if len(found) >= IDLE_LEAST else None


def _growth(samples: Sequence[Sample]) -> float | None:
    if not samples:
        return None
    end_s = samples[-1].at_s
    known = [(s.at_s, s.used_bytes) for s in samples if s.at_s >= end_s - GROWTH_OVER_S and s.used_bytes is not None]
    if not known or known[-1][0] - known[0][0] < 2 * _ENDS_S:
        return None
    first = min(used for at, used in known if at <= known[0][0] + _ENDS_S)
    last = min(used for at, used in known if at >= known[-1][0] - _ENDS_S)
    return float(last - first)


_BURST = (
    "A burst run keeps the device idle on purpose (at most 40 ms of load in any 200 ms), so that its clock stays up; a sustained "
    "run should be well above"
)


def alert_words(device: Device, found: Standing, thresholds: Thresholds) -> list[str]:
    """A sentence for each threshold that is passed, for page and terminal."""
    said = []
    if found.too_idle:
        why = f". {_BURST}" if device.kind == "cuda" else ""
        said.append(
            f"{device.name} was busy {units.percent(found.busy_fraction, 0)} of the last 30 s while a run is going, below "
            f"your {units.percent(thresholds.least_busy_fraction, 0)}{why}."
        )
    if found.growing:
        said.append(
            f"Memory in use on {device.name} grew by {units.size_bytes(found.growth_bytes)} within ten minutes, more than "
            f"your {units.size_bytes(thresholds.most_growth_bytes)}: something keeps what it no longer needs."
        )
    return said
