"""The roofs of copies between host and device: the best size, its fastest quarter, a cancel, and memory that is not there."""

from __future__ import annotations

import pytest
import torch

from kernelviz.core import Device, Method
from kernelviz.measure.roofs import transfers
from kernelviz.measure.roofs.candidate import Contest, Effort
from kernelviz.measure.roofs.transfers import COPIES, Copies, Transfers
from kernelviz.measure.timing.host import HostTimer

DEVICE = Device(id="cpu", kind="cpu", name="a processor", uuid="cpu")
MIB = 2**20


class Planted(Copies):
    """Copies that take 1 ms and 1 ms a MiB; three of four take twice as long."""

    def take(self, copies: int, stop: transfers.Stop) -> bool:
        for _ in range(copies):
            if stop():
                return False
            usual_s = 1e-3 * (1 + self.target.numel() / MIB)
            self.times_s.append(usual_s * (1 if len(self.times_s) % 4 == 3 else 2))
        return True


def planted() -> list[Copies]:
    return [Planted(name, torch.empty(size * MIB), torch.empty(0)) for name in ("h2d", "d2h") for size in (1, 4)]


def contest(stop: transfers.Stop = lambda: False) -> Contest:
    return Contest(HostTimer(None), stop, Effort(choosing=Method(), deciding=Method()))


def test_the_best_size_of_each_direction_by_its_fastest_quarter() -> None:
    copies = planted()
    made = Transfers(DEVICE, lambda: False, lambda _: copies)
    for _ in range(COPIES + 4):
        made.take()
    found = [roof for roof in made.roofs(contest()) if roof is not None]
    assert [(roof.name, roof.moved_bytes) for roof in found] == [("h2d", 4 * MIB), ("d2h", 4 * MIB)]
    for roof in found:
        assert roof.bandwidth_bytes_per_s == pytest.approx(4 * MIB / 5e-3)
        assert roof.low == pytest.approx(roof.bandwidth_bytes_per_s)
        assert roof.how == f"4 MiB of pinned memory in one copy; the fastest quarter of {COPIES + 5} copies"
    made.take()
    assert {len(one.times_s) for one in copies} == {COPIES + 5}, "nothing is copied when the roofs are known"


def test_few_other_roofs_are_made_up_for() -> None:
    copies = planted()
    made = Transfers(DEVICE, lambda: False, lambda _: copies)
    made.take()
    assert len([*made.roofs(contest())]) == 2
    assert {len(one.times_s) for one in copies} == {COPIES}


def test_a_cancel_ends_the_copies() -> None:
    copies, left = planted(), iter([False] * 6 + [True] * 1000)
    assert [*Transfers(DEVICE, lambda: next(left), lambda _: copies).roofs(contest())] == [None]
    assert sum(len(one.times_s) for one in copies) == 6


def test_memory_that_is_not_there_is_asked_for_again_and_named() -> None:
    attempts: list[Device] = []

    def fails_twice(device: Device) -> list[Copies]:
        attempts.append(device)
        if len(attempts) < 3:
            raise RuntimeError("no pinned memory")
        return planted()

    made = Transfers(DEVICE, lambda: False, fails_twice)
    made.take()
    with pytest.raises(RuntimeError, match="no pinned memory"):
        [*made.roofs(contest())]
    assert len([*Transfers(DEVICE, lambda: False, fails_twice).roofs(contest())]) == 2
