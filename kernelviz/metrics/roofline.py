"""From cost and time to bandwidth, rate, arithmetic intensity, speed of light and efficiency.

Williams, Waterman, Patterson: Roofline, an insightful visual performance model (CACM 52(4), 2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelviz.core.problem import Cost, Problem
from kernelviz.core.result import Figure, Result
from kernelviz.core.run import Roof, RoofName


def bandwidth_bytes_per_s(cost: Cost, time_s: float) -> float:
    """Minimal bytes over time: what the kernel achieved of the traffic that the problem needs.

    >>> bandwidth_bytes_per_s(Cost(work_flop=0, read_bytes=2_000_000, written_bytes=1_000_000), 1e-6) / 1e12
    3.0
    """
    return cost.moved_bytes / time_s


def rate_flop_per_s(cost: Cost, time_s: float) -> float:
    """Flop over time.

    >>> rate_flop_per_s(Cost(work_flop=2_000, read_bytes=1, written_bytes=1), 0.5)
    4000.0
    """
    return cost.work_flop / time_s


def arithmetic_intensity(cost: Cost) -> float | None:
    """Flop a byte; None when nothing is moved.

    >>> arithmetic_intensity(Cost(work_flop=1, read_bytes=8, written_bytes=4))
    0.08333333333333333
    """
    return cost.work_flop / cost.moved_bytes if cost.moved_bytes else None


def stream_name(cost: Cost) -> RoofName:
    """The measured stream whose read:write mix is nearest to the cost's (by share of written bytes).

    >>> stream_name(Cost(work_flop=0, read_bytes=8, written_bytes=4))
    'read2_write1'
    """
    shares: dict[RoofName, float] = {
        "read": 0.0,
        "read2_write1": 1 / 3,
        "copy": 1 / 2,
        "read1_write2": 2 / 3,
        "write": 1.0,
    }
    written = cost.written_bytes / cost.moved_bytes if cost.moved_bytes else 0.5
    return min(shares, key=lambda name: abs(shares[name] - written))


def memory_roof(cost: Cost, roofs: Sequence[Roof]) -> Roof | None:
    """The measured bandwidth that applies to the cost's mix: the nearest stream, else copy, else None (not calibrated)."""
    by_name = {r.name: r for r in roofs if r.bandwidth_bytes_per_s}
    return by_name.get(stream_name(cost)) or by_name.get("copy")


def compute_roof(problem: Problem, roofs: Sequence[Roof]) -> Roof | None:
    """The measured matrix-product rate of the problem's precision, None when it was not measured."""
    return next(
        (r for r in roofs if r.name == "matmul" and r.precision == problem.precision and r.rate_flop_per_s), None
    )


@dataclass(frozen=True, slots=True)
class SpeedOfLight:
    """The least time that the measured roofs allow, and which of them sets it."""

    time_s: float
    memory_s: float
    compute_s: float | None
    memory: Roof
    compute: Roof | None

    @property
    def bound(self) -> str:
        return "compute" if self.compute_s is not None and self.compute_s > self.memory_s else "memory"


def speed_of_light(problem: Problem, cost: Cost, roofs: Sequence[Roof]) -> SpeedOfLight | None:
    """max(bytes / bandwidth, flop / peak); None without a measured bandwidth.

    Where the compute roof of this precision is unknown, memory alone decides, unless the problem does more than 16 flop
    a byte: then the truth would be a guess and the answer is None.
    """
    memory = memory_roof(cost, roofs)
    compute = compute_roof(problem, roofs)
    if memory is None or not memory.bandwidth_bytes_per_s:
        return None
    intensity = arithmetic_intensity(cost) or 0.0
    if compute is None and intensity > 16:
        return None
    memory_s = cost.moved_bytes / memory.bandwidth_bytes_per_s
    compute_s = cost.work_flop / compute.rate_flop_per_s if compute and compute.rate_flop_per_s else None
    return SpeedOfLight(max(memory_s, compute_s or 0.0), memory_s, compute_s, memory, compute)


def efficiency(result: Result, roofs: Sequence[Roof], figure: Figure | None = None) -> float | None:
    """Speed of light over measured time (the cold one unless another is given); None when either is unknown."""
    timing = result.timing
    chosen = figure or (timing.device_cold_s if timing else None)
    if chosen is None or result.cost is None:
        return None
    light = speed_of_light(result.problem, result.cost, roofs)
    return None if light is None else light.time_s / chosen.estimate
