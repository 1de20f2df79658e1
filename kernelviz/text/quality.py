"""Measurement quality in text: one line for each time, part by part."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import assert_never

from kernelviz.core import Clock, LaunchMode, Result, Timer, units
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.quality import (
    Caches,
    Configured,
    Correctness,
    MeasuredClock,
    Method,
    OtherProcesses,
    Part,
    Quality,
    QualityLevel,
    Repeated,
    ReportedClock,
    Samples,
    Throttle,
    Width,
    method_of,
    notes_on_other_figures,
    quality,
)
from kernelviz.text.configuration import describe_configuration
from kernelviz.text.notes import describe_note, format_note
from kernelviz.text.text import Text, join

SIGNS: Mapping[QualityLevel, str] = MappingProxyType({"good": "✓", "note": "◐", "suspect": "⚠"})
"""What stands before the word of a level."""
TIMERS: Mapping[Timer, Text] = MappingProxyType(
    {
        "cupti": Text("CUPTI stamps"),
        "kineto": Text("torch.profiler stamps"),
        "events": Text("events"),
        "host": Text("host clock"),
    }
)
_LAUNCHES: Mapping[LaunchMode, str] = MappingProxyType({"graph": " in graph", "stream": " in stream", "call": ""})


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
    fact = part.fact
    match fact:
        case Samples():
            return Text(_samples(fact))
        case Width(half_width=None, blocks=blocks):
            return Text("no interval" + (": too few blocks" if blocks else ""))
        case Width(half_width=half_width):
            return Text(f"±{units.width(half_width or 0.0)}")
        case Caches(headline=headline, on_host=on_host):
            return Text(f"{'caches' if on_host else 'L2'} {headline}")
        case ReportedClock() | MeasuredClock():
            return Text(_clock(fact))
        case Throttle(reasons=None):
            return Text("throttle unknown")
        case Throttle(reasons=reasons):
            return Text(f"throttle: {', '.join(reasons or ('none',))}")
        case Repeated(blocks=None):
            return Text("repeated blocks unknown")
        case Repeated(blocks=0):
            return Text("no block repeated")
        case Repeated(blocks=count):
            return Text(f"{count} block{'s' if (count or 0) > 1 else ''} repeated")
        case Correctness():
            return Text(_correctness(fact))
        case Method():
            return describe_method(fact)
        case OtherProcesses(count=number):
            return Text("other processes unknown" if number is None else f"other processes {number}")
        case Configured():
            return describe_configuration(fact)
        case _:
            return describe_note(fact)


def _samples(fact: Samples) -> str:
    if fact.count is None:
        return "samples unknown"
    blocks = "" if fact.blocks is None else f" in {fact.blocks} blocks"
    buffers = "" if fact.buffers is None else f" at {fact.buffers:,} place{'s' if fact.buffers != 1 else ''}"
    return f"{fact.count:,} samples{blocks}{buffers}"


def _clock(fact: ReportedClock | MeasuredClock) -> str:
    mode = fact.mode or "clock mode unknown"
    match fact:
        case ReportedClock(on_host=on_host, hz=None):
            return f"{'clock' if on_host else 'SM clock'} unknown, {mode}"
        case ReportedClock(on_host=on_host, hz=hz):
            return f"{'clock' if on_host else 'SM clock'} {units.clock(hz)} as reported, not measured, {mode}"
        case MeasuredClock():
            low, high = fact.low_hz, fact.high_hz
            said = f"SM {low / 1e6:.0f}–{units.clock(high)}" if fact.moved else f"SM {units.clock(fact.mean_hz)}"
            slow = f", {fact.slow} of {fact.blocks} blocks over 1 % under the first clock" if fact.slow else ""
            return f"{said}, {mode}{slow}"
        case _:
            assert_never(fact)


def _correctness(fact: Correctness) -> str:
    match fact.kind:
        case "impossible":
            return "✕ impossibly fast"
        case "wrong":
            return "✕ wrong"
        case "unchecked":
            return "not checked"
        case "correct":
            seeds = f", {fact.seeds} seed{'s' if fact.seeds != 1 else ''}" if fact.seeds else ", seeds unknown"
            if fact.of_bound is None:
                return f"correct, share of bound unknown{seeds}"
            return f"correct: {fact.of_bound * 100:.0f} % of bound{seeds}"
        case _:
            assert_never(fact.kind)


def describe_method(fact: Method) -> Text:
    """How a time was taken.

    >>> str(describe_method(Method("events", "graph"))), str(describe_method(Method("cupti", "graph", 3.2e-7)))
    ('events in graph (fallback)', 'CUPTI stamps in graph, corrected by 320 ns')
    """
    if fact.timer is None:
        return Text("timer unknown")
    launch = ", launch unknown" if fact.launch is None else _LAUNCHES[fact.launch]
    fallback = " (fallback)" if fact.timer == "events" else ""
    corrected = f", corrected by {units.seconds(fact.correction_s, 2)}" if fact.correction_s else ""
    return TIMERS[fact.timer] + f"{launch}{fallback}{corrected}"


def describe_methods_of(result: Result) -> Text:
    """How the device times were taken: of the cold one, and of the warm one where that differs. Empty without a time.

    >>> from kernelviz.core.problem import Problem
    >>> from kernelviz.core.result import Figure, Timing
    >>> graph, stream = (Figure(estimate=1e-6, timer="cupti", launch=mode) for mode in ("graph", "stream"))
    >>> made = Timing(device_cold_s=graph, device_warm_s=stream)
    >>> str(describe_methods_of(Result(problem=Problem(op="add", sizes={"n": 1}, dtype="fp32"), variant="v", outcome=made)))
    'CUPTI stamps in graph; warm: CUPTI stamps in stream'
    """
    timing = result.timing
    cold, warm = (method_of(f) if f else None for f in (figure_of(timing, "cold"), figure_of(timing, "warm")))
    parts = [describe_method(cold)] if cold else []
    parts += [Text("warm: ") + str(describe_method(warm))] if warm and warm != cold else []
    return join("; ", parts)


def describe_throttle(result: Result) -> Text:
    """What slowed the device down during the cold time, as the line on its quality has it; empty without a time."""
    assessment = quality(result)
    part = assessment.part("throttle") if assessment else None
    return Text("") if part is None else describe_part(part)


def describe_notes_on_figures(result: Result) -> Text:
    """What was noticed about the figures beside the two device times."""
    return join(" · ", map(format_note, notes_on_other_figures(result)))
