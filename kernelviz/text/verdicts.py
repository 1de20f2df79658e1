"""Verdicts in text: which of two times is shorter, by how much, and what that rests on."""

from collections.abc import Sequence
from typing import assert_never

from kernelviz.core import DeviceKind, LaunchMode, units
from kernelviz.metrics.statistics import Verdict
from kernelviz.metrics.verdict_reasons import (
    ByBaseline,
    Clears,
    Failed,
    FewBlocks,
    FewSharedRounds,
    FloorTooWide,
    Incomparable,
    MethodUnknown,
    NoSharedRounds,
    NoTime,
    OneMeasurement,
    OtherClocks,
    OtherData,
    OtherDevices,
    OtherLaunches,
    OtherTimers,
    PairReason,
    SameCode,
    SamplesUnknown,
    Side,
    Straddles,
    TracingTakenOff,
    TracingUnknown,
    VerdictReason,
)
from kernelviz.text.failures import STAGES
from kernelviz.text.quality import TIMERS
from kernelviz.text.text import Text

LAUNCHES: dict[LaunchMode, Text] = {
    "graph": Text("in a graph"),
    "stream": Text("into the stream"),
    "call": Text("one by one"),
}


def format_verdict(verdict: Verdict) -> Text:
    """A verdict with its sign and its interval.

    >>> from kernelviz.metrics.statistics import Interval
    >>> print(format_verdict(Verdict("faster", Interval(0.5, 0.49, 0.51), 0.005, 30, Clears("below"))))
    ▲ 2.00× faster (1.96–2.04)
    >>> print(format_verdict(Verdict("slower", Interval(2.0, 1.96, 2.04), 0.005, 30, Clears("above"))))
    ▼ 2.00× slower (1.96–2.04)
    >>> print(format_verdict(Verdict("unclear", None, None, 0, NoSharedRounds())))
    ? unclear: no round measured both
    """
    ratio = verdict.ratio
    match verdict.word:
        case "faster" if ratio and ratio.low and ratio.high:
            return Text(f"▲ {1 / ratio.estimate:.2f}× faster ({1 / ratio.high:.2f}–{1 / ratio.low:.2f})")
        case "slower" if ratio and ratio.low and ratio.high:
            return Text(f"▼ {ratio.estimate:.2f}× slower ({ratio.low:.2f}–{ratio.high:.2f})")
        case "same" if verdict.floor is not None:
            return Text(f"= same (within {units.percent(verdict.floor)})")
        case _:
            return Text("? unclear: ") + describe_verdict_reason(verdict.reason)


def describe_pair_reason(reason: PairReason) -> Text:
    """What the word of a pair rests on, or why it has no verdict."""
    match reason:
        case SameCode():
            return Text("same source, same launches, same compilers: noise")
        case (
            NoSharedRounds()
            | FewSharedRounds()
            | Clears()
            | FloorTooWide()
            | Straddles()
            | SamplesUnknown()
            | FewBlocks()
            | ByBaseline()
        ):
            return describe_verdict_reason(reason)
        case _:
            return _incomparable(reason)


def describe_verdict_reason(reason: VerdictReason) -> Text:
    """What a verdict rests on."""
    match reason:
        case ByBaseline(reason=by):
            return Text("by way of the baseline, as no round measured both: ") + describe_verdict_reason(by)
        case NoSharedRounds(with_baseline=True):
            return Text("no round measured both")
        case NoSharedRounds():
            return Text("no round measured both, and none measured each with the baseline")
        case FewSharedRounds(rounds=rounds, needed=needed):
            return Text(f"{rounds} shared rounds, {needed} are needed")
        case Clears(where=where):
            said = {"below": "below", "above": "above", "inside": "inside"}[where]
            return Text(f"the interval lies {said} the noise floor")
        case FloorTooWide(floor=floor):
            return Text(f"the noise floor, {100 * floor:.1f} %, is too wide to call them the same")
        case Straddles():
            return Text("the interval straddles the noise floor; a larger budget may decide")
        case SamplesUnknown(needed=needed):
            return Text(f"the samples of one side are not known; {needed} blocks are needed on both")
        case FewBlocks(blocks=blocks, needed=needed):
            return Text(f"{blocks} blocks on one side; {needed} blocks are needed on both")
        case _:
            assert_never(reason)


def _incomparable(reason: Incomparable) -> Text:
    match reason:
        case Failed(side=side, stage=stage):
            return Text(f"{side}: {STAGES[stage]}")
        case NoTime(side=side, headline=headline):
            return Text(f"{side}: no {headline} time")
        case OtherDevices(before=before, after=after):
            return Text(f"a {_device(before)} in A, a {_device(after)} in B")
        case OtherClocks(before=first, after=second):
            return Text(f"{first or 'clock mode unknown'} in A, {second or 'clock mode unknown'} in B")
        case OtherData(before=data, after=other):
            return Text(f"{data or 'unknown'} data in A, {other or 'unknown'} in B")
        case OtherTimers(before=timer, after=another):
            return Text(f"{TIMERS[timer]} in A, {TIMERS[another]} in B")
        case OtherLaunches(before=launch, after=way):
            return Text(f"{LAUNCHES[launch]} in A, {LAUNCHES[way]} in B")
        case MethodUnknown(what=what, sides=sides):
            return Text(f"{what} unknown in {_sides(sides)}")
        case TracingUnknown(sides=sides):
            return Text(f"what tracing adds is unknown in {_sides(sides)}")
        case TracingTakenOff(side=side):
            return Text(f"what tracing adds was taken off in {side} only")
        case OneMeasurement():
            return Text("A and B are one measurement")
        case _:
            assert_never(reason)


def _device(kind: DeviceKind) -> str:
    return "GPU" if kind == "cuda" else "CPU"


def _sides(sides: Sequence[Side]) -> str:
    return " and ".join(sides)
