"""Why a prediction of a fusion fails: facts about the steps, the fused kernel and the sizes that its method does not contain."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelviz.core import Device, Result, Roof
from kernelviz.core.driver_operations import count_memsets
from kernelviz.metrics.fusion_prediction import LaunchCost, PredictionA, PredictionB, Saving, UnfusedFacts
from kernelviz.metrics.limiter import limiter
from kernelviz.metrics.limiter_evidence import LimiterKind

MOST_ERROR = 0.14
"""A prediction fails if its logarithm differs by more from that of the measured speed-up."""
MOST_FACTOR = math.exp(MOST_ERROR)
"""The same as a factor between the two speed-ups: 1.15."""
NOTICEABLE = 0.15
"""A part of the time, or a distance from a roof, of this fraction explains a failed prediction."""


@dataclass(frozen=True, slots=True)
class ComputeBoundStep:
    """Arithmetic takes longer than memory in a step. `reached`: the shortest time of all steps over their measured time, which is
    below 1 because no product reaches the roof in every shape."""

    reached: float


@dataclass(frozen=True, slots=True)
class CacheResident:
    """An intermediate tensor fits into the last-level cache, so that its bytes never have to come from memory."""

    intermediate_bytes: int
    cache_bytes: int


@dataclass(frozen=True, slots=True)
class SmallerThanCopies:
    """An intermediate tensor is smaller than the smallest measured copy in the cache, so that it does not reach the bandwidth of
    that copy, and its bytes cost more than prediction B subtracts."""

    intermediate_bytes: int
    copy_bytes: int


@dataclass(frozen=True, slots=True)
class LaunchesMatter:
    """The saved launches are a noticeable part of the measured time of the steps."""

    launches: int
    fraction: float


@dataclass(frozen=True, slots=True)
class SlowSteps:
    """The steps take this many times as long as the roofs allow: the fused kernel also replaces slow kernels by a better one."""

    ratio: float


@dataclass(frozen=True, slots=True)
class SlowFused:
    """The fused variant takes this many times as long as the roofs allow. `limiter`: what limits it."""

    ratio: float
    limiter: LimiterKind


@dataclass(frozen=True, slots=True)
class Spills:
    """A kernel of the fused variant keeps so many bytes of each thread in local memory."""

    local_memory_bytes: int


@dataclass(frozen=True, slots=True)
class OtherKernels:
    """The steps and the fused variant do the product by kernels of different origin, whose speeds differ for other reasons."""

    unfused_backend: str
    fused_backend: str


@dataclass(frozen=True, slots=True)
class SeveralKernels:
    """The variant that counts as fused launches this many kernels; `memsets`: how many of these are fills of memory by the
    driver."""

    kernels: int
    memsets: int = 0


@dataclass(frozen=True, slots=True)
class WideInterval:
    """The measured speed-up is uncertain by this fraction, so the prediction may be right."""

    half_width: float


@dataclass(frozen=True, slots=True)
class NotExplained:
    """None of the known reasons applies."""


FusionReason = (
    ComputeBoundStep
    | CacheResident
    | SmallerThanCopies
    | LaunchesMatter
    | SlowSteps
    | SlowFused
    | Spills
    | OtherKernels
    | SeveralKernels
    | WideInterval
    | NotExplained
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Explained:
    """What the reasons are derived from. Only here, after both predictions, is the fused result known.
    `shortest` and `by_time`: predictions A and B, None without one. `half_width`: of the
    measured speed-up, as a fraction."""

    facts: UnfusedFacts
    saved: Saving
    launch: LaunchCost | None
    shortest: PredictionA | None
    by_time: PredictionB | None
    unfused: Result
    fused: Result
    fused_s: float
    half_width: float | None
    cache_bytes: int | None
    device: Device
    roofs: Sequence[Roof]


def reasons_of_a(case: Explained, error: float) -> tuple[FusionReason, ...]:
    """Why prediction A fails; empty if its `error` (a logarithm) is small."""
    if abs(error) <= MOST_ERROR:
        return ()
    compute = case.shortest is not None and any(case.shortest.compute_bound)
    reached = case.shortest.unfused_s / case.facts.time_s if case.shortest is not None else 1.0
    reasons = [
        *_uncertain(case),
        *([ComputeBoundStep(reached)] if compute and reached < 1 / (1 + NOTICEABLE) else []),
        *_in_cache(case),
        *_launches(case),
        *([] if compute else _slow_steps(case)),
        *_of_fused(case, too_high=error > 0),
    ]
    return tuple(reasons) or (NotExplained(),)


def reasons_of_b(case: Explained, error: float) -> tuple[FusionReason, ...]:
    """Why prediction B fails; empty if its `error` (a logarithm) is small.

    It subtracts the launches, so they are no reason. A tensor in the cache is one only if B takes its bytes at the bandwidth of
    the memory, and promises too much by that."""
    if abs(error) <= MOST_ERROR:
        return ()
    too_high = error > 0
    knows_cache = case.by_time is not None and case.by_time.cache_copy_bytes is not None
    reasons = [
        *_uncertain(case),
        *(_in_cache(case) if too_high and not knows_cache else []),
        *([] if too_high else [*_below_copies(case), *_slow_steps(case)]),
        *_of_fused(case, too_high=too_high),
    ]
    return tuple(reasons) or (NotExplained(),)


def _uncertain(case: Explained) -> list[FusionReason]:
    width = case.half_width
    return [WideInterval(width)] if width is not None and width >= NOTICEABLE else []


def _in_cache(case: Explained) -> list[FusionReason]:
    size = case.facts.intermediate_bytes
    return [CacheResident(size, case.cache_bytes)] if case.cache_bytes and size <= case.cache_bytes else []


def _below_copies(case: Explained) -> list[FusionReason]:
    size, copy = case.facts.intermediate_bytes, case.by_time.cache_copy_bytes if case.by_time is not None else None
    return [SmallerThanCopies(size, copy)] if copy is not None and size < copy else []


def _launches_s(case: Explained) -> float:
    return case.saved.launches * case.launch.time_s if case.launch is not None else 0.0


def _launches(case: Explained) -> list[FusionReason]:
    fraction = _launches_s(case) / case.facts.time_s
    return [LaunchesMatter(case.saved.launches, fraction)] if fraction >= NOTICEABLE else []


def _slow_steps(case: Explained) -> list[FusionReason]:
    if case.shortest is None:
        return []
    ratio = (case.facts.time_s - _launches_s(case)) / case.shortest.unfused_s
    return [SlowSteps(ratio)] if ratio > 1 + NOTICEABLE else []


def _of_fused(case: Explained, *, too_high: bool) -> list[FusionReason]:
    """Facts about the fused variant. `too_high`: more was promised than it reaches, so that what slows it down explains it."""
    reasons: list[FusionReason] = []
    spilled = max((k.local_memory_bytes or 0 for k in case.fused.kernels), default=0)
    ratio = case.fused_s / case.shortest.fused_s if case.shortest is not None else 1.0
    if too_high and ratio > 1 + NOTICEABLE:
        reasons.append(SlowFused(ratio, limiter(case.fused, case.device, case.roofs).kind))
    if too_high and spilled:
        reasons.append(Spills(spilled))
    if too_high and len(case.fused.kernels) > 1:
        reasons.append(SeveralKernels(len(case.fused.kernels), count_memsets(case.fused.kernels)))
    first, second = case.unfused.backend, case.fused.backend
    if any(step.contraction for step in case.facts.steps) and first and second and first != second:
        reasons.append(OtherKernels(first, second))
    return reasons
