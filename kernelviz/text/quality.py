"""Measurement quality in text: one line for each time, part by part."""

from collections.abc import Mapping

from kernelviz.core import Clock, LaunchMode, Result, Timer, units
from kernelviz.metrics import quality as q
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.quality import Part, Quality, QualityLevel, method_of, quality
from kernelviz.metrics.stability import Stability
from kernelviz.text.notes import NOTES, describe_note
from kernelviz.text.results import describe_configuration
from kernelviz.text.text import Template, Text, fill, join

SIGNS: Mapping[QualityLevel, str] = {"good": "✓", "note": "◐", "suspect": "⚠"}
"""The sign before the name of a level."""
LEVEL_NAMES: Mapping[QualityLevel, str] = {"good": "good", "note": "caveats", "suspect": "unreliable"}
"""The name of a level for people."""
INTERVAL_HELP = (
    "Half the 95 % interval: the spread of the blocks, other buffers and processes, the timer's resolution, and the tracing "
    "overhead."
)
TIMERS: Mapping[Timer, Text] = {
    "cupti": Text("CUPTI timestamps"),
    "kineto": Text("torch.profiler timestamps"),
    "events": Text("CUDA events"),
    "host": Text("host clock"),
}
_INCORRECT = {"impossible": "✕ impossibly fast", "wrong": "✕ wrong", "unchecked": "not checked"}
_LAUNCHES: Mapping[LaunchMode, str] = {"graph": "CUDA graph", "stream": "stream launch", "call": ""}


def format_level(level: QualityLevel) -> Text:
    """The level as sign and word.

    >>> str(format_level("good"))
    '✓ good'
    """
    return Text(f"{SIGNS[level]} {LEVEL_NAMES[level]}")


def format_badge(assessment: Quality | None) -> Text:
    """The level with its worst reason: what is in sight where the whole line is one hover or click away.

    >>> fallback, shared = Part("method", q.Method("events", "graph"), "note"), Part("others", q.OtherProcesses(2), "suspect")
    >>> str(format_badge(Quality((fallback, shared))))
    '⚠ unreliable: 2 other processes'
    """
    if assessment is None:
        return Text("not timed")
    level, reasons = format_level(assessment.level), assessment.reasons
    return level + f": {describe_part(reasons[0])}" if reasons else level


def format_badge_of(result: Result, headline: Headline = "cold", clock: Clock | None = None) -> Text:
    """The badge of a result's time. `clock`: that of the run's method."""
    return format_badge(quality(result, headline, clock))


def describe_quality(assessment: Quality | None) -> Text:
    """The line: the level, then every part; or that there is no time to judge."""
    if assessment is None:
        return Text("not timed")
    said = (describe_part(p) for p in assessment.parts if p.fact != q.Repeated(0))
    return join(" · ", (format_level(assessment.level), *said))


def describe_quality_of(result: Result, headline: Headline = "cold", clock: Clock | None = None) -> Text:
    """The line of a result's time. `clock`: that of the run's method.

    >>> from kernelviz.core.problem import Problem
    >>> from kernelviz.core.result import Figure, Timing
    >>> one = Problem(op="add", sizes={"n": 1}, dtype="fp32")
    >>> print(describe_quality_of(Result(problem=one, variant="v", outcome=Timing())))
    not timed
    >>> print(describe_quality_of(Result(problem=one, variant="v", outcome=Timing(device_cold_s=Figure(estimate=1e-6)))))
    ⚠ unreliable · samples unknown · no interval · L2 cold · SM clock unknown, clock mode unknown · throttle unknown · \
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
    means = " (only their means are stored)" if fact.by_block else ""
    buffers = "" if fact.buffers is None else f", {units.counted(fact.buffers, 'buffer')}"
    return f"{fact.count:,} samples{blocks}{means}{buffers}"


def _not_stable(fact: Stability) -> str:
    if fact.levels_s is None or fact.blocks is None:
        return "stable" if fact.kind == "stable" else "stability unknown"
    (first_s, second_s), (before, after) = fact.levels_s, fact.blocks
    first, second = (units.seconds(s, 3) for s in (first_s, second_s))
    if fact.kind == "change":
        return f"not stable: {first} in the first {before} blocks, then {second} in {after}"
    return f"not stable: {first} in {before} blocks, {second} in {after} others"


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
    return f"SM {low}{clock}, {_mode(fact)}{_slow(fact) if fact.slow else ''}"


def _slow(fact: q.MeasuredClock) -> str:
    effect = f"changes the time by {units.width(fact.effect)}"
    return f", dropped more than 1 % in {fact.slow} of {fact.blocks} blocks, which {effect}"


def _mode(fact: q.ReportedClock | q.MeasuredClock) -> str:
    return fact.mode or "clock mode unknown"


def _repeated(fact: q.Repeated) -> str:
    if not fact.blocks:
        return "repeated blocks unknown" if fact.blocks is None else "no blocks repeated"
    return f"{units.counted(fact.blocks, 'block')} repeated"


def _count_processes(count: int) -> str:
    return "no other processes" if not count else f"{count} other process{'es' if count > 1 else ''}"


def _correctness(fact: q.Correctness) -> str:
    if fact.kind != "correct":
        return _INCORRECT[fact.kind]
    error = "largest error unknown" if fact.of_bound is None else units.share_of_tolerance(fact.of_bound)
    return f"correct: {error} ({units.counted(fact.seeds, 'seed') if fact.seeds else 'seeds unknown'})"


def describe_method(fact: q.Method) -> Text:
    """How a time was taken.

    >>> str(describe_method(q.Method("events", "graph"))), str(describe_method(q.Method("cupti", "graph", 3.2e-7)))
    ('CUDA events (CUDA graph, without a tracer)', 'CUPTI timestamps (CUDA graph), 320 ns tracing overhead subtracted')
    """
    if fact.timer is None:
        return Text("timer unknown")
    launch = "launch unknown" if fact.launch is None else _LAUNCHES[fact.launch]
    how = ", ".join(filter(None, (launch, "without a tracer" if fact.timer == "events" else "")))
    corrected = ""
    if fact.correction_s:
        change = "tracing overhead subtracted" if fact.correction_s > 0 else "shortening by tracing added"
        corrected = f", {units.seconds(abs(fact.correction_s), 2)} {change}"
    return Text(f"{TIMERS[fact.timer]}{f' ({how})' if how else ''}{corrected}")


def describe_methods_of(result: Result) -> Text:
    """How the device times were taken: of the cold one, and of the warm one where that differs. Empty without a time.

    >>> from kernelviz.core.problem import Problem
    >>> from kernelviz.core.result import Figure, Timing
    >>> graph, stream = (Figure(estimate=1e-6, timer="cupti", launch=mode) for mode in ("graph", "stream"))
    >>> made = Timing(device_cold_s=graph, device_warm_s=stream)
    >>> str(describe_methods_of(Result(problem=Problem(op="add", sizes={"n": 1}, dtype="fp32"), variant="v", outcome=made)))
    'CUPTI timestamps (CUDA graph); warm: CUPTI timestamps (stream launch)'
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


PARTS: Mapping[type, Template] = {
    q.Samples: _samples,
    q.Width: _interval,
    Stability: _not_stable,
    q.Caches: lambda fact: f"{'caches' if fact.on_host else 'L2'} {fact.headline}",
    q.ReportedClock: _reported_clock,
    q.MeasuredClock: _measured_clock,
    q.Throttle: lambda fact: (
        "throttle unknown" if fact.reasons is None else f"throttle: {', '.join(fact.reasons) or 'none'}"
    ),
    q.Repeated: _repeated,
    q.Correctness: _correctness,
    q.Method: describe_method,
    q.OtherProcesses: lambda fact: "other processes unknown" if fact.count is None else _count_processes(fact.count),
    q.Configured: describe_configuration,
    **dict.fromkeys(NOTES, describe_note),
}
"""The text of each fact of the line."""
