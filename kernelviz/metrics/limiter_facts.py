"""The facts of a case that the rules of the limiter use (metrics.limiter): its times, its roofs and the launch of its kernels."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod

from kernelviz.core import Cost, Device, Figure, Kernel, Result, Roof
from kernelviz.metrics.counters import CallCounters, call_counters
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.occupancy import Occupancy, occupancy
from kernelviz.metrics.roof_checks import is_wide
from kernelviz.metrics.roofline import compute_roof, level_of, memory_roof

FEWEST_WAVES = 2.0
MAIN_SHARE = 0.5
"""A kernel that takes this share of the time or more decides what limits the call."""


@dataclass(frozen=True, slots=True)
class Wave:
    """The blocks that the GPU runs at once: how long they take before the next ones, and the bytes of the problem a thread."""

    time_s: float
    bytes_per_thread: float


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """What the rules use; a part is None if it is unknown. `memory` and `compute` are the roofs that apply.

    `counted`: hardware counters, of a cold time only. `counted_memory`: the roof for the mix of reads and writes that was
    counted; `l2`: the L2's stream. `counted_s`, `l2_s`: what the counted bytes take at these roofs.
    """

    result: Result
    device: Device
    headline: Headline
    figure: Figure
    empty: Roof | None
    gap_s: float
    memory: Roof | None
    moving_s: float | None
    dram_bytes_per_s: float | None
    compute: Roof | None
    computing_s: float | None
    counted: CallCounters | None = None
    counted_memory: Roof | None = None
    l2: Roof | None = None

    @property
    def counted_s(self) -> float | None:
        bytes_counted = None if self.counted is None else self.counted.dram_bytes
        return _seconds(bytes_counted, self.counted_memory)

    @property
    def l2_s(self) -> float | None:
        return _seconds(None if self.counted is None else self.counted.l2_bytes, self.l2)

    @property
    def time_s(self) -> float:
        return self.figure.estimate

    @property
    def empty_s(self) -> float | None:
        """The time of an empty kernel."""
        return None if self.empty is None else self.empty.time_s

    @property
    def kernels(self) -> int:
        return max(len(self.result.kernels), 1)

    @property
    def launching_s(self) -> float:
        return 0.0 if self.empty_s is None else self.empty_s * self.kernels + self.gap_s

    @property
    def roofed_s(self) -> float:
        """The larger of moving and computing."""
        return max(self.moving_s or 0.0, self.computing_s or 0.0)

    @property
    def computes(self) -> bool:
        """Whether computing takes at least as long as moving: the problem is right of the ridge of the roofline."""
        return self.computing_s is not None and self.computing_s >= (self.moving_s or 0.0)

    @property
    def moved_bytes(self) -> int:
        return self.result.cost.moved_bytes if self.result.cost else 0

    @property
    def fits_in_l2(self) -> bool:
        return self.moved_bytes <= (self.device.last_level_cache_bytes or 0)

    @property
    def longest(self) -> Kernel | None:
        return max(self.result.kernels, key=lambda k: k.duration_s or 0.0, default=None)

    @property
    def occupancy(self) -> Occupancy | None:
        """The occupancy of the longest kernel of the call."""
        return None if self.longest is None else occupancy(self.longest, self.device)

    @property
    def main(self) -> Kernel | None:
        """The kernel that takes at least MAIN_SHARE of the time; None if there is none."""
        longest = self.longest
        return longest if longest is not None and (longest.duration_s or 0.0) >= MAIN_SHARE * self.time_s else None

    @property
    def blocks(self) -> int | None:
        """The blocks of the longest kernel; None if its grid is unknown."""
        return None if self.longest is None or not self.longest.grid else prod(self.longest.grid)

    @property
    def working_fraction(self) -> float | None:
        """The share of the multiprocessors' time in which they have work, if all blocks of the longest kernel take equally long
        and share a multiprocessor evenly. 1 if the grid has more blocks than run at once, or if that is unknown; None if the
        grid is unknown.

        One block for each of 98 of 132 multiprocessors: 0.74. 196 blocks, two of them on 64 multiprocessors: 196 / 264 = 0.74.
        """
        blocks, count = self.blocks, self.device.multiprocessors
        if blocks is None or not count:
            return None
        waves = None if self.occupancy is None else self.occupancy.waves
        if blocks > count and (waves is None or waves > 1):
            return 1.0
        return blocks / (count * ceil(blocks / count))

    @property
    def resident_threads(self) -> int | None:
        """The most threads of the main kernel that are on the GPU at once: as its resources and its grid allow."""
        kernel, resident, count = self.main, self.occupancy, self.device.multiprocessors
        if kernel is None or resident is None or not kernel.grid or not kernel.block or not count:
            return None
        return min(resident.blocks * count, prod(kernel.grid)) * prod(kernel.block)

    @property
    def resident_fraction(self) -> float | None:
        """The resident threads of the main kernel over all that the GPU can hold; None if that is unknown."""
        resident, threads = self.occupancy, self.resident_threads
        if threads is None or resident is None or not resident.waves:
            return None
        return resident.fraction * min(1.0, resident.waves)

    @property
    def wave(self) -> Wave | None:
        """Of a call of one kernel; None if it is unknown or the GPU runs all blocks at once."""
        kernel, resident = self.longest, self.occupancy
        if kernel is None or resident is None or len(self.result.kernels) != 1 or not kernel.grid or not kernel.block:
            return None
        if resident.waves is None or resident.waves < FEWEST_WAVES:
            return None
        threads = prod(kernel.grid) * prod(kernel.block)
        return Wave(self.time_s / resident.waves, self.moved_bytes / threads)

    def of_time(self, part_s: float | None) -> float:
        """A part of the time as a fraction."""
        return (part_s or 0.0) / self.time_s


def case_facts(result: Result, figure: Figure, device: Device, roofs: Sequence[Roof], headline: Headline) -> CaseFacts:
    cost = result.cost
    dram = memory_roof(cost, roofs) if cost else None
    memory = memory_roof(cost, roofs, level_of(cost, roofs, headline)) if cost else None
    compute = compute_roof(result.problem, roofs, cost) if cost else None
    rate = memory.bandwidth_bytes_per_s if memory else None
    flop_per_s = compute.rate_flop_per_s if compute else None
    counted = call_counters(result.hardware_counters) if headline == "cold" else None
    busy = result.timing.busy_s if result.timing and headline == "cold" else None
    return CaseFacts(
        result=result,
        device=device,
        headline=headline,
        figure=figure,
        empty=next((r for r in roofs if r.what == "empty_kernel" and r.time_s and not is_wide(r)), None),
        gap_s=max(figure.estimate - busy.estimate, 0.0) if busy else 0.0,
        memory=memory,
        moving_s=cost.moved_bytes / rate if cost and rate else None,
        dram_bytes_per_s=dram.bandwidth_bytes_per_s if dram else None,
        compute=compute,
        computing_s=cost.work_flop / flop_per_s if cost and flop_per_s else None,
        counted=counted,
        counted_memory=_counted_memory(counted, roofs),
        l2=memory_roof(cost, roofs, "l2") if cost and counted else None,
    )


def _counted_memory(counted: CallCounters | None, roofs: Sequence[Roof]) -> Roof | None:
    if counted is None or counted.dram_read_bytes is None or counted.dram_written_bytes is None:
        return None
    traffic = Cost(work_flop=0, read_bytes=counted.dram_read_bytes, written_bytes=counted.dram_written_bytes)
    return memory_roof(traffic, roofs) if traffic.moved_bytes else None


def _seconds(moved_bytes: int | None, roof: Roof | None) -> float | None:
    """How long the bytes take at a roof; None if one is unknown."""
    rate = None if roof is None else roof.bandwidth_bytes_per_s
    return None if moved_bytes is None or not rate else moved_bytes / rate
