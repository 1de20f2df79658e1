"""The calibrations of a device: which roofs were measured together, and how roofs changed from one calibration to another."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from kernelviz.core import Roof
from kernelviz.metrics.roof_checks import checked, value_of

_PAUSE = timedelta(minutes=10)
"""Longer than any roof takes: a roof that was measured after such a pause belongs to another calibration."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The roofs of one calibration in the order in which they were measured. A cancelled calibration has fewer."""

    roofs: tuple[Roof, ...]

    @property
    def measured_at(self) -> str:
        """When its last roof was measured."""
        return max((r.measured_at for r in self.roofs), default="")


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """One roof in two calibrations. `change`: (now - then) / then. `clear`: the two intervals do not overlap; None if one of
    the two has no interval. `refused`: one of the two cannot be used (metrics.roof_checks), so no change is stated."""

    now: Roof
    then: Roof | None
    change: float | None = None
    clear: bool | None = None
    refused: bool = False


def calibrations(roofs: Sequence[Roof]) -> tuple[Calibration, ...]:
    """Group roofs, which are in the order of measuring, into calibrations, the newest first.

    A new calibration begins with a roof that the current one has already, and after ten minutes without a measurement.

    >>> once = (Roof(name="copy", measured_at="2026-01-01T00:00:00+00:00"), Roof(name="h2d", measured_at=""))
    >>> [len(c.roofs) for c in calibrations((*once, *once[:1]))]
    [1, 2]
    """
    groups: list[list[Roof]] = []
    for roof in roofs:
        if not groups or any(r.key == roof.key for r in groups[-1]) or _paused(groups[-1][-1], roof):
            groups.append([])
        groups[-1].append(roof)
    return tuple(Calibration(tuple(group)) for group in reversed(groups))


def _paused(earlier: Roof, later: Roof) -> bool:
    with suppress(ValueError, TypeError):  # no time, or one time without and one with a time zone
        return datetime.fromisoformat(later.measured_at) - datetime.fromisoformat(earlier.measured_at) > _PAUSE
    return False


def moves(
    now: Calibration, then: Calibration, ceilings: Sequence[Roof] = (), cache_bytes: int | None = None
) -> tuple[Move, ...]:
    """The change of each roof of `now` from the same roof of `then`, in the order of `now`.

    `ceilings`: the roofs of the device's data sheet. `cache_bytes`: the size of its last-level cache.
    """
    before = {roof.key: roof for roof in then.roofs}
    refused = {
        id(refusal.roof)
        for calibration in (now, then)
        for refusal in checked(calibration.roofs, ceilings, cache_bytes).refused
    }
    return tuple(_move(roof, before.get(roof.key), refused) for roof in now.roofs)


def _move(now: Roof, then: Roof | None, refused: Collection[int]) -> Move:
    """`refused`: the identities of the roofs that cannot be used."""
    if id(now) in refused or id(then) in refused:
        return Move(now=now, then=then, refused=True)
    new, old = value_of(now), None if then is None else value_of(then)
    if then is None or not new or not old:
        return Move(now=now, then=then)
    clear = None
    if now.low is not None and now.high is not None and then.low is not None and then.high is not None:
        clear = now.low > then.high or now.high < then.low
    return Move(now=now, then=then, change=(new - old) / old, clear=clear)
