"""The checklist of a case in text: the points, their rules, and the fact behind each tick."""

from collections.abc import Sequence
from typing import assert_never

from kernelviz.core import Roof, units
from kernelviz.metrics.checklist import (
    LEAST_THREADS,
    LEAST_THREADS_OF_SEVERAL,
    WELL_USED,
    BlockSize,
    Check,
    CheckName,
    Fact,
    GateResult,
    KernelCount,
    LaunchShare,
    ResidentShare,
    RoofShare,
    Tick,
    Unknown,
    WhyUnknown,
)
from kernelviz.metrics.limiter import LOW_OCCUPANCY, MOSTLY_LAUNCH
from kernelviz.text.limiter import format_residency_limit
from kernelviz.text.roofs import format_roof_name
from kernelviz.text.text import Text

NAMES: dict[CheckName, str] = {
    "bandwidth": "Share of the roof",
    "block_size": "Block size",
    "launch_cost": "Launch cost",
    "fusion": "Fusion",
    "occupancy": "Occupancy",
    "accuracy": "Accuracy",
}
_WELL_USED, _LAUNCH, _OCCUPANCY = (units.percent(share, 0) for share in (WELL_USED, MOSTLY_LAUNCH, LOW_OCCUPANCY))
RULES: dict[CheckName, str] = {
    "bandwidth": f"Passed from {_WELL_USED} of the roof on: the shortest time that the measured roofs allow, divided by the "
    "time. The roof is that of bandwidth or of arithmetic, whichever takes longer. From there on, Nsight Compute calls the unit "
    "well used.",
    "block_size": "Passed if the threads of a block of the longest kernel are a multiple of 32 (a warp), and at least "
    f"{LEAST_THREADS}, or {LEAST_THREADS_OF_SEVERAL} if several blocks are on a multiprocessor (CUDA C++ Best Practices Guide).",
    "launch_cost": "Passed if an empty kernel for each kernel of the call, and the gaps between kernels, take less than "
    f"{_LAUNCH} of the time. On a CPU, one torch call of one element counts.",
    "fusion": "Passed if one call is one kernel, so that nothing is left to fuse inside it. A memset of the driver is a launch, "
    "but it computes nothing that could be fused.",
    "occupancy": f"Passed if more than {_OCCUPANCY} of the warps that the GPU can hold are on it at once, by the resources of "
    "the longest kernel and its grid. Kernels with asynchronous copies and tensor cores can be fast below that.",
    "accuracy": "Passed if the correctness gate found every output element inside its tolerance, for every fill of the inputs.",
}
"""When a point is passed, and why there."""
TICKS: dict[Tick, str] = {"passed": "✓ passed", "not_passed": "✕ not passed", "unknown": "? unknown"}
_SIGNS: dict[Tick, str] = {"passed": "✓", "not_passed": "✕", "unknown": "?"}
WHY_UNKNOWN: dict[WhyUnknown, str] = {
    "no_result": "the case has no result",
    "wrong": "the result is wrong, so its time does not count",
    "no_time": "it has no time with these caches",
    "not_stable": "its time is not stable",
    "no_roof": "the roof is not measured (calibrate)",
    "no_kernels": "no kernels were recorded",
    "no_block": "the tracer did not say the size of a block",
    "no_empty_kernel": "the time of an empty launch is not measured (calibrate)",
    "no_resources": "the resources of the kernel or the limits of the GPU are not known",
    "not_checked": "its outputs were not checked",
}


def describe_fact(fact: Fact) -> Text:
    """The fact behind a tick, with its numbers.

    >>> str(describe_fact(KernelCount(3))), str(describe_fact(BlockSize(256, 8))), str(describe_fact(Unknown("no_roof")))
    ('3 kernels in a call', '256 threads, 8 blocks on a multiprocessor', 'the roof is not measured (calibrate)')
    >>> str(describe_fact(KernelCount(1, memsets=1)))
    '1 kernel and 1 memset in a call'
    >>> str(describe_fact(LaunchShare(0.7e-6, 7e-6, 1))), str(describe_fact(GateResult(True, 0.412, 3)))
    ('launching is 10.0 % of 7.000 µs (1 kernel)', 'error 41 % of tolerance, 3 fills')
    """
    match fact:
        case Unknown(why=why):
            return Text(WHY_UNKNOWN[why])
        case RoofShare(fraction=fraction, roof=roof):
            return Text(f"{units.percent(fraction)} of the roof of {_roof_kind(roof)}, {format_roof_name(roof)}")
        case BlockSize(threads=threads, resident_blocks=blocks):
            on_sm = "" if blocks is None else f", {units.counted(blocks, 'block')} on a multiprocessor"
            return Text(f"{units.counted(threads, 'thread')}{on_sm}")
        case LaunchShare(time_s=time_s, kernels=kernels, memsets=memsets):
            what = "one torch call" if kernels is None else _count_kernels(kernels, memsets)
            return Text(f"launching is {units.percent(fact.fraction)} of {units.seconds(time_s)} ({what})")
        case KernelCount(kernels=kernels, memsets=memsets):
            return Text(f"{_count_kernels(kernels, memsets)} in a call")
        case ResidentShare(fraction=fraction, occupancy_fraction=most, limited_by=limit, waves=waves):
            small = f", the grid fills {units.percent(waves)} of one wave" if waves < 1 else ""
            return Text(
                f"{units.percent(fraction)} of the warps: theoretical occupancy {units.percent(most)}, limited by "
                f"{format_residency_limit(limit)}{small}"
            )
        case GateResult(passed=passed, worst_of_bound=worst, seeds=seeds):
            fills = f", {units.counted(seeds, 'fill')}" if seeds else ""
            if worst is None:
                return Text(f"{'passed' if passed else 'refused'} by the correctness gate{fills}")
            if not passed and worst > 1:
                return Text(f"largest error {worst:.3g} × the tolerance{fills}")
            return Text(f"{units.share_of_tolerance(worst)}{fills}{'' if passed else ', refused for another reason'}")
        case _:
            assert_never(fact)


def _count_kernels(kernels: int, memsets: int) -> str:
    """Kernels, and the memsets beside them by their own name."""
    counts = {"kernel": kernels, "memset": memsets}
    return " and ".join(units.counted(n, noun) for noun, n in counts.items() if n) or units.counted(0, "kernel")


def _roof_kind(roof: Roof) -> str:
    """What a roof limits: bytes or arithmetic."""
    return "arithmetic" if roof.rate_flop_per_s else "bandwidth"


def format_check(check: Check) -> Text:
    """The sign of the tick with the one number that decides it, or why it is unknown.

    >>> str(format_check(Check("fusion", "passed", KernelCount(1))))
    '✓ 1 kernel'
    >>> str(format_check(Check("accuracy", "not_passed", GateResult(False, 12.5, 3))))
    '✕ 12.5 × tolerance'
    """
    sign, fact = _SIGNS[check.tick], check.fact
    match fact:
        case BlockSize(threads=threads):
            number = units.counted(threads, "thread")
        case KernelCount(kernels=kernels, memsets=memsets):
            number = _count_kernels(kernels, memsets)
        case RoofShare(fraction=fraction, roof=roof):
            number = f"{units.percent(fraction)} of {_roof_kind(roof)}"
        case LaunchShare() | ResidentShare():
            number = units.percent(fact.fraction)
        case GateResult(worst_of_bound=worst):
            number = "refused" if worst is None else f"{worst:.3g} × tolerance"
        case Unknown(why=why):
            number = WHY_UNKNOWN[why]
        case _:
            assert_never(fact)
    return Text(f"{sign} {number}")


def describe_check(check: Check) -> Text:
    """The point, its tick and the fact, on one line.

    >>> str(describe_check(Check("fusion", "not_passed", KernelCount(2))))
    'Fusion: ✕ not passed, 2 kernels in a call'
    """
    return Text(f"{NAMES[check.name]}: {TICKS[check.tick]}, ") + describe_fact(check.fact)


def describe_count(checks: Sequence[Check]) -> Text:
    """How many points are passed, not passed and unknown.

    >>> str(describe_count([Check("fusion", "passed", KernelCount(1)), Check("accuracy", "unknown", Unknown("not_checked"))]))
    '1 of 2 passed, 1 unknown'
    """
    unknown = sum(check.tick == "unknown" for check in checks)
    passed = sum(check.tick == "passed" for check in checks)
    return Text(f"{passed} of {len(checks)} passed" + (f", {unknown} unknown" if unknown else ""))
