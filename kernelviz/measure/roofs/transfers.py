"""Copies between pinned host memory and the device, timed by CUDA events. Their constant error is small compared with 5 ms."""

import functools
import itertools
import time
from collections.abc import Iterator

import torch
from torch import Tensor

from kernelviz.core import Block, Device, Roof, RoofName
from kernelviz.measure.roofs.candidate import Contest, measured
from kernelviz.measure.timing.kernels import timing_event
from kernelviz.metrics.statistics import Interval, figure_interval

SIZES_BYTES = (2**24, 2**26, 2**28)
BLOCKS, COPIES = 12, 2


def roofs(device: Device, contest: Contest) -> Iterator[Roof | None]:
    host = torch.empty(SIZES_BYTES[-1], dtype=torch.uint8, pin_memory=True).fill_(1)
    there = torch.zeros(SIZES_BYTES[-1], dtype=torch.uint8, device=device.id)
    ways: tuple[tuple[RoofName, Tensor, Tensor], ...] = (("h2d", there, host), ("d2h", host, there))
    for name, target, source in ways:
        of_sizes: list[Roof] = []
        for size in SIZES_BYTES:
            if contest.stop():
                return
            of_sizes.append(_copy(name, target[:size], source[:size]))
        best = max(of_sizes, key=lambda r: r.bandwidth_bytes_per_s or 0.0)
        size = best.moved_bytes or SIZES_BYTES[-1]
        yield contest.settled(best, functools.partial(_copy, name, target[:size], source[:size]))


def _copy(name: RoofName, target: Tensor, source: Tensor) -> Roof:
    size = target.numel()
    roof = Roof(name=name, moved_bytes=size, how=f"{size // 2**20} MiB of pinned memory in one copy")
    return measured(roof, size, copied(target, source), timer="events")


def copied(target: Tensor, source: Tensor) -> Interval:
    """The time of one copy in seconds."""
    samples: list[float] = []
    blocks: list[Block] = []
    target.copy_(source, non_blocking=True)
    for _ in range(BLOCKS):
        begun = time.time()
        ends = [timing_event() for _ in range(COPIES + 1)]
        torch.cuda.synchronize()
        ends[0].record()
        for end in ends[1:]:
            target.copy_(source, non_blocking=True)
            end.record()
        torch.cuda.synchronize()
        samples += [a.elapsed_time(b) / 1e3 for a, b in itertools.pairwise(ends)]
        blocks.append(Block(size=COPIES, started_s=begun))
    return figure_interval(samples, blocks)
