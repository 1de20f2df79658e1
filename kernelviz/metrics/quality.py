"""Measurement quality: what stands behind a time, always the same parts in the same order, unknown ones among them.

The level of a time is that of its worst part. **good**: nothing speaks against it. **note**: it holds, and something about it
should be known (blocks were repeated, another way of measuring was used, something is unknown). **suspect**: do not decide
anything by it (slowed down, shared with others, too few blocks, not right, not checked). `kernelviz.text.quality` has the text.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from kernelviz.core import (
    IDLE,
    POWER_CAP,
    Block,
    Clock,
    Conditions,
    EventReason,
    Failure,
    Figure,
    LaunchMode,
    Note,
    Result,
    SlowBlocks,
    Timer,
)
from kernelviz.metrics.configuration import is_configuration
from kernelviz.metrics.figures import Headline, figure_of

QualityLevel = Literal["good", "note", "suspect"]
LEVELS: tuple[QualityLevel, ...] = ("good", "note", "suspect")
"""From best to worst."""
PartName = Literal[
    "samples",
    "interval",
    "L2",
    "clock",
    "throttle",
    "repeated",
    "correct",
    "method",
    "others",
    "configuration",
    "notes",
]
CLOCK_MOVED = 0.01
"""A clock that moved by more than this is shown from least to most. A block this much under its series' first is slow."""
_STEADY: tuple[EventReason, ...] = (POWER_CAP,)
"""What slows a card down under steady load by design: part of the question there, a disturbance of a burst."""
_SETTINGS: tuple[EventReason, ...] = ("application clocks", "sync boost", "display clocks")
"""Reasons by which somebody set the clock; nothing was slowed down while it was measured."""


@dataclass(frozen=True, slots=True)
class Samples:
    """How many samples, in how many blocks, in how many rotating buffers; None where that is unknown."""

    count: int | None
    blocks: int | None = None
    buffers: int | None = None


@dataclass(frozen=True, slots=True)
class Width:
    """Half the 95 % interval as a fraction; None without an interval, of which too few `blocks` are the reason."""

    half_width: float | None
    blocks: int


@dataclass(frozen=True, slots=True)
class Caches:
    """What the caches held before each call. `on_host`: those of a processor."""

    headline: Headline
    on_host: bool


@dataclass(frozen=True, slots=True)
class ReportedClock:
    """The clock as the driver or the system reports it, None when unknown: none was measured."""

    mode: Clock | None
    on_host: bool
    hz: float | None


@dataclass(frozen=True, slots=True)
class MeasuredClock:
    """The SM clock inside the blocks. `moved`: from least to most by more than 1 %; `slow`: blocks that ran more than 1 % under
    the first and were kept, of `blocks`."""

    mode: Clock | None
    low_hz: float
    high_hz: float
    mean_hz: float
    moved: bool
    slow: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Throttle:
    """Why the driver held the clock down; None when unknown."""

    reasons: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Repeated:
    """Blocks that were taken again; None when unknown."""

    blocks: int | None


@dataclass(frozen=True, slots=True)
class Correctness:
    """The gate's answer. `of_bound`: the largest error as a share of the allowed one, None when unknown."""

    kind: Literal["correct", "wrong", "impossible", "unchecked"]
    of_bound: float | None = None
    seeds: int = 0


@dataclass(frozen=True, slots=True)
class Method:
    """How the time was taken; None for what another tool's file does not say."""

    timer: Timer | None
    launch: LaunchMode | None
    correction_s: float | None = None


@dataclass(frozen=True, slots=True)
class OtherProcesses:
    """Other processes on the device; None when that cannot be known."""

    count: int | None


@dataclass(frozen=True, slots=True)
class Configured:
    """What a variant with something to tune was bound with: found by a tuning, said by its name (`named`), or its default."""

    values: Mapping[str, int]
    tuned_by: str | None
    named: bool


Fact = (
    Samples
    | Width
    | Caches
    | ReportedClock
    | MeasuredClock
    | Throttle
    | Repeated
    | Correctness
    | Method
    | OtherProcesses
    | Configured
    | Note
)


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that was looked at. `name` is the same for every result."""

    name: PartName
    fact: Fact
    level: QualityLevel = "good"


@dataclass(frozen=True, slots=True)
class Quality:
    """All parts of one time."""

    parts: tuple[Part, ...]

    @property
    def level(self) -> QualityLevel:
        return max((p.level for p in self.parts), key=LEVELS.index)

    @property
    def reasons(self) -> tuple[Part, ...]:
        """Why it is not good, worst first."""
        return tuple(p for level in reversed(LEVELS[1:]) for p in self.parts if p.level == level)

    def part(self, name: PartName) -> Part | None:
        """The first part of that name."""
        return next((p for p in self.parts if p.name == name), None)


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


def quality(result: Result, headline: Headline = "cold", clock: Clock | None = None) -> Quality | None:
    """What stands behind the result's time, also a wrong one's; None where there is none. `clock`: that of the run's method."""
    outcome = result.outcome
    figure = figure_of(outcome.timing if isinstance(outcome, Failure) else outcome, headline)
    if figure is None:
        return None
    seen = _Seen(result, figure, headline, clock)
    return Quality((*(make(seen) for make in _PARTS), *_configured(seen), *_noted(seen)))


def quality_level(result: Result, headline: Headline = "cold", clock: Clock | None = None) -> QualityLevel | None:
    """The level of the result's time; None where there is none."""
    found = quality(result, headline, clock)
    return None if found is None else found.level


def _samples(seen: _Seen) -> Part:
    figure = seen.figure
    if figure.samples is None:
        return Part("samples", Samples(None), "note")
    return Part("samples", Samples(len(figure.samples), len(figure.blocks or ()) or None, figure.buffers))


def _interval(seen: _Seen) -> Part:
    width = seen.figure.half_width
    return Part("interval", Width(width, len(seen.figure.blocks or ())), "suspect" if width is None else "good")


def _caches(seen: _Seen) -> Part:
    return Part("L2", Caches(seen.headline, seen.on_host))


def slow_blocks(blocks: tuple[Block, ...] | None) -> int:
    """How many blocks ran at a clock more than 1 % under the first one that has a clock.

    >>> slow_blocks(tuple(Block(size=1, started_s=0.0, clock_hz=c) for c in (2e9, 1.99e9, 1.9e9)))
    1
    """
    clocks = [b.clock_hz for b in blocks or () if b.clock_hz]
    return sum(c < clocks[0] * (1 - CLOCK_MOVED) for c in clocks)


def _clock(seen: _Seen) -> Part:
    clocks = seen.clocks_hz
    if not clocks:
        reported = seen.conditions.sm_clock_hz if seen.conditions else None
        return Part("clock", ReportedClock(seen.clock, seen.on_host, reported), "note")
    low, high = min(clocks), max(clocks)
    slow = slow_blocks(seen.figure.blocks) if seen.clock != "sustained" else 0
    fact = MeasuredClock(
        mode=seen.clock,
        low_hz=low,
        high_hz=high,
        mean_hz=sum(clocks) / len(clocks),
        moved=low < high * (1 - CLOCK_MOVED),
        slow=slow,
        blocks=len(clocks),
    )
    return Part("clock", fact, "suspect" if slow else "note" if seen.clock is None else "good")


def _throttle(seen: _Seen) -> Part:
    now = seen.conditions
    reasons = tuple(r for r in (now.event_reasons if now else ()) if r != IDLE)
    if not reasons:
        answered = now is not None and (now.temperature_c is not None or now.power_w is not None)
        return Part("throttle", Throttle(())) if answered else Part("throttle", Throttle(None), "note")
    harmless = (*_SETTINGS, *(_STEADY if seen.clock == "sustained" else ()))
    return Part("throttle", Throttle(reasons), "note" if all(r in harmless for r in reasons) else "suspect")


def _repeated(seen: _Seen) -> Part:
    known = seen.conditions
    count = None if known is None else known.retried_blocks if seen.headline == "cold" else known.retried_warm_blocks
    return Part("repeated", Repeated(count), "good" if count == 0 else "note")


def _correct(seen: _Seen) -> Part:
    outcome, checked = seen.result.outcome, seen.result.accuracy
    if isinstance(outcome, Failure) and outcome.stage == "impossible":
        return Part("correct", Correctness("impossible"), "suspect")
    if checked is None:
        wrong = isinstance(outcome, Failure)
        return Part("correct", Correctness("wrong" if wrong else "unchecked"), "suspect")
    if not checked.passed or isinstance(outcome, Failure):
        return Part("correct", Correctness("wrong"), "suspect")
    return Part("correct", Correctness("correct", checked.worst_of_bound, checked.seeds))


def _method(seen: _Seen) -> Part:
    fact = method_of(seen.figure)
    usual = (fact.timer, fact.launch) in (("cupti", "graph"), ("host", "call"))
    return Part("method", fact, "good" if usual and not fact.correction_s else "note")


def method_of(figure: Figure) -> Method:
    """How a time was taken."""
    return Method(figure.timer, figure.launch, figure.correction_s or None)


def _other_processes(seen: _Seen) -> Part:
    count = seen.conditions.other_processes if seen.conditions else None
    return Part("others", OtherProcesses(count), "note" if count is None else "suspect" if count else "good")


def configured(result: Result) -> Configured | None:
    """The configuration that a case was measured with; None for a variant without one."""
    if not result.configuration:
        return None
    return Configured(result.configuration, result.tuned_by, is_configuration(result.variant))


def _configured(seen: _Seen) -> list[Part]:
    found = configured(seen.result)
    return [] if found is None else [Part("configuration", found)]


def _noted(seen: _Seen) -> list[Part]:
    """What else was noticed beside this time. What the clock's part says is not said again."""
    notes = seen.conditions.notes if seen.conditions else ()
    own = [n for n in notes if n.figure == seen.headline and not isinstance(n, SlowBlocks)]
    return [Part("notes", note, "note") for note in own]


def notes_on_other_figures(result: Result) -> tuple[Note, ...]:
    """What was noticed about the figures beside the two device times."""
    notes = result.conditions.notes if result.conditions else ()
    return tuple(n for n in notes if n.figure not in ("cold", "warm"))


_PARTS: tuple[Callable[[_Seen], Part], ...] = (
    _samples, _interval, _caches, _clock, _throttle, _repeated, _correct, _method, _other_processes,
)  # fmt: skip
