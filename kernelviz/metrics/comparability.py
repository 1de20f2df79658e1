"""Whether two times of two runs answer the same question, and whether the same machine code ran for both."""

from kernelviz.core import Failure, Figure, Result, Run, TracingCostUnknown
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.statistics import LEAST_DIFFERENCE
from kernelviz.metrics.verdict_reasons import (
    Failed,
    Incomparable,
    MethodUnknown,
    NoTime,
    OneMeasurement,
    OtherClocks,
    OtherData,
    OtherDevices,
    OtherLaunches,
    OtherTimers,
    Side,
    TracingSubtracted,
    TracingUnknown,
)

_SIDES: tuple[Side, Side] = ("A", "B")
NO_CODE = ("numpy", "cupti-python", "nvidia-cuda-cupti")
"""Packages that take part in measuring but make no kernel."""


def one_run(a: Run, b: Run) -> bool:
    """Whether both are the same run, so that their blocks share rounds."""
    return (a.id, a.created_at, a.environment.device.uuid) == (b.id, b.created_at, b.environment.device.uuid)


def reason_against(
    a: Run,
    before: Result,
    b: Run,
    after: Result,
    headline: Headline,
    *,
    one_run: bool = False,
    same_code: bool = False,
) -> Incomparable | None:
    """Why no verdict may be called on this pair, None where one may. Inside one run only what has no time is left out.

    What the tracer adds, where it is unknown, does not matter where the same code ran: it is the same on both sides.
    """
    for side, result in zip(_SIDES, (before, after), strict=True):
        if isinstance(result.outcome, Failure):
            return Failed(side, result.outcome.stage)
        if result.accuracy is not None and not result.accuracy.passed:
            return Failed(side, "wrong")
    time, other = figure_of(after.timing, headline), figure_of(before.timing, headline)
    if time is None or other is None:
        return NoTime("A" if other is None else "B", headline)
    if one_run:
        return None
    tracing = _tracing_subtracted(other, time) if same_code else _tracing(before, after, headline)
    one = OneMeasurement() if time == other else None
    return _methods(a, before, other, b, after, time) or tracing or one


def _methods(a: Run, before: Result, first: Figure, b: Run, after: Result, second: Figure) -> Incomparable | None:
    kinds = (a.environment.device.kind, b.environment.device.kind)
    if kinds[0] != kinds[1]:
        return OtherDevices(*kinds)
    if a.method.clock != b.method.clock:
        return OtherClocks(a.method.clock, b.method.clock)
    if before.problem.data != after.problem.data:
        return OtherData(before.problem.data, after.problem.data)
    if first.timer is None or second.timer is None:
        return MethodUnknown("timer", _where(first.timer is None, second.timer is None))
    if first.timer != second.timer:
        return OtherTimers(first.timer, second.timer)
    if first.launch is None or second.launch is None:
        return MethodUnknown("launch", _where(first.launch is None, second.launch is None))
    return None if first.launch == second.launch else OtherLaunches(first.launch, second.launch)


def _where(*true: bool) -> tuple[Side, ...]:
    return tuple(side for side, yes in zip(_SIDES, true, strict=True) if yes)


def _tracing(before: Result, after: Result, headline: Headline) -> TracingUnknown | None:
    unknown = _where(*(_tracing_unknown(result, headline) for result in (before, after)))
    return TracingUnknown(unknown) if unknown else None


def _tracing_unknown(result: Result, headline: Headline) -> bool:
    notes = result.conditions.notes if result.conditions else ()
    return any(isinstance(n, TracingCostUnknown) and n.figure == headline for n in notes)


def _tracing_subtracted(first: Figure, second: Figure) -> TracingSubtracted | None:
    """The tracer's part of one and the same code taken off on one side alone, and large enough to be seen."""
    parts = (first.correction_s or 0.0, second.correction_s or 0.0)
    if all(parts) or max(parts) <= LEAST_DIFFERENCE * min(first.estimate, second.estimate):
        return None
    return TracingSubtracted("A" if parts[0] else "B")


def same_code(a: Run, before: Result, b: Run, after: Result) -> bool:
    """Whether the same machine code ran on the same kind of device, as far as results tell.

    The variant's source (its digest) and configuration, what compiles it (versions, driver, device) and every launch (kernel,
    grid, block, registers, shared memory) are the same. A GPU's launches must be known; a CPU has none.
    """
    if before.source_digest is None or before.source_digest != after.source_digest or before.variant != after.variant:
        return False
    if before.configuration != after.configuration:
        return False
    if _makers(a) != _makers(b) or before.problem.key != after.problem.key:
        return False
    launches = _launches(before)
    return launches == _launches(after) and (bool(launches) or a.environment.device.kind == "cpu")


def _makers(run: Run) -> tuple[object, ...]:
    here = run.environment
    versions = {name: version for name, version in here.versions.items() if name not in NO_CODE}
    threads = here.threads if here.device.kind == "cpu" else None
    device = (here.device.name, here.device.multiprocessors, here.device.driver)
    return versions, here.kernelviz, here.python, device, threads


def _launches(result: Result) -> tuple[object, ...]:
    return tuple((k.name, k.grid, k.block, k.registers_per_thread, k.shared_memory_bytes) for k in result.kernels)
