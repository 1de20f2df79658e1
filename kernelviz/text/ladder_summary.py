"""One sentence about a ladder: from where to where, the largest gain, what the last rungs give, and the libraries."""

from kernelviz.core import units
from kernelviz.metrics.comparison import Pair
from kernelviz.metrics.ladder import Metric
from kernelviz.metrics.ladder_summary import SMALL, LadderSummary, value_of
from kernelviz.text.ladder import (
    Naming,
    describe_techniques,
    format_backend,
    format_estimate,
    format_times,
    format_value,
)
from kernelviz.text.results import format_variant
from kernelviz.text.roofs import format_share
from kernelviz.text.text import Text, join

_MOST_NAMED = 4
"""Slower rungs that the sentence names."""


def describe_summary(summary: LadderSummary | None, metric: Metric, name: Naming = format_variant) -> Text:
    """One or two sentences about a ladder: from where to where, the largest gain, what the last rungs give, and the library."""
    if summary is None:
        return Text("No rung has a correct time yet.")
    first, best = (value_of(step.row, metric) for step in (summary.first, summary.best))
    title = format_backend(summary.backend)
    if summary.steps == 1 or first is None or best is None:
        value = format_value(best or first, metric)
        parts = [f"{title}: {name(summary.best.variant)} is the only rung with a correct time, {value}"]
    elif summary.total is None:
        value = format_value(best, metric)
        parts = [
            f"{title}: {summary.steps} rungs, of which the first, {name(summary.best.variant)}, is the fastest with {value}"
        ]
    else:
        span = _span(first.estimate, best.estimate, metric)
        times = _times(summary.total)
        parts = [f"{title}: {summary.steps} rungs from {span}{times}"]
    if summary.largest is not None and summary.largest.speed_up is not None and summary.steps > 2:
        gain = units.factor(summary.largest.speed_up.estimate)
        adds = describe_techniques(summary.largest)
        largest = f"{name(summary.largest.variant)}{f' (new technique: {adds})' if adds else ''}"
        parts.append(f"the largest gain is {largest}, {gain}× over the one before{_over_best(summary, name)}")
    if summary.slower:
        slower = [name(step.variant) for step in summary.slower[:_MOST_NAMED]]
        more = len(summary.slower) - len(slower)
        slower += [f"{more} more"] if more else []
        *most, last = slower
        listed = f"{', '.join(most)} and {last}" if most else last
        parts.append(f"{listed} {'makes' if len(slower) == 1 else 'make'} it slower")
    if summary.tail is not None:
        parts.append(_tail(*summary.tail, name))
    against = _against_library(summary, name)
    return join(" ", [f"{'; '.join(parts)}.", against])


def _over_best(summary: LadderSummary, name: Naming) -> str:
    """How the largest gain compares with the fastest rung before it, if that is another one."""
    pair = summary.largest_over_best
    if pair is None or pair.ratio is None:
        return ""
    fastest = name(pair.before.variant)
    if pair.kind in ("same", "unclear"):
        return (
            f", and {'as fast as' if pair.kind == 'same' else 'within the noise of'} {fastest}, the fastest before it"
        )
    ratio = pair.ratio.inverse() if pair.kind == "faster" else pair.ratio
    return f", and {units.factor(ratio.estimate)}× {pair.kind} than {fastest}, the fastest before it"


def _span(first: float, best: float, metric: Metric) -> str:
    """Two values of one metric, the unit once if it is the same.

    >>> _span(4.0e12, 799e12, "rate"), _span(0.5e9, 4.46e12, "bandwidth")
    ('4.00 to 799 TFLOP/s', '500 MB/s to 4.46 TB/s')
    """
    low, high = format_estimate(first, metric), format_estimate(best, metric)
    number, _, unit = low.partition(" ")
    return f"{number} to {high}" if high.endswith(f" {unit}") else f"{low} to {high}"


def _times(total: Pair) -> str:
    if total.ratio is None or total.kind != "faster":
        return ""
    return f", {units.factor(1 / total.ratio.estimate)}×"


def _tail(count: int, pair: Pair, name: Naming) -> str:
    """What the last rungs change together. It is measured, not the product of their steps, which can differ from it by the
    noise of each."""
    if pair.ratio is None:
        return f"the last {count} together change less than {units.percent(SMALL, 0)}"
    change = 1 / pair.ratio.estimate - 1
    if pair.kind == "same":
        return f"the last {count} together change nothing that can be measured"
    if pair.kind == "unclear":
        return f"the last {count} together change no more than the noise ({units.percent(abs(change))})"
    ratio = pair.ratio.inverse() if pair.kind == "faster" else pair.ratio
    before = f"{name(pair.before.variant)}, compared directly in the same rounds"
    return f"with the last {count} together it is {format_times(ratio)} {pair.kind} than with {before}"


def _against_library(summary: LadderSummary, name: Naming) -> str:
    """How the fastest rung compares with the fastest library and with the roof."""
    named = summary.steps == 1 or summary.best is summary.first
    subject = "It" if named else f"The fastest, {name(summary.best.variant)},"
    share = None if summary.best.row is None else summary.best.row.efficiency
    roof = "" if share is None else f"{format_share(share)} of the roof"
    pair = summary.library
    if pair is None:
        return f"{subject} reaches {roof}." if roof else ""
    library = f"{name(pair.before.variant)}, the fastest library{f', and reaches {roof}' if roof else ''}"
    if pair.kind in ("faster", "slower") and pair.ratio is not None:
        ratio = pair.ratio.inverse() if pair.kind == "faster" else pair.ratio
        return f"{subject} is {format_times(ratio)} {pair.kind} than {library}."
    return f"{subject} {'ties with' if pair.kind == 'same' else 'cannot be told from'} {library}."
