"""What differs between two runs besides the code, in text: how they were measured, and where."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from kernelviz.core import IDLE, Environment, Result, units
from kernelviz.metrics.comparability import one_run
from kernelviz.metrics.comparison import Comparison
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.quality import CLOCK_MOVED
from kernelviz.text.quality import TIMERS
from kernelviz.text.text import Text
from kernelviz.text.verdicts import LAUNCHES

_ENDS = {True: "the first decided comparison (quick)", False: "a narrow interval"}
Of = Literal["method", "environment"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not the same in A and B. `stops`: there is no verdict where it differs."""

    of: Of
    what: str
    before: str
    after: str
    stops: bool = False

    @property
    def line(self) -> Text:
        """The difference on one line, which says whether it stops verdicts.

        >>> str(Difference("method", "clock mode", "burst", "sustained", stops=True).line)
        'clock mode: burst in A, sustained in B (no verdict)'
        """
        return Text(f"{self.what}: {self.values}")

    @property
    def values(self) -> Text:
        """Both values.

        >>> str(Difference("method", "clock mode", "burst", "sustained", stops=True).values)
        'burst in A, sustained in B (no verdict)'
        """
        return Text(f"{self.before} in A, {self.after} in B{' (no verdict)' if self.stops else ''}")


def differences(comparison: Comparison) -> tuple[Difference, ...]:
    """Everything that differs, beginning with what stops verdicts. Empty for two variants of one run."""
    a, b = comparison.a, comparison.b
    if one_run(a, b):
        return ()
    listed = (*_method(comparison), *_environment(a.environment, b.environment), *_conditions(comparison))
    return tuple(sorted(listed, key=lambda d: not d.stops))


def _method(comparison: Comparison) -> Iterator[Difference]:
    a, b = comparison.a.method, comparison.b.method
    yield from _unlike("method", "clock mode", a.clock, b.clock, stops=True)
    if a.clock == b.clock:
        yield from _unlike("method", "load before", f"{a.steady_s:g} s", f"{b.steady_s:g} s", stops=True)
    yield from _unlike("method", "input data", *_codes(comparison, _data), text=", ".join, stops=True)
    yield from _unlike("method", "timer", *_codes(comparison, _timer), text=_named(TIMERS), stops=True)
    yield from _unlike("method", "launched", *_codes(comparison, _launch), text=_named(LAUNCHES), stops=True)
    yield from _unlike("method", "device time a case, at most", f"{a.budget_s:g} s", f"{b.budget_s:g} s")
    yield from _unlike("method", "interval asked for", f"±{units.width(a.half_width)}", f"±{units.width(b.half_width)}")
    yield from _unlike("method", "early stop", a.stop_factor or 0.0, b.stop_factor or 0.0, text=_stop)
    yield from _unlike("method", "ends at", a.decided_is_enough, b.decided_is_enough, text=_ENDS.__getitem__)


def _stop(factor: float) -> str:
    """The factor of the early stop; 0: off."""
    return f"above {factor:g} times the best" if factor else "off"


def _unlike(
    of: Of, what: str, before: T, after: T, *, text: Callable[[T], object] = str, stops: bool = False
) -> Iterator[Difference]:
    """A difference if the values are not equal, each shown as `text`."""
    if before != after:
        first, second = ("unknown" if value in (None, "", ()) else str(text(value)) for value in (before, after))
        yield Difference(of, what, first, second, stops)


def _sides(comparison: Comparison) -> tuple[list[Result], list[Result]]:
    """The results of A and those of B."""
    return [p.before for p in comparison.pairs], [p.after for p in comparison.pairs]


def _codes(comparison: Comparison, code: Callable[[Result, Headline], str | None]) -> Iterator[tuple[str, ...]]:
    """The different codes of the results of A, and those of B."""
    for side in _sides(comparison):
        codes = {code(result, comparison.headline) for result in side}
        yield tuple(sorted(c for c in codes if c is not None))


def _data(result: Result, _: Headline) -> str | None:
    return result.problem.data


def _timer(result: Result, headline: Headline) -> str | None:
    figure = figure_of(result.timing, headline)
    return None if figure is None else figure.timer or "unknown"


def _launch(result: Result, headline: Headline) -> str | None:
    figure = figure_of(result.timing, headline)
    return None if figure is None or figure.timer is None else figure.launch or "unknown"


def _named(names: Mapping[Any, Text]) -> Callable[[Iterable[Any]], str]:
    return lambda codes: ", ".join(sorted(str(names.get(code, code)) for code in codes))


def _environment(a: Environment, b: Environment) -> Iterator[Difference]:
    first, second = a.device, b.device
    yield from _unlike("environment", "kind of device", first.kind, second.kind, stops=True)
    yield from _unlike("environment", "device", first.name, second.name)
    if first.name == second.name:
        yield from _unlike("environment", "card (same model)", first.uuid, second.uuid, text=format_uuid)
        yield from _unlike("environment", "multiprocessors", first.multiprocessors, second.multiprocessors)
        memory = map(units.size_bytes, (first.memory_bytes, second.memory_bytes))
        yield from _unlike("environment", "memory", *memory)
    yield from _unlike("environment", "driver", first.driver, second.driver)
    for package in sorted({*a.versions, *b.versions}):
        yield from _unlike("environment", package, a.versions.get(package), b.versions.get(package))
    for what in ("kernelviz", "python", "threads", "tracer", "platform", "host"):
        yield from _unlike("environment", what, getattr(a, what), getattr(b, what))


def format_uuid(uuid: str) -> Text:
    """The part of a UUID that distinguishes cards.

    >>> str(format_uuid("GPU-167e3c0c-1626-2fb1-f788-b9daa78fe60b"))
    'GPU-167e3c0c…'
    """
    return Text(uuid if len(uuid) <= 13 else f"{uuid[:12]}…")


def _conditions(comparison: Comparison) -> Iterator[Difference]:
    sides = _sides(comparison)
    before_hz, after_hz = (_clock_hz(side, comparison.headline) for side in sides)
    if before_hz and after_hz and abs(after_hz / before_hz - 1) > CLOCK_MOVED:
        yield from _unlike("environment", "SM clock, median", units.clock(before_hz), units.clock(after_hz))
    yield from _unlike("environment", "slowed down by", *map(_throttled, sides))
    yield from _unlike("environment", "other processes", *map(_other_processes, sides))


def _clock_hz(results: Sequence[Result], headline: Headline) -> float | None:
    figures = [figure_of(r.timing, headline) for r in results]
    clocks = [b.clock_hz for f in figures if f is not None for b in f.blocks or () if b.clock_hz]
    return float(np.median(clocks)) if clocks else None


def _throttled(results: Sequence[Result]) -> str:
    reasons = {why for r in results if r.conditions for why in r.conditions.event_reasons if why != IDLE}
    return ", ".join(sorted(reasons)) or "nothing"


def _other_processes(results: Sequence[Result]) -> int | None:
    return max((r.conditions.other_processes or 0 for r in results if r.conditions), default=None)
