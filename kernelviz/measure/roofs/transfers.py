"""Copies between pinned host memory and the device, timed by CUDA events. Their constant error is small compared with 5 ms."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from kernelviz.core import Device, Roof, RoofName
from kernelviz.measure.roofs.candidate import Contest, measured
from kernelviz.measure.timing.kernels import timing_event
from kernelviz.metrics.statistics import median_interval

SIZES_BYTES = (2**24, 2**26, 2**28)
COPIES = 40
"""The minimum number of copies of each size and direction; one is made after each other roof."""
BEST_SHARE = 4
"""The fastest quarter of the copies is used, because a roof is a rate that was reached. With all copies directly after one
another, one calibration found 54.7 GB/s from device to host, and the next 52.2 GB/s (H100, a virtual machine)."""


@dataclass(slots=True)
class _Copies:
    """The copies of one size in one direction, and the time of each."""

    name: RoofName
    target: Tensor
    source: Tensor
    times_s: list[float] = field(default_factory=list)

    def take(self, copies: int = 1) -> None:
        for _ in range(copies):
            begun, ended = timing_event(), timing_event()
            torch.cuda.synchronize()
            begun.record()
            self.target.copy_(self.source, non_blocking=True)
            ended.record()
            torch.cuda.synchronize()
            self.times_s.append(begun.elapsed_time(ended) / 1e3)

    def roof(self) -> Roof:
        size = self.target.numel()
        best_s = sorted(self.times_s)[: max(1, len(self.times_s) // BEST_SHARE)]
        how = f"{size // 2**20} MiB of pinned memory in one copy; the fastest quarter of {len(self.times_s)} copies"
        return measured(Roof(name=self.name, moved_bytes=size, how=how), size, median_interval(best_s), timer="events")


class Transfers:
    """Copies in both directions, measured one at a time between the other roofs, because the host's speed drifts."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._copies: list[_Copies] = []
        self._failure: Exception | None = None

    def take(self) -> None:
        """Copy once in each size and direction. An error is raised by `roofs`."""
        if self._failure is not None:
            return
        try:
            self._take(1)
        except Exception as error:
            self._failure = error

    def _take(self, copies: int) -> None:
        if not self._copies:
            host = torch.empty(SIZES_BYTES[-1], dtype=torch.uint8, pin_memory=True).fill_(1)
            there = torch.zeros(SIZES_BYTES[-1], dtype=torch.uint8, device=self._device.id)
            ways: tuple[tuple[RoofName, Tensor, Tensor], ...] = (("h2d", there, host), ("d2h", host, there))
            self._copies = [
                _Copies(name, target[:size], source[:size]) for name, target, source in ways for size in SIZES_BYTES
            ]
            for one in self._copies:
                one.target.copy_(one.source)  # the first copy of a buffer is slower
        for one in self._copies:
            one.take(copies)

    def roofs(self, contest: Contest) -> Iterator[Roof | None]:
        """The best size of each direction. Raises the error of an earlier copy."""
        if self._failure is not None:
            raise self._failure
        self._take(max(1, COPIES - min((len(one.times_s) for one in self._copies), default=0)))
        for name in dict.fromkeys(one.name for one in self._copies):
            best = max(
                (one for one in self._copies if one.name == name),
                key=lambda one: one.roof().bandwidth_bytes_per_s or 0.0,
            )
            yield contest.settled(best.roof(), functools.partial(_again, best, contest))


def _again(copies: _Copies, contest: Contest) -> Roof | None:
    copies.take(COPIES)
    return None if contest.stop() else copies.roof()
