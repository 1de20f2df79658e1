"""Text about gains of workloads: what a gain is, its verdict with the noise floor, and the measurement quality of a case."""

from collections.abc import Mapping

from kernelviz.core import units
from kernelviz.metrics.workload_quality import GainApart, NoiseFloor, WorkloadPart, WorkloadQuality
from kernelviz.metrics.workloads import Gain, WorkloadRow
from kernelviz.text.failures import format_stage
from kernelviz.text.quality import PARTS, format_level
from kernelviz.text.text import Template, Text, fill, join
from kernelviz.text.verdicts import describe_verdict_reason

GAIN_SENTENCES = (
    Text("A gain above 1 is better than the baseline at the same point."),
    Text(
        "It is the median of the ratios within rounds; where the two medians have another ratio, that is given too (by the "
        "medians)."
    ),
    Text("A verdict needs an interval that clears the noise floor, which is the baseline compared with itself."),
)
GAIN_MEANING = join(" ", GAIN_SENTENCES)
VERDICTS: Mapping[str, Text] = {
    "faster": Text("better"),
    "slower": Text("worse"),
    "same": Text("the same"),
    "unclear": Text("unclear"),
}
"""A verdict on a figure, which need not be a time."""


_SMALL_FACTOR = 0.095
"""A smaller factor has two significant digits, because two decimals would leave nothing of it."""


def format_gain(gain: Gain | None) -> Text:
    """A gain with its interval; above 1 is better.

    >>> from kernelviz.metrics.statistics import Interval
    >>> str(format_gain(Gain(Interval(1.46e-5, None, None), None))), str(format_gain(Gain(Interval(0.011, 0.004, 0.02), None)))
    ('1.5e-05 ×', '0.011 × (0.004 to 0.02)')
    """
    if gain is None:
        return Text("–")
    low, high = gain.ratio.low, gain.ratio.high
    middle = _factor(gain, gain.ratio.estimate)
    ends = "" if low is None or high is None else f" ({_factor(gain, low)} to {_factor(gain, high)})"
    return Text(f"{middle} ×{ends}")


def _factor(gain: Gain, value: float) -> str:
    """A factor with the digits of the gain."""
    estimate, low, high = gain.ratio.estimate, gain.ratio.low, gain.ratio.high
    if estimate < _SMALL_FACTOR:
        return units.significant(value, 2)
    if low is None or high is None:
        return units.factor(value)
    return f"{value:,.{units.interval_decimals(estimate, low, high)}f}"


def format_gain_beside_values(gain: Gain | None) -> Text:
    """A gain in a table that also shows the two medians, with their ratio where that is another number.

    >>> from kernelviz.metrics.statistics import Interval
    >>> str(format_gain_beside_values(Gain(Interval(3.37, 2.7, 3.6), None, of_values=3.305, within_rounds=True)))
    '3.4 × (2.7 to 3.6); by the medians 3.3 ×'
    """
    by_medians = format_gain_by_medians(gain)
    return format_gain(gain) + ("" if by_medians is None else f"; by the medians {by_medians}")


def format_gain_by_medians(gain: Gain | None) -> Text | None:
    """The ratio of the two medians that are shown; None where it reads as the gain."""
    if gain is None or gain.of_values is None or not gain.seen_apart:
        return None
    by_medians = _factor(gain, gain.of_values)
    return None if by_medians == _factor(gain, gain.ratio.estimate) else Text(f"{by_medians} ×")


def format_verdict(gain: Gain | None) -> Text:
    """Better, worse, the same or unclear; empty without a verdict."""
    return Text("") if gain is None or gain.verdict is None else VERDICTS[gain.verdict.kind]


def format_outcome(row: WorkloadRow, figure: str) -> Text | None:
    """The verdict on a case, or at which stage it failed; None for the baseline and where there is no verdict."""
    if row.result is not None and row.result.failure is not None:
        return Text(f"✕ {format_stage(row.result.failure)}")
    return format_verdict(row.gains[figure]) if figure in row.gains else None


def describe_verdict(gain: Gain | None) -> Text:
    """The verdict with its reason; empty without a verdict."""
    if gain is None or gain.verdict is None:
        return Text("")
    return Text(f"{VERDICTS[gain.verdict.kind]}: {describe_verdict_reason(gain.verdict.reason)}")


def format_floor(floor: float | None) -> Text | None:
    """The noise floor; None if it is unknown.

    >>> str(format_floor(0.859))
    '±85.9 %'
    """
    return None if floor is None else Text(f"±{units.width(floor)}")


def _apart(fact: GainApart) -> str:
    first, second = (units.significant(gain, 3) for gain in (fact.of_values, fact.gain))
    return f"{first} × by the ratio of the two medians but {second} × by the median of the ratios within rounds"


_PARTS: Mapping[type, Template] = {
    **PARTS,
    NoiseFloor: lambda fact: f"the baseline differs from itself by ±{units.width(fact.fraction)}",
    GainApart: _apart,
}


def describe_quality_part(part: WorkloadPart) -> Text:
    """One aspect of the quality of a case."""
    return fill(_PARTS, part.fact)


def describe_workload_quality(quality: WorkloadQuality | None) -> Text:
    """The level, and what is behind it if it is not good; empty without a measured value."""
    if quality is None:
        return Text("")
    reasons = join(", ", map(describe_quality_part, quality.reasons))
    return format_level(quality.level) + (f": {reasons}" if quality.reasons else "")
