"""Copies between pinned host memory and the device, timed by CUDA events. Their constant error is small compared with 5 ms."""

import functools
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import torch
from torch import Tensor

from kernelviz.core import Device, Roof, RoofName
from kernelviz.measure.roofs.candidate import Contest, fastest_quarter, measured
from kernelviz.measure.session.contract import Stop
from kernelviz.measure.timing.kernels import timing_event
from kernelviz.metrics.statistics import median_interval

SIZES_BYTES = (2**24, 2**26, 2**28)
COPIES = 40
"""The minimum number of copies of each size and direction. One is made after each other roof, and the fastest quarter is used.
With all copies directly after one another, one calibration found 54.7 GB/s from device to host, and the next 52.2 GB/s (H100 in a
virtual machine)."""


def copy_s(target: Tensor, source: Tensor) -> float:
    """The time of one copy from an idle device, in seconds."""
    begun, ended = timing_event(), timing_event()
    torch.cuda.synchronize()
    begun.record()
    target.copy_(source, non_blocking=True)
    ended.record()
    torch.cuda.synchronize()
    return float(begun.elapsed_time(ended)) / 1e3


@dataclass(slots=True)
class Copies:
    """The copies of one size in one direction, and the time of each."""

    name: RoofName
    target: Tensor
    source: Tensor
    times_s: list[float] = field(default_factory=list)

    def take(self, copies: int, stop: Stop) -> bool:
        """Make so many copies. False if stopped."""
        for _ in range(copies):
            if stop():
                return False
            self.times_s.append(copy_s(self.target, self.source))
        return True

    def roof(self) -> Roof:
        size = self.target.numel()
        how = f"{size // 2**20} MiB of pinned memory in one copy; the fastest quarter of {len(self.times_s)} copies"
        roof = Roof(name=self.name, moved_bytes=size, how=how)
        return measured(roof, size, median_interval(fastest_quarter(self.times_s)), timer="events")


def allocate(device: Device) -> list[Copies]:
    """The copies of every size in both directions. Raises what pinned memory raises where there is none."""
    host = torch.empty(SIZES_BYTES[-1], dtype=torch.uint8, pin_memory=True).fill_(1)
    there = torch.zeros(SIZES_BYTES[-1], dtype=torch.uint8, device=device.id)
    ways: tuple[tuple[RoofName, Tensor, Tensor], ...] = (("h2d", there, host), ("d2h", host, there))
    copies = [Copies(name, target[:size], source[:size]) for name, target, source in ways for size in SIZES_BYTES]
    for one in copies:
        one.target.copy_(one.source)  # the first copy of a buffer is slower
    return copies


class Transfers:
    """Copies in both directions, made a few at a time between the other roofs, because the speed of the host's memory drifts."""

    def __init__(self, device: Device, stop: Stop, allocated: Callable[[Device], list[Copies]] = allocate) -> None:
        self._device, self._stop, self._allocated = device, stop, allocated
        self._copies: list[Copies] = []
        self._done = False

    def take(self) -> None:
        """Copy once in each size and direction. Where that fails, `roofs` tries again and raises the error."""
        if not self._done:
            with suppress(Exception):
                self._take(1)

    def _take(self, copies: int) -> bool:
        self._copies = self._copies or self._allocated(self._device)
        return all(one.take(copies, self._stop) for one in self._copies)

    def roofs(self, contest: Contest) -> Iterator[Roof | None]:
        """The best size of each direction; None if the calibration was stopped."""
        self._done = True
        copied = min((len(one.times_s) for one in self._copies), default=0)
        if not self._take(max(1, COPIES - copied)):
            yield None
            return
        for name in dict.fromkeys(one.name for one in self._copies):
            of_sizes = [one for one in self._copies if one.name == name]
            best = max(of_sizes, key=lambda one: one.roof().bandwidth_bytes_per_s or 0.0)
            yield contest.settled(best.roof(), functools.partial(self._again, best))

    def _again(self, copies: Copies) -> Roof | None:
        return copies.roof() if copies.take(COPIES, self._stop) else None
