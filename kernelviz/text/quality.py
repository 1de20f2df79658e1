"""Measurement quality in text: one line for each time, part by part."""

from collections.abc import Mapping

from kernelviz.core import Clock, LaunchMode, Result, Timer, units
from kernelviz.metrics import quality as q
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.quality import Part, Quality, QualityLevel, method_of, notes_on_other_figures, quality
from kernelviz.text.notes import NOTES, describe_note, format_note
from kernelviz.text.results import describe_configuration
from kernelviz.text.text import Template, Text, fill, join

SIGNS: Mapping[QualityLevel, str] = {"good": "✓", "note": "◐", "suspect": "⚠"}
"""What stands before the word of a level."""
TIMERS: Mapping[Timer, Text] = {
    "cupti": Text("CUPTI timestamps"),
    "kineto": Text("torch.profiler timestamps"),
    "events": Text("events"),
    "host": Text("host clock"),
}
_INCORRECT = {"impossible": "✕ impossibly fast", "wrong": "✕ wrong", "unchecked": "not checked"}
_LAUNCHES: Mapping[LaunchMode, str] = {"graph": ", CUDA graph", "stream": ", stream launch", "call": ""}


def format_level(level: QualityLevel) -> Text:
    """The level as sign and word.

    >>> str(format_level("good"))
    '✓ good'
    """
    return Text(f"{SIGNS[level]} {level}")


def describe_quality(assessment: Quality | None) -> Text:
    """The line: the level, then every part; or that there is no time to judge."""
    if assessment is None:
        return Text("not timed")
    return join(" · ", (format_level(assessment.level), *(describe_part(p) for p in assessment.parts)))


def describe_quality_of(result: Result, headline: Headline = "cold", clock: Clock | None = None) -> Text:
    """The line of a result's time. `clock`: that of the run's method.

    >>> from kernelviz.core.problem import Problem
    >>> from kernelviz.core.result import Figure, Timing
    >>> one = Problem(op="add", sizes={"n": 1}, dtype="fp32")
    >>> print(describe_quality_of(Result(problem=one, variant="v", outcome=Timing())))
    not timed
    >>> print(describe_quality_of(Result(problem=one, variant="v", outcome=Timing(device_cold_s=Figure(estimate=1e-6)))))
    ⚠ suspect · samples unknown · no interval · L2 cold · SM clock unknown, clock mode unknown · throttle unknown · \
repeated blocks unknown · not checked · timer unknown · other processes unknown
    """
    return describe_quality(quality(result, headline, clock))


def describe_part(part: Part) -> Text:
    """One part of the line."""
    return fill(PARTS, part.fact)


def _samples(fact: q.Samples) -> str:
    if fact.count is None:
        return "samples unknown"
    blocks = "" if fact.blocks is None else f" in {fact.blocks} blocks"
    buffers = "" if fact.buffers is None else f" with {units.counted(fact.buffers, 'buffer set')}"
    return f"{fact.count:,} samples{blocks}{buffers}"


def _interval(fact: q.Width) -> str:
    if fact.half_width is None:
        return "no interval: too few blocks" if fact.blocks else "no interval"
    return f"±{units.width(fact.half_width)}"


def _reported_clock(fact: q.ReportedClock) -> str:
    hz = "unknown" if fact.hz is None else f"{units.clock(fact.hz)} as reported, not measured"
    return f"{'clock' if fact.on_host else 'SM clock'} {hz}, {_mode(fact)}"


def _measured_clock(fact: q.MeasuredClock) -> str:
    low = f"{fact.low_hz / 1e6:.0f}–" if fact.moved else ""
    clock = units.clock(fact.high_hz if fact.moved else fact.mean_hz)
    slow = f", in {fact.slow} of {fact.blocks} blocks more than 1 % below the first block" if fact.slow else ""
    return f"SM {low}{clock}, {_mode(fact)}{slow}"


def _mode(fact: q.ReportedClock | q.MeasuredClock) -> str:
    return fact.mode or "clock mode unknown"


def _repeated(fact: q.Repeated) -> str:
    if not fact.blocks:
        return "repeated blocks unknown" if fact.blocks is None else "no block repeated"
    return f"{units.counted(fact.blocks, 'block')} repeated"


def _correctness(fact: q.Correctness) -> str:
    if fact.kind != "correct":
        return _INCORRECT[fact.kind]
    share = (
        ", largest error unknown"
        if fact.of_bound is None
        else f": largest error {fact.of_bound * 100:.0f} % of the bound"
    )
    return f"correct{share}, {units.counted(fact.seeds, 'seed') if fact.seeds else 'seeds unknown'}"


def describe_method(fact: q.Method) -> Text:
    """How a time was taken.

    >>> str(describe_method(q.Method("events", "graph"))), str(describe_method(q.Method("cupti", "graph", 3.2e-7)))
    ('events, CUDA graph (fallback)', 'CUPTI timestamps, CUDA graph, 320 ns of tracing subtracted')
    """
    if fact.timer is None:
        return Text("timer unknown")
    launch = ", launch unknown" if fact.launch is None else _LAUNCHES[fact.launch]
    fallback = " (fallback)" if fact.timer == "events" else ""
    corrected = f", {units.seconds(fact.correction_s, 2)} of tracing subtracted" if fact.correction_s else ""
    return Text(f"{TIMERS[fact.timer]}{launch}{fallback}{corrected}")


def describe_methods_of(result: Result) -> Text:
    """How the device times were taken: of the cold one, and of the warm one where that differs. Empty without a time.

    >>> from kernelviz.core.problem import Problem
    >>> from kernelviz.core.result import Figure, Timing
    >>> graph, stream = (Figure(estimate=1e-6, timer="cupti", launch=mode) for mode in ("graph", "stream"))
    >>> made = Timing(device_cold_s=graph, device_warm_s=stream)
    >>> str(describe_methods_of(Result(problem=Problem(op="add", sizes={"n": 1}, dtype="fp32"), variant="v", outcome=made)))
    'CUPTI timestamps, CUDA graph; warm: CUPTI timestamps, stream launch'
    """
    cold, warm = (
        method_of(f) if f else None for f in (figure_of(result.timing, "cold"), figure_of(result.timing, "warm"))
    )
    return join(
        "; ",
        (
            describe_method(cold) if cold else "",
            f"warm: {describe_method(warm)}" if warm and warm != cold else "",
        ),
    )


def describe_throttle(result: Result) -> Text:
    """What slowed the device down during the cold time, as its measurement quality has it. Empty without a time."""
    assessment = quality(result)
    part = assessment.part("throttle") if assessment else None
    return describe_part(part) if part else Text("")


def describe_notes_on_figures(result: Result) -> Text:
    """The notes on the figures other than the two device times."""
    return join(" · ", map(format_note, notes_on_other_figures(result)))


PARTS: Mapping[type, Template] = {
    q.Samples: _samples,
    q.Width: _interval,
    q.Caches: lambda fact: f"{'caches' if fact.on_host else 'L2'} {fact.headline}",
    q.ReportedClock: _reported_clock,
    q.MeasuredClock: _measured_clock,
    q.Throttle: lambda fact: (
        "throttle unknown" if fact.reasons is None else f"throttle: {', '.join(fact.reasons) or 'none'}"
    ),
    q.Repeated: _repeated,
    q.Correctness: _correctness,
    q.Method: describe_method,
    q.OtherProcesses: lambda fact: f"other processes {'unknown' if fact.count is None else fact.count}",
    q.Configured: describe_configuration,
    **dict.fromkeys(NOTES, describe_note),
}
"""The text of each fact of the line."""
