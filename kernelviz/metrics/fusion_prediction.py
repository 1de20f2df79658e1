"""How much faster a fused kernel should be than the steps that it replaces, predicted in two ways.

Prediction A uses costs and measured roofs only. Each step takes the larger of its flop at the arithmetic roof of its precision
and its bytes at the measured stream of the same mix of reads and writes, in memory. The speed-up is the sum of the steps over the
same for the fused op.

Prediction B uses the measured time of the steps. It subtracts the bytes that fusing saves, at the bandwidth for tensors of the
size of the intermediate ones (`bandwidth_at`), and the launches that fusing saves, at the measured cost of a launch.

No function here takes a time of the fused variant: `UnfusedFacts` and `Cost` are all that they are given.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from kernelviz.core import Cost, Roof
from kernelviz.core.fusion import Step, smallest_intermediate_bytes, unfused_bytes
from kernelviz.metrics.roof_checks import is_wide, refusal
from kernelviz.metrics.roofline import arithmetic_roof, memory_roof

LaunchSource = Literal["empty_launch", "empty_kernel", "torch_call"]
"""Where the cost of a launch is from: the slope of a recorded run of `empty_launch` on a GPU of the model, or a roof: the time of
an empty kernel on the device, or on a CPU the time of one call of torch."""
MissingFact = Literal["bandwidth", "compute_rate", "launch_cost", "more_saved_than_measured", "not_stable"]
"""Why there is no prediction. ``more_saved_than_measured``: the saved bytes and launches take longer than the measured steps.
``not_stable``: the time of the steps has two levels, so no single number is the time."""


@dataclass(frozen=True, slots=True)
class LaunchCost:
    """What one more kernel adds to the device time of a call, in seconds, and where that is from."""

    time_s: float
    source: LaunchSource


@dataclass(frozen=True, kw_only=True, slots=True)
class UnfusedFacts:
    """What is known of the steps without fusing them. `time_s`: their measured device time; `launches`: the kernels of a call as
    the tracer counted them, else as declared; `memsets`: how many of these are fills of memory by the driver. `precision`: of the
    arithmetic."""

    steps: tuple[Step, ...]
    time_s: float
    launches: int
    precision: str
    memsets: int = 0

    @property
    def intermediate_bytes(self) -> int:
        """The smallest tensor between two steps."""
        return smallest_intermediate_bytes(self.steps)


@dataclass(frozen=True, slots=True)
class Saving:
    """What one kernel saves. `moved_bytes`: bytes that are neither written nor read again. `launches`: kernels and, among them,
    `memsets`: fills of memory by the driver."""

    moved_bytes: int
    launches: int
    memsets: int = 0


@dataclass(frozen=True, slots=True)
class PredictionA:
    """By costs and roofs alone: the shortest time of all steps, that of the fused op, and for each step whether its arithmetic
    takes longer than its bytes."""

    unfused_s: float
    fused_s: float
    compute_bound: tuple[bool, ...]

    @property
    def speed_up(self) -> float:
        return self.unfused_s / self.fused_s


@dataclass(frozen=True, slots=True)
class PredictionB:
    """By the measured time of the steps: the predicted time of the fused kernel, and the two parts that were subtracted.
    `cache_copy_bytes`: the smallest measured copy in the last-level cache; None without one, so that the bytes of every tensor
    are taken at the bandwidth of the memory."""

    unfused_s: float
    fused_s: float
    bytes_s: float
    launches_s: float
    bandwidth_bytes_per_s: float
    cache_copy_bytes: int | None

    @property
    def speed_up(self) -> float:
        return self.unfused_s / self.fused_s


def saving(facts: UnfusedFacts, fused: Cost) -> Saving:
    """The bytes and launches that one kernel of this cost saves."""
    launches = max(facts.launches - 1, 0)
    moved_bytes = max(unfused_bytes(facts.steps) - fused.moved_bytes, 0)
    return Saving(moved_bytes, launches, min(facts.memsets, launches))


def shortest_s(
    cost: Cost, precision: str, roofs: Sequence[Roof], *, contraction: bool
) -> tuple[float, bool] | MissingFact:
    """The shortest time that the measured roofs allow, and whether arithmetic sets it.

    >>> roofs = (Roof(name="copy", level="dram", moved_bytes=64, bandwidth_bytes_per_s=10.0),)
    >>> shortest_s(Cost(work_flop=0, read_bytes=20, written_bytes=20), "bf16", roofs, contraction=False)
    (4.0, False)
    >>> shortest_s(Cost(work_flop=9, read_bytes=20, written_bytes=20), "bf16", roofs, contraction=True)
    'compute_rate'
    """
    memory = memory_roof(cost, roofs)
    if memory is None or not memory.bandwidth_bytes_per_s:
        return "bandwidth"
    compute = arithmetic_roof(precision, roofs, contraction=contraction)
    if contraction and compute is None:
        return "compute_rate"
    memory_s = cost.moved_bytes / memory.bandwidth_bytes_per_s
    compute_s = cost.work_flop / compute.rate_flop_per_s if compute and compute.rate_flop_per_s else 0.0
    return max(memory_s, compute_s), compute_s > memory_s


def predict_by_costs(
    steps: tuple[Step, ...], fused: Cost, precision: str, roofs: Sequence[Roof]
) -> PredictionA | MissingFact:
    """Prediction A. No measured time of any variant is given to it."""
    shortest = [shortest_s(step.cost, precision, roofs, contraction=step.contraction) for step in steps]
    whole = shortest_s(fused, precision, roofs, contraction=any(step.contraction for step in steps))
    known = []
    for one in (*shortest, whole):
        if not isinstance(one, tuple):
            return one
        known.append(one)
    (*of_steps, of_fused) = known
    return PredictionA(sum(s for s, _ in of_steps), of_fused[0], tuple(bound for _, bound in of_steps))


def predict_by_unfused_time(
    facts: UnfusedFacts, fused: Cost, roofs: Sequence[Roof], launch: LaunchCost | None
) -> PredictionB | MissingFact:
    """Prediction B. `fused`: the cost of the fused op, not a time of it."""
    saved = saving(facts, fused)
    bandwidth = bandwidth_at(facts.intermediate_bytes, roofs)
    if bandwidth is None:
        return "bandwidth"
    if launch is None:
        return "launch_cost"
    bytes_s, launches_s = saved.moved_bytes / bandwidth, saved.launches * launch.time_s
    fused_s = facts.time_s - bytes_s - launches_s
    if fused_s <= 0:
        return "more_saved_than_measured"
    return PredictionB(facts.time_s, fused_s, bytes_s, launches_s, bandwidth, min(_copies(roofs)[0], default=None))


def bandwidth_at(tensor_bytes: int, roofs: Sequence[Roof]) -> float | None:
    """The bandwidth in bytes/s of one more tensor of this size that is written and read again.

    Measured copies give it. Inside the last-level cache it is the bandwidth of the copy with that working set. In memory it is
    the marginal bandwidth: the extra bytes of the larger of two copies divided by its extra time. Alone, a copy leaves its last
    writes in the cache and does not wait for them, but in a sequence of steps each step also waits for those of the step before.
    A size belongs to the two copies whose tensors are next to it. Between the largest copy in the cache and the smallest
    one in memory the bandwidth is interpolated in the logarithm of the size. None without a measured copy in memory.

    >>> cached = Roof(name="copy", level="l2", moved_bytes=10, bandwidth_bytes_per_s=8.0)
    >>> stored = Roof(name="copy", level="dram", moved_bytes=2000, bandwidth_bytes_per_s=4.0)
    >>> [bandwidth_at(size, (cached, stored)) for size in (5, 100, 5000)]
    [8.0, 6.0, 4.0]
    >>> larger = Roof(name="copy", level="dram", moved_bytes=8000, bandwidth_bytes_per_s=3.2)
    >>> bandwidth_at(5000, (cached, stored, larger))  # 6000 bytes more in 2000 s more
    3.0
    """
    cached, in_memory = _copies(roofs)
    if not in_memory:
        return None
    if tensor_bytes >= in_memory[0][0]:
        return next(rate for size, rate in reversed(in_memory) if size <= tensor_bytes)
    points = [*sorted(cached.items()), in_memory[0]]
    below = next((p for p in reversed(points) if p[0] <= tensor_bytes), points[0])
    above = next(p for p in points if p[0] >= tensor_bytes)
    if below[0] >= above[0]:
        return above[1]
    share = math.log(tensor_bytes / below[0]) / math.log(above[0] / below[0])
    return below[1] + (above[1] - below[1]) * share


def _copies(roofs: Sequence[Roof]) -> tuple[dict[int, float], list[tuple[int, float]]]:
    """The bandwidth of each usable copy in the last-level cache by its working set, and the marginal bandwidths in memory."""
    copies = [r for r in roofs if r.name == "copy" and r.bandwidth_bytes_per_s and r.moved_bytes]
    stored = {(r.moved_bytes or 0): r for r in copies if r.level in ("dram", None) and not is_wide(r)}
    if not stored:
        return {}, []
    in_memory = _marginal([(size, stored[size].bandwidth_bytes_per_s or 0.0) for size in sorted(stored)])
    cached = {
        size: r.bandwidth_bytes_per_s or 0.0
        for r in copies
        if r.level == "l2" and (size := r.moved_bytes or 0) < in_memory[0][0] and refusal(r, roofs) is None
    }
    return cached, in_memory


def _marginal(copies: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """From each size on (bytes of one of the two tensors), the marginal bandwidth of the next larger copy.

    `copies`: moved bytes and bytes/s, the smallest first. A pair in which the larger copy is not the longer one is left out; with
    no pair left, each copy has its own bandwidth."""
    pairs = [
        (one // 2, (more - one) / (more / fast - one / slow))
        for (one, slow), (more, fast) in pairwise(copies)
        if more / fast > one / slow
    ]
    return pairs or [(moved // 2, rate) for moved, rate in copies]


def ln_error(predicted: float, measured: float) -> float:
    """The natural logarithm of a predicted over a measured speed-up: above 0, the prediction promises too much.

    >>> round(ln_error(2.2, 2.0), 3)
    0.095
    """
    return math.log(predicted / measured)
