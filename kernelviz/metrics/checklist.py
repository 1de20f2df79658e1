"""The checklist of a case: share of the roof, block size, launch cost, fusion, occupancy, accuracy, each ticked from facts.

The six points are those of a published guide to GPU kernels (source 3 of this project). A point is ticked by a rule with a
threshold, from facts of the case only; where a fact is unknown, the point is unknown. No point says that a kernel is fast: the
points say where to look.

- **bandwidth** (shown as share of the roof): as in the table of cases: the shortest time that the measured roofs allow (moving
  the fewest bytes, or computing, if that takes longer) over the time. Passed from 80 % on: from there on, Nsight Compute's
  "speed of light" rule says that work has to be shifted or removed, because the unit is well used.
- **block size**: the threads of a block of the longest kernel. Passed if they are a multiple of 32, because a warp has 32 threads
  and a partial one wastes the rest, and at least 128, or 64 if several blocks are resident on a multiprocessor (NVIDIA, CUDA C++
  Best Practices Guide, "Thread and Block Heuristics").
- **launch cost**: the time of an empty kernel for each kernel of the call, and the gaps between kernels, over the time; on a CPU
  the time of one torch call of one element. Passed below 40 %, the limiter's threshold of a launch-limited case.
- **fusion**: the number of kernels of one call. Passed with one: nothing is left to fuse inside of the call. A memset of the
  driver is a launch and is named, but it computes nothing that could be fused.
- **occupancy**: the warps of the longest kernel that are on the GPU at once, by its resources and its grid, over all that the GPU
  can hold. Passed above 25 %, below which the limiter names it as a reason for waiting. Kernels that keep asynchronous copies and
  tensor cores busy can be fast below that.
- **accuracy**: the correctness gate. Passed if every output element was inside its tolerance, for every fill.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, assert_never, get_args

from kernelviz.core import Device, Failure, Roof
from kernelviz.core.driver_operations import count_memsets
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.limiter import LOW_OCCUPANCY, MOSTLY_LAUNCH
from kernelviz.metrics.limiter_facts import CaseFacts, case_facts
from kernelviz.metrics.occupancy import WARP_THREADS, ResidencyLimit
from kernelviz.metrics.roof_checks import is_wide
from kernelviz.metrics.roofline import speed_of_light
from kernelviz.metrics.rows import Row

CheckName = Literal["bandwidth", "block_size", "launch_cost", "fusion", "occupancy", "accuracy"]
CHECKS: tuple[CheckName, ...] = get_args(CheckName)
Tick = Literal["passed", "not_passed", "unknown"]
WELL_USED = 0.8
"""Nsight Compute, SpeedOfLight section: "utilizing greater than 80.0% of the available compute or memory performance"."""
LEAST_THREADS, LEAST_THREADS_OF_SEVERAL = 128, 64
"""CUDA C++ Best Practices Guide: at least 64 threads, and only if several blocks are on a multiprocessor; 128 to 256 at first."""
SEVERAL_BLOCKS = 2

WhyUnknown = Literal["no_result", "wrong", "no_time", "not_stable", "no_roof", "no_kernels", "no_block", "no_empty_kernel",
                     "no_resources", "not_checked"]  # fmt: skip
"""Why a point is unknown: the case failed; its result is wrong, so that its time does not count; it has no time of these caches;
its time has two levels; the roof is not measured; no kernels were recorded (always on a CPU); the tracer did not say the size of
a block; the time of an empty kernel (on a CPU: of a torch call) is not measured; registers or shared memory of the kernel, or the
limits of the GPU, are not known; the outputs were not checked."""


NEEDS_ROOFS: tuple[WhyUnknown, ...] = ("no_roof", "no_empty_kernel")
"""What a calibration of the device would make known."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A point that cannot be ticked, and why."""

    why: WhyUnknown


@dataclass(frozen=True, slots=True)
class RoofShare:
    """The share of the roof that sets the shortest time."""

    fraction: float
    roof: Roof


@dataclass(frozen=True, slots=True)
class BlockSize:
    """The threads of a block of the longest kernel, and how many of its blocks a multiprocessor holds; None is unknown."""

    threads: int
    resident_blocks: int | None


@dataclass(frozen=True, slots=True)
class LaunchShare:
    """What launching takes at least, and the time: seconds. `kernels` of one call, without its `memsets`, which are launches too;
    None on a CPU, where a torch call counts."""

    launching_s: float
    time_s: float
    kernels: int | None
    memsets: int = 0

    @property
    def fraction(self) -> float:
        return self.launching_s / self.time_s


@dataclass(frozen=True, slots=True)
class KernelCount:
    """The number of kernels of one call, and of its fills of memory by the driver, which are launches but no kernels."""

    kernels: int
    memsets: int = 0


@dataclass(frozen=True, slots=True)
class ResidentShare:
    """The resident warps over all that the GPU can hold, at most `occupancy_fraction`, which `limited_by` limits; `waves`: how
    many times the grid fills the GPU."""

    fraction: float
    occupancy_fraction: float
    limited_by: ResidencyLimit
    waves: float


@dataclass(frozen=True, slots=True)
class GateResult:
    """What the correctness gate found: the largest error over its tolerance (None: not a number), over so many fills."""

    passed: bool
    worst_of_bound: float | None
    seeds: int


Fact = RoofShare | BlockSize | LaunchShare | KernelCount | ResidentShare | GateResult | Unknown


@dataclass(frozen=True, slots=True)
class Check:
    """A point of the checklist, its tick, and the fact behind it."""

    name: CheckName
    tick: Tick
    fact: Fact


def checklist(row: Row, device: Device, roofs: Sequence[Roof], headline: Headline = "cold") -> tuple[Check, ...]:
    """The six points of a case, in the order of CHECKS. `headline`: whether its cold or its warm time counts."""
    facts = _timed(row, device, roofs, headline)
    by_name: dict[CheckName, Fact] = {
        "bandwidth": _roof_share(row, roofs, headline, facts),
        "block_size": _block_size(facts),
        "launch_cost": _launch_share(facts, roofs),
        "fusion": _kernel_count(facts),
        "occupancy": _resident_share(facts),
        "accuracy": _gate_result(row),
    }
    return tuple(Check(name, _tick(by_name[name]), by_name[name]) for name in CHECKS)


def _tick(fact: Fact) -> Tick:
    passed = _passes(fact)
    return "unknown" if passed is None else "passed" if passed else "not_passed"


def _passes(fact: Fact) -> bool | None:
    """Whether the fact passes its rule; None if that is unknown."""
    match fact:
        case Unknown():
            return None
        case RoofShare(fraction=fraction):
            return fraction >= WELL_USED
        case BlockSize(threads=threads, resident_blocks=blocks):
            if threads % WARP_THREADS or threads < LEAST_THREADS_OF_SEVERAL:
                return False
            if threads >= LEAST_THREADS:
                return True
            return None if blocks is None else blocks >= SEVERAL_BLOCKS
        case LaunchShare():
            return fact.fraction < MOSTLY_LAUNCH
        case KernelCount(kernels=kernels):
            return kernels <= 1
        case ResidentShare(fraction=fraction):
            return fraction > LOW_OCCUPANCY
        case GateResult(passed=passed):
            return passed
        case _:
            assert_never(fact)


def _timed(row: Row, device: Device, roofs: Sequence[Roof], headline: Headline) -> CaseFacts | Unknown:
    """The facts of a correct time, or why there are none."""
    if row.failure is not None:
        return Unknown("wrong" if row.failure.stage in ("wrong", "impossible") else "no_result")
    if row.figure is None:
        return Unknown("no_time")
    return case_facts(row.result, row.figure, device, roofs, headline)


def _roof_share(row: Row, roofs: Sequence[Roof], headline: Headline, facts: CaseFacts | Unknown) -> Fact:
    if isinstance(facts, Unknown):
        return facts
    if row.unstable:
        return Unknown("not_stable")
    light = speed_of_light(row.result.problem, row.result.cost, roofs, headline)
    return Unknown("no_roof") if light is None or row.efficiency is None else RoofShare(row.efficiency, light.roof)


def _block_size(facts: CaseFacts | Unknown) -> Fact:
    if isinstance(facts, Unknown):
        return facts
    longest = facts.longest
    if longest is None:
        return Unknown("no_kernels")
    resident = facts.occupancy
    return (
        BlockSize(prod(longest.block), resident.blocks if resident else None) if longest.block else Unknown("no_block")
    )


def _launch_share(facts: CaseFacts | Unknown, roofs: Sequence[Roof]) -> Fact:
    if isinstance(facts, Unknown):
        return facts
    if facts.device.kind == "cpu":
        call_s = next((r.time_s for r in roofs if r.what == "torch_call" and r.time_s and not is_wide(r)), None)
        return Unknown("no_empty_kernel") if call_s is None else LaunchShare(call_s, facts.time_s, None)
    if not facts.result.kernels:
        return Unknown("no_kernels")
    if facts.empty_s is None:
        return Unknown("no_empty_kernel")
    memsets = count_memsets(facts.result.kernels)
    return LaunchShare(facts.launching_s, facts.time_s, facts.kernels - memsets, memsets)


def _kernel_count(facts: CaseFacts | Unknown) -> Fact:
    if isinstance(facts, Unknown):
        return facts
    if not facts.result.kernels:
        return Unknown("no_kernels")
    memsets = count_memsets(facts.result.kernels)
    return KernelCount(len(facts.result.kernels) - memsets, memsets)


def _resident_share(facts: CaseFacts | Unknown) -> Fact:
    if isinstance(facts, Unknown):
        return facts
    if not facts.result.kernels:
        return Unknown("no_kernels")
    resident = facts.occupancy
    if resident is None or resident.waves is None:
        return Unknown("no_resources")
    share = resident.fraction * min(1.0, resident.waves)
    return ResidentShare(share, resident.fraction, resident.limited_by, resident.waves)


def _gate_result(row: Row) -> Fact:
    accuracy, outcome = row.result.accuracy, row.result.outcome
    if isinstance(outcome, Failure) and outcome.stage == "wrong":
        # Also where the gate itself passed, for example a variant that compiled inside a timed region.
        worst = accuracy.worst_of_bound if accuracy else None
        return GateResult(False, worst, accuracy.seeds if accuracy else 0)
    return (
        Unknown("not_checked")
        if accuracy is None
        else GateResult(accuracy.passed, accuracy.worst_of_bound, accuracy.seeds)
    )
