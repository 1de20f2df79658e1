"""What stands behind a time, on one line: always the same parts in the same order, and what is unknown is said as unknown.

The level of a time is that of its worst part. **sound**: nothing speaks against it. **noticed**: it holds, and something
about it should be known (blocks were repeated, another way of measuring was used, something is unknown). **doubtful**:
do not decide anything by it (slowed down, shared with others, too few blocks, not right, not checked).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from kernelviz.core import units
from kernelviz.core.problem import Clock
from kernelviz.core.result import Block, Conditions, Failure, Figure, Result
from kernelviz.metrics.configuration import configuration_words
from kernelviz.metrics.roofline import Headline
from kernelviz.metrics.summary import figure_of

TrustLevel = Literal["sound", "noticed", "doubtful"]
LEVELS: dict[TrustLevel, str] = {"sound": "✓", "noticed": "◐", "doubtful": "⚠"}
"""From best to worst, with the sign that stands before the word."""
CLOCK_MOVED = 0.01
"""A clock that moved by more than this is shown from least to most. A block this much under its series' first is slow."""
_STEADY = ("power cap",)
"""What slows a card down under steady load by design: part of the question there, a disturbance of a burst."""
_SETTINGS = ("application clocks", "sync boost", "display clocks")
"""Reasons by which somebody set the clock; nothing was slowed down while it was measured."""
_OLD_PLACES = re.compile(r"at (\d+) places in memory")
_ELSEWHERE = ("warm: ", "graph of one call: ", "other figures: ", "energy: ")
"""How notes begin that speak of other times than the cold one (measure.others, core.joining)."""
_SLOW_NOTE = "blocks ran at a clock more than"
"""The note of measure.rounds that says what the clock's part says."""
_STAMPS = {"cupti": "CUPTI stamps", "kineto": "torch.profiler stamps", "events": "events", "host": "host clock"}
_LAUNCHES = {"graph": " in graph", "stream": " in stream", "call": ""}


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that was looked at, in short words. `name` is the same for every result."""

    name: str
    words: str
    level: TrustLevel = "sound"


@dataclass(frozen=True, slots=True)
class Trust:
    """The whole line."""

    parts: tuple[Part, ...]

    @property
    def level(self) -> TrustLevel:
        return max((p.level for p in self.parts), key=list(LEVELS).index)

    @property
    def reasons(self) -> tuple[Part, ...]:
        """Why it is not sound, worst first."""
        return tuple(p for level in ("doubtful", "noticed") for p in self.parts if p.level == level)

    @property
    def badge(self) -> str:
        """The level as sign and word."""
        return f"{LEVELS[self.level]} {self.level}"

    @property
    def line(self) -> str:
        return " · ".join((self.badge, *(p.words for p in self.parts)))


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the parts look at."""

    result: Result
    figure: Figure
    headline: Headline
    clock: Clock | None

    @property
    def conditions(self) -> Conditions | None:
        return self.result.conditions

    @property
    def clocks_hz(self) -> list[float]:
        return [b.clock_hz for b in self.figure.blocks or () if b.clock_hz]

    @property
    def on_host(self) -> bool:
        """A processor's time; its clock and what slows it down are not known."""
        return self.figure.timer == "host"


def trust(result: Result, headline: Headline = "cold", clock: Clock | None = None) -> Trust | None:
    """What stands behind the result's time, also a wrong one's; None where there is none. `clock`: that of the run's method."""
    outcome = result.outcome
    figure = figure_of(outcome.timing if isinstance(outcome, Failure) else outcome, headline)
    if figure is None:
        return None
    seen = _Seen(result, figure, headline, clock)
    return Trust((*(make(seen) for make in _PARTS), *_configured(seen), *_noted(seen)))


def trust_words(result: Result, headline: Headline = "cold", clock: Clock | None = None) -> str:
    """The line, or that there is no time to trust.

    >>> from kernelviz.core.problem import Problem
    >>> from kernelviz.core.result import Timing
    >>> one = Problem(op="add", sizes={"n": 1}, dtype="fp32")
    >>> trust_words(Result(problem=one, variant="v", outcome=Timing()))
    'not timed'
    >>> print(trust_words(Result(problem=one, variant="v", outcome=Timing(device_cold_s=Figure(estimate=1e-6)))))
    ⚠ doubtful · samples unknown · no interval · L2 cold · SM clock unknown, clock mode unknown · throttle unknown · \
repeated blocks unknown · not checked · timer unknown · other processes unknown
    """
    found = trust(result, headline, clock)
    return "not timed" if found is None else found.line


def _samples(seen: _Seen) -> Part:
    figure = seen.figure
    if figure.samples is None:
        return Part("samples", "samples unknown", "noticed")
    words = f"{len(figure.samples):,} samples"
    if figure.blocks:
        words += f" in {len(figure.blocks)} blocks"
    places = _places_of_old_words(figure.method) if figure.places is None else figure.places
    if places is not None:
        words += f" at {places:,} place{'s' if places != 1 else ''}"
    return Part("samples", words)


def _places_of_old_words(method: str | None) -> int | None:
    """Documents from before `Figure.places` say in the method line how many there were, if there were several."""
    if not method:
        return None
    found = _OLD_PLACES.search(method)
    return int(found.group(1)) if found else 1


def _interval(seen: _Seen) -> Part:
    width = seen.figure.half_width
    if width is not None:
        return Part("interval", f"±{units.width(width)}")
    return Part("interval", "no interval" + (": too few blocks" if seen.figure.blocks else ""), "doubtful")


def _caches(seen: _Seen) -> Part:
    return Part("L2", f"{'caches' if seen.on_host else 'L2'} {seen.headline}")


def slow_blocks(blocks: tuple[Block, ...] | None) -> int:
    """How many blocks ran at a clock more than 1 % under the first one that has a clock.

    >>> slow_blocks(tuple(Block(size=1, started_s=0.0, clock_hz=c) for c in (2e9, 1.99e9, 1.9e9)))
    1
    """
    clocks = [b.clock_hz for b in blocks or () if b.clock_hz]
    return sum(c < clocks[0] * (1 - CLOCK_MOVED) for c in clocks)


def _clock(seen: _Seen) -> Part:
    mode = seen.clock or "clock mode unknown"
    clocks = seen.clocks_hz
    if not clocks:
        reported = seen.conditions.sm_clock_hz if seen.conditions else None
        name = "clock" if seen.on_host else "SM clock"
        if reported is None:
            return Part("clock", f"{name} unknown, {mode}", "noticed")
        return Part("clock", f"{name} {units.clock(reported)} as reported, not measured, {mode}", "noticed")
    low, high = min(clocks), max(clocks)
    moved = low < high * (1 - CLOCK_MOVED)
    words = f"SM {low / 1e6:.0f}–{units.clock(high)}" if moved else f"SM {units.clock(sum(clocks) / len(clocks))}"
    slow = slow_blocks(seen.figure.blocks)
    if slow and seen.clock != "sustained":
        kept = f"{slow} of {len(clocks)} blocks over 1 % under the first clock"
        return Part("clock", f"{words}, {mode}, {kept}", "doubtful")
    return Part("clock", f"{words}, {mode}", "noticed" if seen.clock is None else "sound")


def _throttle(seen: _Seen) -> Part:
    now = seen.conditions
    reasons = [r for r in (now.event_reasons if now else ()) if r != "idle"]
    if not reasons:
        answered = now is not None and (now.temperature_c is not None or now.power_w is not None)
        return Part("throttle", "throttle: none") if answered else Part("throttle", "throttle unknown", "noticed")
    harmless = (*_SETTINGS, *(_STEADY if seen.clock == "sustained" else ()))
    level: TrustLevel = "noticed" if all(r in harmless for r in reasons) else "doubtful"
    return Part("throttle", f"throttle: {', '.join(reasons)}", level)


def _repeated(seen: _Seen) -> Part:
    known = seen.conditions
    count = None if known is None else known.retried_blocks if seen.headline == "cold" else known.retried_warm_blocks
    if count is None:
        return Part("repeated", "repeated blocks unknown", "noticed")
    if not count:
        return Part("repeated", "no block repeated")
    return Part("repeated", f"{count} block{'s' if count > 1 else ''} repeated", "noticed")


def _correct(seen: _Seen) -> Part:
    outcome, checked = seen.result.outcome, seen.result.accuracy
    if isinstance(outcome, Failure) and outcome.stage == "impossible":
        return Part("correct", "✕ impossibly fast", "doubtful")
    if checked is None:
        wrong = isinstance(outcome, Failure)
        return Part("correct", "✕ wrong" if wrong else "not checked", "doubtful")
    if not checked.passed or isinstance(outcome, Failure):
        return Part("correct", "✕ wrong", "doubtful")
    seeds = f", {checked.seeds} seed{'s' if checked.seeds != 1 else ''}" if checked.seeds else ", seeds unknown"
    if checked.worst_of_bound is None:
        return Part("correct", f"correct, share of bound unknown{seeds}")
    return Part("correct", f"correct: {checked.worst_of_bound * 100:.0f} % of bound{seeds}")


def _method(seen: _Seen) -> Part:
    figure = seen.figure
    usual = (figure.timer, figure.launch) in (("cupti", "graph"), ("host", "call"))
    return Part("method", _method_words(figure), "sound" if usual and not figure.correction_s else "noticed")


def _method_words(figure: Figure) -> str:
    if figure.timer is None:
        return "timer unknown"
    words = _STAMPS[figure.timer] + (_LAUNCHES[figure.launch] if figure.launch else ", launch unknown")
    if figure.timer == "events":
        words += " (fallback)"
    return words + (f", corrected by {units.seconds(figure.correction_s, 2)}" if figure.correction_s else "")


def _others(seen: _Seen) -> Part:
    count = seen.conditions.other_processes if seen.conditions else None
    if count is None:
        return Part("others", "other processes unknown", "noticed")
    return Part("others", f"other processes {count}", "doubtful" if count else "sound")


def _configured(seen: _Seen) -> list[Part]:
    """With which values a variant was bound that has something to tune."""
    words = configuration_words(seen.result)
    return [Part("configuration", words)] if words else []


def _noted(seen: _Seen) -> list[Part]:
    """What else was noticed beside this time. Notes on other figures stand with those."""
    notes = seen.conditions.notes if seen.conditions else ()
    if seen.headline == "warm":
        own = [n.removeprefix("warm: ") for n in notes if n.startswith("warm: ")]
    else:
        own = [n for n in notes if not n.startswith(_ELSEWHERE)]
    return [Part("notes", " ".join(n.split()), "noticed") for n in own if _SLOW_NOTE not in n]


def method_words(result: Result) -> str:
    """How the device times were taken: of the cold one, and of the warm one where that differs. Empty without a time.

    >>> from kernelviz.core.problem import Problem
    >>> from kernelviz.core.result import Timing
    >>> graph, stream = (Figure(estimate=1e-6, timer="cupti", launch=mode) for mode in ("graph", "stream"))
    >>> made = Timing(device_cold_s=graph, device_warm_s=stream)
    >>> method_words(Result(problem=Problem(op="add", sizes={"n": 1}, dtype="fp32"), variant="v", outcome=made))
    'CUPTI stamps in graph; warm: CUPTI stamps in stream'
    """
    timing = result.timing
    cold, warm = (_method_words(f) if f else "" for f in (figure_of(timing, "cold"), figure_of(timing, "warm")))
    return "; ".join(p for p in (cold, f"warm: {warm}" if warm and warm != cold else "") if p)


def notes_on_figures(result: Result) -> str:
    """What was noticed about the figures beside the two device times.

    >>> from kernelviz.core.problem import Problem
    >>> from kernelviz.core.result import Timing
    >>> seen = Conditions(notes=("warm: launched into the stream", "graph of one call: not capturable"))
    >>> one = Problem(op="add", sizes={"n": 1}, dtype="fp32")
    >>> notes_on_figures(Result(problem=one, variant="v", outcome=Timing(), conditions=seen))
    'graph of one call: not capturable'
    """
    notes = result.conditions.notes if result.conditions else ()
    return " · ".join(" ".join(n.split()) for n in notes if n.startswith(_ELSEWHERE[1:]))


_PARTS: tuple[Callable[[_Seen], Part], ...] = (
    _samples, _interval, _caches, _clock, _throttle, _repeated, _correct, _method, _others,
)  # fmt: skip
