"""What the hardware counters of one call say: the sums over its kernels, and the share of the measured traffic that was needed.

Bytes, requests, sectors and durations of the kernels are added. Shares of cycles and warps of a scheduler are means over the
kernels, weighted with their durations; hit rates and stalls are too. A sum or mean is unknown if it is unknown for one kernel.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from kernelviz.core import Cost, Counters, KernelCounters
from kernelviz.core.counters import SECTOR_BYTES, Pipe, StallReason

PIPES: tuple[Pipe, ...] = get_args(Pipe)
_OF_PIPES: dict[Pipe, Callable[[KernelCounters], float | None]] = {
    "fma": lambda k: k.fma_fraction,
    "alu": lambda k: k.alu_fraction,
    "xu": lambda k: k.xu_fraction,
    "lsu": lambda k: k.lsu_fraction,
    "tensor": lambda k: k.tensor_fraction,
}
WAITING: tuple[StallReason, ...] = tuple(r for r in get_args(StallReason) if r not in ("selected", "not_selected"))
"""States of a warp that cannot issue. A warp that was not selected could: another one was chosen."""


@dataclass(frozen=True)
class CallCounters:
    """The counters of a call as a whole."""

    kernels: tuple[KernelCounters, ...]

    @cached_property
    def duration_s(self) -> float | None:
        """The sum of the kernels' durations under the profiler."""
        return _total([k.duration_s for k in self.kernels])

    @cached_property
    def dram_read_bytes(self) -> int | None:
        return _whole_total([k.dram_read_bytes for k in self.kernels])

    @cached_property
    def dram_written_bytes(self) -> int | None:
        return _whole_total([k.dram_written_bytes for k in self.kernels])

    @property
    def dram_bytes(self) -> int | None:
        """Both directions between L2 and device memory."""
        read, written = self.dram_read_bytes, self.dram_written_bytes
        return None if read is None or written is None else read + written

    @cached_property
    def l2_bytes(self) -> int | None:
        return _whole_total([k.l2_bytes for k in self.kernels])

    @cached_property
    def l1_bytes(self) -> int | None:
        return _whole_total([k.l1_bytes for k in self.kernels])

    @cached_property
    def l2_hit_fraction(self) -> float | None:
        return self._mean(lambda k: k.l2_hit_fraction)

    @cached_property
    def l1_hit_fraction(self) -> float | None:
        return self._mean(lambda k: k.l1_hit_fraction)

    @cached_property
    def issue_fraction(self) -> float | None:
        return self._mean(lambda k: k.issue_fraction)

    @cached_property
    def eligible_warps(self) -> float | None:
        return self._mean(lambda k: k.eligible_warps)

    @cached_property
    def active_warps(self) -> float | None:
        return self._mean(lambda k: k.active_warps)

    @cached_property
    def pipes(self) -> dict[Pipe, float]:
        """The share of the cycles in which each pipe is busy, without those that are unknown."""
        shares = {pipe: self._mean(share) for pipe, share in _OF_PIPES.items()}
        return {pipe: share for pipe, share in shares.items() if share is not None}

    @property
    def busiest_pipe(self) -> tuple[Pipe, float] | None:
        return max(self.pipes.items(), key=lambda pair: pair[1], default=None)

    @cached_property
    def stalls(self) -> dict[StallReason, float]:
        """Warps in each state for each issued instruction; only states that are known of all kernels."""
        known = set.intersection(*(set(k.stalls) for k in self.kernels)) if self.kernels else set()
        means = {reason: self._mean_of([k.stalls[reason] for k in self.kernels]) for reason in sorted(known)}
        return {reason: mean for reason, mean in means.items() if mean is not None}

    @property
    def top_stall(self) -> tuple[StallReason, float] | None:
        """The state in which most warps wait, and its share of all waiting warps; None if nothing is known of waiting."""
        waiting = {reason: warps for reason, warps in self.stalls.items() if reason in WAITING}
        total = sum(waiting.values())
        if not total:
            return None
        reason = max(waiting, key=lambda r: waiting[r])
        return reason, waiting[reason] / total

    @cached_property
    def load_sectors_per_request(self) -> float | None:
        """32-byte sectors of a warp's load from global memory: 4 for 4 bytes a thread side by side, 32 if each is elsewhere."""
        return self._per_request([(k.load_sectors, k.load_requests) for k in self.kernels])

    @cached_property
    def store_sectors_per_request(self) -> float | None:
        return self._per_request([(k.store_sectors, k.store_requests) for k in self.kernels])

    @cached_property
    def sector_bytes(self) -> int | None:
        """The bytes of all sectors that loads and stores on global memory touched."""
        sectors = [s for k in self.kernels for s in (k.load_sectors, k.store_sectors)]
        total = _whole_total(sectors)
        return None if total is None else total * SECTOR_BYTES

    @staticmethod
    def _per_request(pairs: Sequence[tuple[int | None, int | None]]) -> float | None:
        sectors, requests = _total([s for s, _ in pairs]), _total([r for _, r in pairs])
        return sectors / requests if sectors is not None and requests else None

    def _mean(self, value: Callable[[KernelCounters], float | None]) -> float | None:
        """The mean over the kernels, weighted with their durations; the only value if there is one kernel."""
        return self._mean_of([value(k) for k in self.kernels])

    def _mean_of(self, values: Sequence[float | None]) -> float | None:
        if len(values) == 1:
            return values[0]
        durations = [k.duration_s for k in self.kernels]
        total = _total(durations)
        parts = [v * d for v, d in zip(values, durations, strict=True) if v is not None and d is not None]
        return sum(parts) / total if total and len(parts) == len(values) else None


def call_counters(counters: Counters | None) -> CallCounters | None:
    """The counters of the call as a whole; None if there are none."""
    return None if counters is None or not counters.kernels else CallCounters(counters.kernels)


def traffic_ratio(cost: Cost | None, counters: Counters | None) -> float | None:
    """The bytes between L2 and device memory over the least bytes that the problem has to move; None if one is unknown.

    Below 1: written data stayed in the L2, or inputs came from it.

    >>> kernel = KernelCounters(kernel="k", dram_read_bytes=150, dram_written_bytes=50)
    >>> traffic_ratio(Cost(work_flop=0, read_bytes=50, written_bytes=50), Counters(kernels=(kernel,)))
    2.0
    """
    call = call_counters(counters)
    if cost is None or not cost.moved_bytes or call is None or call.dram_bytes is None:
        return None
    return call.dram_bytes / cost.moved_bytes


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _whole_total(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
