"""What differs between two runs beside the code, in text: how they were measured, and where."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from kernelviz.core import IDLE, Figure, Result, Run, units
from kernelviz.metrics.comparability import one_run
from kernelviz.metrics.comparison import Comparison
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.quality import CLOCK_MOVED
from kernelviz.text.quality import TIMERS
from kernelviz.text.text import Text
from kernelviz.text.verdicts import LAUNCHES

Of = Literal["method", "environment"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not the same in A and B, in words. `stops`: no verdict is called where it differs."""

    of: Of
    what: str
    before: str
    after: str
    stops: bool = False

    @property
    def line(self) -> str:
        """One line; a difference that stops verdicts says so.

        >>> Difference("method", "clock mode", "burst", "sustained", stops=True).line
        'clock mode: burst in A, sustained in B (no verdict)'
        """
        return f"{self.what}: {self.values}"

    @property
    def values(self) -> str:
        """Both sides of it.

        >>> Difference("method", "clock mode", "burst", "sustained", stops=True).values
        'burst in A, sustained in B (no verdict)'
        """
        return f"{self.before} in A, {self.after} in B{' (no verdict)' if self.stops else ''}"


def differences(comparison: Comparison) -> tuple[Difference, ...]:
    """Everything that differs, what stops verdicts first; nothing for two variants of one run."""
    if one_run(comparison.a, comparison.b):
        return ()
    listed = [*_method(comparison), *_environment(comparison.a, comparison.b), *_conditions(comparison)]
    return tuple(sorted(listed, key=lambda d: not d.stops))


def _unlike(
    of: Of, what: str, before: T, after: T, *, text: Callable[[T], object] = str, stops: bool = False
) -> Iterator[Difference]:
    """A difference where the two are not equal; `text`: what is shown of each."""
    if before != after:
        first, second = (str(text(v)) if v is not None and v != "" and v != () else "unknown" for v in (before, after))
        yield Difference(of, what, first, second, stops)


def _method(comparison: Comparison) -> Iterator[Difference]:
    a, b = comparison.a.method, comparison.b.method
    yield from _unlike("method", "clock mode", a.clock, b.clock, stops=True)
    sides = [[getattr(pair, side) for pair in comparison.pairs] for side in ("before", "after")]
    data, timers, launches = (
        [_different(name(r, comparison.headline) for r in side) for side in sides] for name in (_data, _timer, _launch)
    )
    yield from _unlike("method", "input data", *data, text=", ".join, stops=True)
    yield from _unlike("method", "timer", *timers, text=_named(TIMERS), stops=True)
    yield from _unlike("method", "launched", *launches, text=_named(LAUNCHES), stops=True)
    yield from _unlike("method", "device time a case, at most", f"{a.budget_s:g} s", f"{b.budget_s:g} s")
    yield from _unlike("method", "interval asked for", f"±{units.width(a.half_width)}", f"±{units.width(b.half_width)}")
    yield from _unlike("method", "ends at", _end(a.decided_is_enough), _end(b.decided_is_enough))


def _end(decided: bool) -> str:
    return "the first decided comparison (quick)" if decided else "a narrow interval"


def _data(result: Result, _: Headline) -> str | None:
    return result.problem.data


def _timer(result: Result, headline: Headline) -> str | None:
    figure = figure_of(result.timing, headline)
    return None if figure is None else figure.timer or "unknown"


def _launch(result: Result, headline: Headline) -> str | None:
    figure = figure_of(result.timing, headline)
    return None if figure is None or figure.timer is None else figure.launch or "unknown"


def _different(names: Iterator[str | None]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name is not None}))


def _named(names: Mapping[Any, Text]) -> Callable[[tuple[str, ...]], str]:
    return lambda codes: ", ".join(sorted(str(names.get(code, code)) for code in codes))


def _environment(a: Run, b: Run) -> Iterator[Difference]:
    first, second = a.environment.device, b.environment.device
    yield from _unlike("environment", "kind of device", first.kind, second.kind, stops=True)
    yield from _unlike("environment", "device", first.name, second.name)
    if first.name == second.name:
        yield from _unlike("environment", "card (same model)", _uuid(first.uuid), _uuid(second.uuid))
        yield from _unlike("environment", "multiprocessors", first.multiprocessors, second.multiprocessors)
        memory = (units.size_bytes(d.memory_bytes) for d in (first, second))
        yield from _unlike("environment", "memory", *memory)
    yield from _unlike("environment", "driver", first.driver, second.driver)
    here, there = a.environment, b.environment
    for package in sorted({*here.versions, *there.versions}):
        yield from _unlike("environment", package, here.versions.get(package), there.versions.get(package))
    for what in ("kernelviz", "python", "threads", "tracer", "platform", "host"):
        yield from _unlike("environment", what, getattr(here, what), getattr(there, what))


def _uuid(uuid: str) -> str:
    """As much of it as tells cards apart.

    >>> _uuid("GPU-167e3c0c-1626-2fb1-f788-b9daa78fe60b")
    'GPU-167e3c0c…'
    """
    return uuid if len(uuid) <= 13 else f"{uuid[:12]}…"


def _conditions(comparison: Comparison) -> Iterator[Difference]:
    before, after = ([getattr(pair, side) for pair in comparison.pairs] for side in ("before", "after"))
    clocks = [_clock_hz([figure_of(r.timing, comparison.headline) for r in side]) for side in (before, after)]
    if None not in clocks and abs(clocks[1] / clocks[0] - 1) > CLOCK_MOVED:  # type: ignore[operator]
        yield from _unlike("environment", "SM clock, median", *map(units.clock, clocks))
    yield from _unlike("environment", "slowed down by", *(_throttled(side) for side in (before, after)))
    yield from _unlike("environment", "other processes", *(_other_processes(side) for side in (before, after)))


def _clock_hz(figures: Sequence[Figure | None]) -> float | None:
    clocks = [b.clock_hz for f in figures if f is not None for b in f.blocks or () if b.clock_hz]
    return float(np.median(clocks)) if clocks else None


def _throttled(results: Sequence[Result]) -> str:
    reasons = sorted({why for r in results if r.conditions for why in r.conditions.event_reasons if why != IDLE})
    return ", ".join(reasons) or "nothing"


def _other_processes(results: Sequence[Result]) -> int | None:
    return max((r.conditions.other_processes or 0 for r in results if r.conditions), default=None)
