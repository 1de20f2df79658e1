"""Separate calibrations, newest first, and the changes of roofs between two of them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kernelviz.core.run import Roof
from kernelviz.metrics.calibrations import Calibration, calibrations, moves
from kernelviz.store import Store


def _copy(rate: float, at: str, *, half: float | None = 0.001, name: str = "copy") -> Roof:
    low, high = (None, None) if half is None else (rate * (1 - half), rate * (1 + half))
    return Roof(name=name, bandwidth_bytes_per_s=rate, measured_at=at, low=low, high=high)  # type: ignore[arg-type]


def test_a_repeated_roof_or_a_long_pause_begins_another_calibration() -> None:
    day = "2026-11-20T10:{:02d}:00+00:00"
    kept = (
        _copy(1e12, day.format(0)), _copy(2e12, day.format(1), name="read"),
        _copy(1.1e12, day.format(2)),  # cancelled behind it
        _copy(2.2e12, day.format(40), name="read"), _copy(1.2e12, day.format(41)),
    )  # fmt: skip
    found = calibrations(kept)
    assert [[r.name for r in c.roofs] for c in found] == [["read", "copy"], ["copy"], ["copy", "read"]]
    assert [c.measured_at for c in found] == [day.format(41), day.format(2), day.format(1)]
    assert calibrations(()) == ()


def test_a_roof_without_a_time_is_with_its_neighbours() -> None:
    assert len(calibrations((_copy(1e12, ""), _copy(2e12, "2026-11-20T10:00:00+00:00", name="read")))) == 1


def test_a_move_is_clear_when_the_intervals_do_not_touch() -> None:
    then = Calibration((_copy(1e12, "a"), _copy(1e12, "a", name="read"), _copy(1e12, "a", name="write")))
    now = Calibration(
        (
            _copy(0.97e12, "b"),
            _copy(1.001e12, "b", name="read"),
            _copy(1.05e12, "b", name="write", half=None),
            _copy(1e12, "b", name="h2d"),
        )
    )
    fell, same, unknown, fresh = moves(now, then)
    assert fell.change == pytest.approx(-0.03)
    assert fell.clear is True
    assert (same.clear, unknown.clear) == (False, None)
    assert (fresh.then, fresh.change) == (None, None)


@pytest.mark.parametrize("unusable", ["now", "then"])
def test_no_change_is_stated_from_or_to_a_roof_that_cannot_be_used(unusable: str) -> None:
    def level(memory: float, cached: float, at: str) -> Calibration:
        made = {"dram": _copy(memory, at, name="read"), "l2": _copy(cached, at, name="read")}
        return Calibration(tuple(msgspec.structs.replace(r, level=name) for name, r in made.items()))

    good, slower_than_memory = level(1e12, 3e12, "a"), level(1e12, 0.1e12, "b")
    both = (good, slower_than_memory) if unusable == "then" else (slower_than_memory, good)
    memory, cached = moves(*both)
    assert (memory.refused, memory.clear) == (False, False)
    assert (cached.refused, cached.change, cached.clear) == (True, None, None)


def test_the_store_keeps_every_roof_and_gives_the_newest_as_the_roof(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    first = _copy(1e12, "2026-11-20T10:00:00+00:00")
    second = msgspec.structs.replace(first, bandwidth_bytes_per_s=1.1e12, measured_at="2026-11-21T10:00:00+00:00")
    for roof in (first, second):
        store.roofs.put("gpu", roof)
    store.roofs.put("another", first)
    assert store.roofs.of_device("gpu") == (first, second)
    assert store.roofs.newest("gpu") == (second,)
    store.close()
