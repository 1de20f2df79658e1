"""Checks of the instrument on a processor, whose timer is the host's clock round one call."""

import time
from statistics import median

import torch
from torch import Tensor

from kernelviz.measure.selftest.workbench import Finding, Workbench, probe
from kernelviz.measure.timing.host import DEFAULT_CACHE_BYTES
from kernelviz.measure.timing.timer import BoundLaunch
from kernelviz.ops import Launch

EMPTY_MOST_S = 20e-6
CACHES = 4
COPY_REPEATS = 12
BETWEEN = 0.25
"""Two ways of timing a copy may differ by this share: other processes on a small machine occupy a core for milliseconds."""


@probe("What does the method read for a call that does nothing?", limit=EMPTY_MOST_S, unit="s")
def empty_call_on_processor(at: Workbench) -> Finding:
    """One Python call after a flush, which has also emptied its caches."""
    figure = at.figure(at.timed(BoundLaunch(lambda: ())), 0.3)
    return Finding(
        figure.estimate, {"estimate_s": figure.estimate, "low_s": figure.low or 0.0, "high_s": figure.high or 0.0}
    )


@probe("Do one copy behind a flush and copies back to back give the same bandwidth?", limit=BETWEEN, unit="fraction")
def known_traffic_copy_on_processor(at: Workbench) -> Finding:
    """Copies of four times the last-level cache, timed alternately in both ways."""
    elements = _cache_bytes(at) * CACHES // 8
    source, target = torch.randn(elements), torch.empty(elements)
    timed = at.timed(BoundLaunch(lambda: target.copy_(source)))
    alone: list[float] = []
    in_a_row: list[float] = []
    for _ in range(COPY_REPEATS):
        at.go_on()
        alone += at.timer.collect([[timed]])[0][0].samples[:2]
        begun = time.perf_counter()
        for _ in range(2):
            target.copy_(source)
        in_a_row.append((time.perf_counter() - begun) / 2)
    moved = 8 * elements
    figures = {
        "behind_a_flush_s": median(alone),
        "back_to_back_s": median(in_a_row),
        "bandwidth_bytes_per_s": moved / median(alone),
    }
    return Finding(abs(median(alone) / median(in_a_row) - 1), figures)


@probe(
    "How many times as long is a read of an eighth of the cache behind the flush, against one with its data there?",
    limit=1.2,
    unit="fraction",
    at_most=False,
)
def flush_by_time_on_processor(at: Workbench) -> Finding:
    """The ratio of cold to warm; 1 would mean that the flush has no effect."""
    source = torch.randn(_cache_bytes(at) // 8 // 4)
    read = _reads(source)
    cold = at.figure(at.timed(BoundLaunch(read)), 0.5)
    warm: list[float] = []
    for _ in range(20):
        begun = time.perf_counter()
        read()
        warm.append(time.perf_counter() - begun)
    figures = {"cold_s": cold.estimate, "warm_s": median(warm), "read_bytes": 4.0 * source.numel()}
    return Finding(cold.estimate / median(warm), figures)


def _reads(source: Tensor) -> Launch:
    sum_ = torch.empty((), dtype=source.dtype)
    return lambda: torch.sum(source, dim=0, out=sum_)


def _cache_bytes(at: Workbench) -> int:
    return min(at.device.last_level_cache_bytes or DEFAULT_CACHE_BYTES, at.room_bytes // 8)
