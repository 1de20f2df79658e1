"""Text of verdicts: which of two times is shorter, by how much, and why."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernelviz.core import LaunchMode, units
from kernelviz.metrics import verdict_reasons as v
from kernelviz.metrics.verdicts import Verdict
from kernelviz.text.failures import STAGES
from kernelviz.text.quality import TIMERS
from kernelviz.text.text import Template, Text, fill

LAUNCHES: Mapping[LaunchMode, Text] = {
    "graph": Text("in a graph"),
    "stream": Text("into the stream"),
    "call": Text("one by one"),
}
_METHODS: Mapping[v.MethodPart, Callable[[Any], str]] = {
    "device": lambda kind: "a GPU" if kind == "cuda" else "a CPU",
    "clock": lambda clock: clock or "clock mode unknown",
    "load": lambda seconds: f"{seconds} s",
    "data": lambda data: f"{data or 'unknown'} data",
    "timer": lambda timer: str(TIMERS[timer]),
    "launch": lambda launch: str(LAUNCHES[launch]),
}
_WITH_BASELINE = {True: "", False: ", and none measured each of them with the baseline"}
_METHOD_PARTS: Mapping[v.MethodPart, str] = {
    "device": "kind of device", "clock": "clock mode", "load": "load before each variant", "data": "kind of input data",
    "timer": "timer", "launch": "launch method",
}  # fmt: skip


def _floor(floor: float) -> str:
    return f"±{units.width(floor)} noise floor"


def _lacking(sides: Sequence[v.Side]) -> str:
    return f"neither {' nor '.join(sides)} has a" if len(sides) > 1 else f"{sides[0]} has no"


VERDICT_REASONS: Mapping[type, Template] = {
    v.NoSharedRounds: lambda reason: f"no round measured both{_WITH_BASELINE[reason.with_baseline]}",
    v.FewSharedRounds: "only {0.rounds} rounds measured both, and an interval needs {0.needed}",
    v.Clears: lambda reason: (
        f"the whole 95 % interval is {'inside' if reason.where == 'inside' else 'beyond'} the {_floor(reason.floor)}"
    ),
    v.OtherLaunch: lambda reason: (
        f"one was launched in graphs and the other into the stream, which alone may differ by {units.width(reason.floor)}"
    ),
    v.FloorTooWide: lambda reason: f"measurement noise ({units.width(reason.floor)}) is too high to compare",
    v.NotStable: "one of the times has two levels, and the verdict depends on which one counts",
    v.Straddles: lambda reason: f"the 95 % interval is partly inside the {_floor(reason.floor)} (measure longer)",
    v.FewBlocks: lambda reason: (
        "the samples of one side are unknown"
        if reason.blocks is None
        else f"one side has only {units.counted(reason.blocks, 'block')}, and an interval needs {reason.needed}"
    ),
    v.Apart: lambda reason: f"measured in processes of their own: {describe_verdict_reason(reason.reason)}",
    v.ByBaseline: lambda reason: f"compared through the baseline: {describe_verdict_reason(reason.reason)}",
    v.SameCode: "source, kernels and compilers are identical, so the difference is noise",
    v.Failed: lambda reason: f"{reason.side} has no correct time ({STAGES[reason.stage]})",
    v.NoTime: lambda reason: f"{_lacking(reason.sides)} {reason.headline} time",
    v.OtherMethod: lambda reason: (
        f"the {_METHOD_PARTS[reason.what]} differs: "
        + " in A, ".join(_METHODS[reason.what](v) for v in (reason.before, reason.after))
        + " in B"
    ),
    v.MethodUnknown: lambda reason: f"the {_METHOD_PARTS[reason.what]} is unknown in {' and '.join(reason.sides)}",
    v.TracingUnknown: lambda reason: f"the tracing overhead is unknown in {' and '.join(reason.sides)}",
    v.TracingSubtracted: "the tracing overhead was subtracted in {0.side} only",
    v.OtherTool: "the files of another tool have no samples of {0.time}, so only the ratio is known",
    v.OneMeasurement: "A and B are the same measurement",
}


def format_verdict(verdict: Verdict) -> Text:
    """A verdict with its sign and its interval.

    >>> from kernelviz.metrics.statistics import Interval
    >>> print(format_verdict(Verdict("faster", Interval(0.5, 0.49, 0.51), 0.005, 30, v.Clears("below", 0.005))))
    ▲ 2.00× faster (1.96–2.04)
    >>> print(format_verdict(Verdict("slower", Interval(2.0, 1.96, 2.04), 0.005, 30, v.Clears("above", 0.005))))
    ▼ 2.00× slower (1.96–2.04)
    >>> print(format_verdict(Verdict("unclear", None, None, 0, v.NoSharedRounds())))
    ? unclear: no round measured both
    """
    ratio = verdict.ratio
    if ratio and ratio.low and ratio.high:
        if verdict.kind == "faster":
            factor, low, high = units.factor_with_interval(1 / ratio.estimate, 1 / ratio.high, 1 / ratio.low)
            return Text(f"▲ {factor}× faster ({low}–{high})")
        if verdict.kind == "slower":
            factor, low, high = units.factor_with_interval(ratio.estimate, ratio.low, ratio.high)
            return Text(f"▼ {factor}× slower ({low}–{high})")
    if verdict.kind == "same" and verdict.floor is not None:
        return Text(f"= same (within {units.percent(verdict.floor)})")
    return Text("? unclear: ") + describe_verdict_reason(verdict.reason)


def describe_verdict_reason(reason: v.PairReason) -> Text:
    """The reason for a verdict, or the reason why there is none."""
    return fill(VERDICT_REASONS, reason)
