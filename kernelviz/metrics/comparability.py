"""Whether two times of two runs can be compared, and whether the same machine code ran in both."""

import itertools

from kernelviz.core import Failure, Figure, Result, Run, TracingCostUnknown
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.statistics import LEAST_DIFFERENCE
from kernelviz.metrics.verdict_reasons import (
    Failed,
    Incomparable,
    MethodPart,
    MethodUnknown,
    NoTime,
    OneMeasurement,
    OtherMethod,
    Side,
    TracingSubtracted,
    TracingUnknown,
)

_SIDES: tuple[Side, Side] = ("A", "B")
NO_CODE = ("numpy", "cupti-python", "nvidia-cuda-cupti")
"""Packages that take part in measuring but generate no kernel."""


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
    """Why this pair can have no verdict; None if it can. Inside one run the only reason is that there is no correct time.

    An unknown cost of tracing does not matter if the same code ran, because it is the same on both sides.
    """
    for side, result in zip(_SIDES, (before, after), strict=True):
        if isinstance(result.outcome, Failure):
            return Failed(side, result.outcome.stage)
        if result.accuracy is not None and not result.accuracy.passed:
            return Failed(side, "wrong")
    time, other = figure_of(after.timing, headline), figure_of(before.timing, headline)
    if time is None or other is None:
        return NoTime(_sides(other is None, time is None), headline)
    if one_run:
        return None
    tracing = _subtracted(other, time) if same_code else _tracing(before, after, headline)
    return _methods(a, before, other, b, after, time) or tracing or (OneMeasurement() if time == other else None)


def _methods(a: Run, before: Result, first: Figure, b: Run, after: Result, second: Figure) -> Incomparable | None:
    parts: tuple[tuple[MethodPart, str | None, str | None], ...] = (
        ("device", a.environment.device.kind, b.environment.device.kind),
        ("clock", a.method.clock, b.method.clock),
        ("load", f"{a.method.steady_s:g}", f"{b.method.steady_s:g}"),
        ("data", before.problem.data, after.problem.data),
        ("timer", first.timer, second.timer),
        ("launch", first.launch, second.launch),
    )
    for what, of_a, of_b in parts:
        if what in ("timer", "launch") and (of_a is None or of_b is None):
            return MethodUnknown(what, _sides(of_a is None, of_b is None))
        if of_a != of_b:
            return OtherMethod(what, of_a, of_b)
    return None


def _sides(*conditions: bool) -> tuple[Side, ...]:
    return tuple(itertools.compress(_SIDES, conditions))


def _tracing(before: Result, after: Result, headline: Headline) -> TracingUnknown | None:
    unknown = _sides(*(_tracing_unknown(result, headline) for result in (before, after)))
    return TracingUnknown(unknown) if unknown else None


def _tracing_unknown(result: Result, headline: Headline) -> bool:
    notes = result.conditions.notes if result.conditions else ()
    return any(isinstance(n, TracingCostUnknown) and n.figure == headline for n in notes)


def _subtracted(first: Figure, second: Figure) -> TracingSubtracted | None:
    """What tracing adds to the same code was subtracted on one side only, and is large enough to matter."""
    parts = (first.correction_s or 0.0, second.correction_s or 0.0)
    if all(parts) or max(map(abs, parts)) <= LEAST_DIFFERENCE * min(first.estimate, second.estimate):
        return None
    return TracingSubtracted("A" if parts[0] else "B")


def same_code(a: Run, before: Result, b: Run, after: Result) -> bool:
    """Whether the same machine code ran on the same kind of device, as far as results tell.

    The variant's source (its digest) and configuration, what compiles it (versions, driver, device) and every launch (kernel,
    grid, block, registers, shared memory) are the same. The launches of a GPU must be known; a CPU has none.
    """
    known = before.source_digest is not None and (bool(before.kernels) or a.environment.device.kind == "cpu")
    return known and _code(a, before) == _code(b, after)


def _code(run: Run, result: Result) -> tuple[object, ...]:
    here, device = run.environment, run.environment.device
    versions = {name: version for name, version in here.versions.items() if name not in NO_CODE}
    threads = here.threads if device.kind == "cpu" else None
    return (
        (result.problem.key, result.variant, result.source_digest, result.configuration),
        (versions, here.kernelviz, here.python, threads, device.name, device.multiprocessors, device.driver),
        [(k.name, k.grid, k.block, k.registers_per_thread, k.shared_memory_bytes) for k in result.kernels],
    )
