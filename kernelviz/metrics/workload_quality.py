"""Measurement quality of a case of a workload, by the levels of the page Bench and by what a workload can know.

Where a rule is that of `metrics.quality`, its fact is the same type.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelviz.core.workload import Measured, WorkloadFigure
from kernelviz.metrics.quality import WIDE, OtherProcesses, QualityLevel, Width, not_good, worst_level
from kernelviz.metrics.stability import Stability, stability
from kernelviz.metrics.workloads import WorkloadRow, as_figure

MOST_NOISE = 0.5
"""A value that is known to half of itself only, or whose baseline differs from itself by so much, is unreliable."""


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """By how much the baseline differs from itself, a fraction."""

    fraction: float


@dataclass(frozen=True, slots=True)
class GainApart:
    """The gain by rounds, and the ratio of the two medians, which is outside of its interval."""

    gain: float
    of_values: float


WorkloadFact = Width | Stability | OtherProcesses | NoiseFloor | GainApart


@dataclass(frozen=True, slots=True)
class WorkloadPart:
    """One aspect of the quality."""

    fact: WorkloadFact
    level: QualityLevel


@dataclass(frozen=True, slots=True)
class WorkloadQuality:
    """All aspects of the headline of one case."""

    parts: tuple[WorkloadPart, ...]

    @property
    def level(self) -> QualityLevel:
        """The worst level."""
        return worst_level(self.parts)

    @property
    def reasons(self) -> tuple[WorkloadPart, ...]:
        """Why it is not good, worst first."""
        return not_good(self.parts)


def workload_quality(row: WorkloadRow, headline: WorkloadFigure) -> WorkloadQuality | None:
    """The quality of the headline of a case; None without a measured value."""
    value = row.value(headline.name)
    if not isinstance(value, Measured) or row.result is None:
        return None
    gain = row.gains.get(headline.name)
    parts = [WorkloadPart(Width(width := half_width(value), value.n), _of_noise(width, WIDE))]
    if row.floor is not None:
        parts.append(WorkloadPart(NoiseFloor(row.floor), _of_noise(row.floor, WIDE)))
    if gain is not None and gain.apart and gain.of_values is not None:
        parts.append(WorkloadPart(GainApart(gain.ratio.estimate, gain.of_values), "note"))
    figure = as_figure(value, inverse=headline.better == "higher")
    if figure is not None and (levels := stability(figure)).unstable and headline.unit == "s":
        parts.append(WorkloadPart(levels, "suspect"))
    parts += _other_processes([c.other_processes for c in row.result.conditions])
    return WorkloadQuality(tuple(parts))


def half_width(value: Measured) -> float | None:
    """Half the interval as a fraction of the value; None without an interval."""
    if value.low is None or value.high is None or not value.estimate:
        return None
    return (value.high - value.low) / 2 / abs(value.estimate)


def _of_noise(fraction: float | None, most: float) -> QualityLevel:
    return "suspect" if fraction is None or fraction > MOST_NOISE else "note" if fraction > most else "good"


def _other_processes(counts: Sequence[int | None]) -> list[WorkloadPart]:
    """On GPUs, of which the driver lists them. On a processor, other programs always run, and nobody counts them."""
    known = [count for count in counts if count is not None]
    return [WorkloadPart(OtherProcesses(sum(known)), "suspect" if sum(known) else "good")] if known else []
