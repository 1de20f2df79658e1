"""Measurement quality: how a time was measured and under which conditions, always as the same parts in the same order.

The level of a time is that of its worst part. **good**: there is no objection. **note**: the time is valid, with a remark
(another method, a wide interval, something is unknown). **suspect**: the time may be wrong by more than its interval (it has
two levels, slow blocks moved it, the device was throttled or shared, there is no interval), or the result is wrong or was not
checked. Each rule is derived from its effect on the time, and judged by repetition (tests/metrics/test_repeatability.py).
`kernelviz.text.quality` has the text.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, Protocol, TypeVar

from kernelviz.core import (
    IDLE,
    POWER_CAP,
    BaselineMoved,
    Block,
    Clock,
    ClockConfirmed,
    ClockUnverified,
    Conditions,
    EventReason,
    Failure,
    Figure,
    FigureName,
    LaunchMode,
    Note,
    Result,
    SlowBlocks,
    Timer,
)
from kernelviz.core.configuration import is_configuration
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.stability import Stability, stability
from kernelviz.metrics.statistics import means_by_block

QualityLevel = Literal["good", "note", "suspect"]
LEVELS: tuple[QualityLevel, ...] = ("good", "note", "suspect")
WIDE = 0.1
"""A time whose interval is wider than this on either side is not called good: the interval is true, and decides little."""
"""From best to worst."""
PartName = Literal[
    "samples",
    "interval",
    "stability",
    "caches",
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
"""A clock that changed by more than this is shown as a range. A block with a clock this much below the first one's is slow."""
_SETTINGS: tuple[EventReason, ...] = ("application clocks", "sync boost", "display clocks")
"""Reasons that mean that a user set the clock; nothing slowed the device down during the measurement."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Number of samples, of blocks, and of rotating buffers in memory; None if unknown.

    `by_block`: only the mean of each block is kept.
    """

    count: int | None
    blocks: int | None = None
    buffers: int | None = None
    by_block: bool = False


@dataclass(frozen=True, slots=True)
class Width:
    """Half the 95 % interval as a fraction; None without an interval, of which too few `blocks` are the reason."""

    half_width: float | None
    blocks: int


@dataclass(frozen=True, slots=True)
class Caches:
    """The state of the caches before each call. `on_host`: those of a processor."""

    headline: Headline
    on_host: bool


@dataclass(frozen=True, slots=True)
class ReportedClock:
    """The clock that the driver or the system reports, None if unknown; none was measured."""

    mode: Clock | None
    on_host: bool
    hz: float | None


@dataclass(frozen=True, slots=True)
class MeasuredClock:
    """The SM clock inside the blocks. `moved`: it changed by more than 1 %. `slow`: how many of the `blocks` ran at a clock of
    more than 1 % below the first one's. `effect`: by how much those change the time, a fraction."""

    mode: Clock | None
    low_hz: float
    high_hz: float
    mean_hz: float
    moved: bool
    slow: int
    blocks: int
    effect: float = 0.0


@dataclass(frozen=True, slots=True)
class Throttle:
    """Why the driver reduced the clock; None if unknown."""

    reasons: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Repeated:
    """Number of blocks that were measured again; None if unknown."""

    blocks: int | None


@dataclass(frozen=True, slots=True)
class Correctness:
    """The result of the check. `of_bound`: the largest error as a share of the allowed one, None if unknown."""

    kind: Literal["correct", "wrong", "impossible", "unchecked"]
    of_bound: float | None = None
    seeds: int = 0


@dataclass(frozen=True, slots=True)
class Method:
    """How the time was measured; None if the file of another tool does not say."""

    timer: Timer | None
    launch: LaunchMode | None
    correction_s: float | None = None


@dataclass(frozen=True, slots=True)
class OtherProcesses:
    """Other processes on the device; None if that is unknown."""

    count: int | None


@dataclass(frozen=True, slots=True)
class Configured:
    """The configuration of a tunable variant: from a tuning, from its name (`named`), or its default."""

    values: Mapping[str, int]
    tuned_by: str | None
    named: bool


Fact = (
    Samples
    | Width
    | Stability
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
    """One aspect of the quality. `name` is the same for every result."""

    name: PartName
    fact: Fact
    level: QualityLevel = "good"


class HasLevel(Protocol):
    """One aspect of a quality."""

    @property
    def level(self) -> QualityLevel: ...


def worst_level(parts: Iterable[HasLevel]) -> QualityLevel:
    """The worst level of these aspects; good if there are none."""
    return max((part.level for part in parts), key=LEVELS.index, default="good")


_Part = TypeVar("_Part", bound=HasLevel)


def not_good(parts: Sequence[_Part]) -> tuple[_Part, ...]:
    """The aspects that are not good, worst first."""
    return tuple(part for level in reversed(LEVELS[1:]) for part in parts if part.level == level)


@dataclass(frozen=True, slots=True)
class Quality:
    """All parts of one time."""

    parts: tuple[Part, ...]

    @property
    def level(self) -> QualityLevel:
        return worst_level(self.parts)

    @property
    def reasons(self) -> tuple[Part, ...]:
        """Why it is not good, worst first."""
        return not_good(self.parts)

    def part(self, name: PartName) -> Part | None:
        """The first part of that name."""
        return next((p for p in self.parts if p.name == name), None)


def quality(result: Result, headline: Headline = "cold", clock: Clock | None = None) -> Quality | None:
    """The quality of the result's time, also of a wrong one; None without a time. `clock`: that of the run's method."""
    outcome = result.outcome
    figure = figure_of(outcome.timing if isinstance(outcome, Failure) else outcome, headline)
    return None if figure is None else quality_of_figure(result, figure, headline, clock)


def quality_of_figure(result: Result, figure: Figure, name: FigureName, clock: Clock | None = None) -> Quality:
    """The quality of one figure of a result, for example of its loop of eager calls. `name`: which figure it is."""
    conditions = result.conditions or Conditions()
    on_host = figure.timer == "host"  # The clock of a processor and what slows it down are unknown.
    width = figure.half_width
    retried = {"cold": conditions.retried_blocks, "warm": conditions.retried_warm_blocks}.get(name)
    repeated = retried if result.conditions else None
    processes = conditions.other_processes
    configuration = configured(result)
    of_clock = _clock(figure, clock, conditions.sm_clock_hz)
    # The part on the clock contains what a note on slow blocks says.
    notes = [n for n in conditions.notes if n.figure == name and not isinstance(n, SlowBlocks)]
    # Of an untrusted variant, whether the judge confirmed the time matters most, so it is named first among equal reasons.
    of_judge = [n for n in notes if isinstance(n, ClockConfirmed | ClockUnverified)]
    return Quality(
        (
            *(Part("notes", note, _level_of(note)) for note in of_judge),
            _samples(figure),
            Part("interval", Width(width, len(figure.blocks or ())), _width_level(width)),
            *_stability(figure),
            *([Part("caches", Caches(name, on_host))] if name in ("cold", "warm") else []),
            of_clock,
            _throttle(conditions, clock, of_clock),
            # Blocks that were measured again are not part of the time.
            Part("repeated", Repeated(repeated), "note" if repeated is None else "good"),
            _correct(result),
            _method(figure),
            Part(
                "others", OtherProcesses(processes), "note" if processes is None else "suspect" if processes else "good"
            ),
            *([Part("configuration", configuration)] if configuration else []),
            # The machine was in another state than during the other times of the problem.
            *(Part("notes", note, _level_of(note)) for note in notes if note not in of_judge),
        )
    )


def _width_level(half_width: float | None) -> QualityLevel:
    return "suspect" if half_width is None else "note" if half_width > WIDE else "good"


def _samples(figure: Figure) -> Part:
    if figure.samples is None:
        return Part("samples", Samples(None), "note")
    return Part(
        "samples", Samples(figure.sample_count, len(figure.blocks or ()) or None, figure.buffers, figure.by_block)
    )


def _stability(figure: Figure) -> list[Part]:
    levels = stability(figure)
    return [Part("stability", levels, "suspect")] if levels.unstable else []


def slow_blocks(blocks: tuple[Block, ...] | None) -> int:
    """How many blocks ran at a clock more than 1 % under the first one that has a clock.

    >>> slow_blocks(tuple(Block(size=1, started_s=0.0, clock_hz=c) for c in (2e9, 1.99e9, 1.9e9)))
    1
    """
    return sum(_slow(blocks or ()))


def is_slow(clock_hz: float, first_hz: float) -> bool:
    """Whether a block's clock is more than CLOCK_MOVED under that of the first block of its series."""
    return clock_hz < first_hz * (1 - CLOCK_MOVED)


def _slow(blocks: Sequence[Block]) -> list[bool]:
    first_hz = next((b.clock_hz for b in blocks if b.clock_hz), math.inf)
    return [bool(b.clock_hz) and is_slow(b.clock_hz or 0.0, first_hz) for b in blocks]


def _effect_of_slow(figure: Figure) -> float:
    """By how much the slow blocks change the time, as a fraction: at most by how much slower the slowest clock is.

    If most blocks are slow, the time is that of the lower clock, and the effect is at most the difference of the clocks.
    """
    blocks = figure.blocks or ()
    clocks_hz = [b.clock_hz for b in blocks if b.clock_hz]
    slow = _slow(blocks)
    if not figure.samples or 2 * sum(slow) > len(slow):
        return clocks_hz[0] / median(clocks_hz) - 1
    means = means_by_block(figure)
    usual = median(mean for mean, one in zip(means, slow, strict=True) if not one)
    # Rounded, so that the rounding errors of equal means are no effect.
    return min(clocks_hz[0] / min(clocks_hz) - 1, round(abs(float(median(means) / usual) - 1), 12))


def _clock(figure: Figure, mode: Clock | None, reported_hz: float | None) -> Part:
    clocks_hz = [b.clock_hz for b in figure.blocks or () if b.clock_hz]
    if not clocks_hz:
        return Part("clock", ReportedClock(mode, figure.timer == "host", reported_hz), "note")
    low, high = min(clocks_hz), max(clocks_hz)
    slow = slow_blocks(figure.blocks) if mode != "sustained" else 0
    effect = _effect_of_slow(figure) if slow else 0.0
    fact = MeasuredClock(
        mode=mode,
        low_hz=low,
        high_hz=high,
        mean_hz=sum(clocks_hz) / len(clocks_hz),
        moved=low < high * (1 - CLOCK_MOVED),
        slow=slow,
        blocks=len(clocks_hz),
        effect=effect,
    )
    return Part("clock", fact, "suspect" if effect > (figure.half_width or 0.0) else "note" if mode is None else "good")


def _throttle(conditions: Conditions, clock: Clock | None, of_clock: Part) -> Part:
    """The reasons for a lower clock. The power cap acts through the clock, which is measured in each block: where that moved the
    time by less than its interval, the cap did as well."""
    reasons = tuple(r for r in conditions.event_reasons if r != IDLE)
    if reasons:
        measured = isinstance(of_clock.fact, MeasuredClock) and of_clock.level != "suspect"
        harmless = (*_SETTINGS, *((POWER_CAP,) if clock == "sustained" or measured else ()))
        return Part("throttle", Throttle(reasons), "note" if all(r in harmless for r in reasons) else "suspect")
    answered = conditions.temperature_c is not None or conditions.power_w is not None
    return Part("throttle", Throttle(())) if answered else Part("throttle", Throttle(None), "note")


def _correct(result: Result) -> Part:
    checked, failed = result.accuracy, isinstance(result.outcome, Failure)
    if isinstance(result.outcome, Failure) and result.outcome.stage == "impossible":
        return Part("correct", Correctness("impossible"), "suspect")
    if checked is None or failed or not checked.passed:
        return Part("correct", Correctness("unchecked" if checked is None and not failed else "wrong"), "suspect")
    return Part("correct", Correctness("correct", checked.worst_of_bound, checked.seeds))


def _level_of(note: Note) -> QualityLevel:
    match note:
        case BaselineMoved():
            return "suspect"
        case ClockConfirmed():
            return "good"
        case _:
            return "note"


def _method(figure: Figure) -> Part:
    method = method_of(figure)
    usual = (method.timer, method.launch) in (("cupti", "graph"), ("host", "call"))
    return Part("method", method, "good" if usual else "note")


def method_of(figure: Figure) -> Method:
    """How a time was measured."""
    return Method(figure.timer, figure.launch, figure.correction_s or None)


def configured(result: Result) -> Configured | None:
    """The configuration that a case was measured with; None for a variant without one."""
    if not result.configuration:
        return None
    return Configured(result.configuration, result.tuned_by, is_configuration(result.variant))


def notes_on_other_figures(result: Result) -> tuple[Note, ...]:
    """The notes on figures other than the two device times."""
    notes = result.conditions.notes if result.conditions else ()
    return tuple(n for n in notes if n.figure not in ("cold", "warm"))
