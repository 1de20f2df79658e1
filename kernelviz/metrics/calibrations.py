"""A device's calibrations one after the other: what was measured together, and how roofs moved."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kernelviz.core import Roof, units

_PAUSE = timedelta(minutes=10)
"""Longer than any roof takes: after such a pause another calibration begins."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The roofs of one calibration in the order in which they were measured; it may have been cancelled on its way."""

    roofs: tuple[Roof, ...]

    @property
    def measured_at(self) -> str:
        """When its last roof was measured."""
        return max((r.measured_at for r in self.roofs), default="")


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """One roof in two calibrations; `change` is (now - then) / then. `clear`: the two intervals do not touch; None: one has
    none."""

    now: Roof
    then: Roof | None
    change: float | None = None
    clear: bool | None = None


def calibrations(roofs: Sequence[Roof]) -> tuple[Calibration, ...]:
    """Roofs in the order of measuring, as calibrations, the newest first.

    A calibration ends where a roof comes again that it has already, or where nothing was measured for ten minutes.

    >>> once = (Roof(name="copy", measured_at="2026-01-01T00:00:00+00:00"), Roof(name="h2d", measured_at=""))
    >>> [len(c.roofs) for c in calibrations((*once, *once[:1]))]
    [1, 2]
    """
    groups: list[list[Roof]] = []
    for roof in roofs:
        last = groups[-1] if groups else []
        if not last or any(r.key == roof.key for r in last) or _apart(last[-1], roof):
            groups.append([])
        groups[-1].append(roof)
    return tuple(Calibration(tuple(group)) for group in reversed(groups))


def _apart(earlier: Roof, later: Roof) -> bool:
    try:
        gone = datetime.fromisoformat(later.measured_at) - datetime.fromisoformat(earlier.measured_at)
    except (ValueError, TypeError):  # no time, or one without a zone beside one with it
        return False
    return gone > _PAUSE


def moves(now: Calibration, then: Calibration) -> tuple[Move, ...]:
    """How each roof of `now` stands against the same roof of `then`, in the order of `now`."""
    before = {roof.key: roof for roof in then.roofs}
    return tuple(_move(roof, before.get(roof.key)) for roof in now.roofs)


def _move(now: Roof, then: Roof | None) -> Move:
    new, old = value(now), None if then is None else value(then)
    if then is None or not new or not old:
        return Move(now=now, then=then)
    clear = None
    if now.low is not None and now.high is not None and then.low is not None and then.high is not None:
        clear = now.low > then.high or now.high < then.low
    return Move(now=now, then=then, change=(new - old) / old, clear=clear)


def value(roof: Roof) -> float | None:
    """A roof's figure, in its own unit: a rate, or a launch's time."""
    found = (roof.rate_flop_per_s, roof.bandwidth_bytes_per_s, roof.time_s)
    return next((v for v in found if v is not None), None)


def change_words(move: Move) -> str:
    """The change with its sign, and whether it is one.

    >>> change_words(Move(now=Roof(name="copy"), then=Roof(name="copy"), change=-0.021, clear=True))
    '▼ −2.1 %'
    >>> change_words(Move(now=Roof(name="copy"), then=Roof(name="copy"), change=0.0004, clear=False))
    '≈ +0.04 %'
    """
    if move.change is None:
        return "–"
    sign = "+" if move.change >= 0 else "−"
    mark = "≈" if move.clear is False else "▲" if move.change > 0 else "▼"
    return f"{mark} {sign}{units.width(abs(move.change))}"
