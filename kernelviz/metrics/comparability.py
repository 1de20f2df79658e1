"""Whether two times of two runs answer the same question, and whether the same machine code ran for both."""

from __future__ import annotations

from collections.abc import Mapping

from kernelviz.core.result import Failure, Figure, Result
from kernelviz.core.run import Run
from kernelviz.metrics.roofline import Headline
from kernelviz.metrics.statistics import LEAST_DIFFERENCE
from kernelviz.metrics.summary import STAGE_WORDS, figure_of

TIMERS = {"cupti": "CUPTI stamps", "kineto": "torch.profiler stamps", "events": "events", "host": "host clock"}
LAUNCHES = {"graph": "in a graph", "stream": "into the stream", "call": "one by one"}
UNKNOWN_TRACING = "what tracing adds to it is not known"
"""The note of measure.cuda on a time of which the tracer's own part could not be told."""
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
) -> str | None:
    """Why no verdict may be called on this pair, None where one may. Inside one run only what has no time is left out.

    What the tracer adds, where it is unknown, does not matter where the same code ran: it is the same on both sides.
    """
    for side, result in (("A", before), ("B", after)):
        if isinstance(result.outcome, Failure):
            return f"{side}: {STAGE_WORDS[result.outcome.stage]}"
        if result.accuracy is not None and not result.accuracy.passed:
            return f"{side}: wrong result"
    time, other = figure_of(after.timing, headline), figure_of(before.timing, headline)
    if time is None or other is None:
        return f"{'A' if other is None else 'B'}: no {headline} time"
    if one_run:
        return None
    tracing = _taken_off(other, time) if same_code else _tracing(before, after, headline)
    one = "A and B are one measurement" if time == other else None
    return _methods(a, before, other, b, after, time) or tracing or one


def _methods(a: Run, before: Result, first: Figure, b: Run, after: Result, second: Figure) -> str | None:
    kinds = (a.environment.device.kind, b.environment.device.kind)
    if kinds[0] != kinds[1]:
        return f"a {_device(kinds[0])} in A, a {_device(kinds[1])} in B"
    if a.method.clock != b.method.clock:
        return f"{a.method.clock or 'clock mode unknown'} in A, {b.method.clock or 'clock mode unknown'} in B"
    if before.problem.data != after.problem.data:
        return f"{before.problem.data or 'unknown'} data in A, {after.problem.data or 'unknown'} in B"
    return _one_way(first.timer, second.timer, TIMERS, "timer") or _one_way(
        first.launch, second.launch, LAUNCHES, "launch"
    )


def _device(kind: str) -> str:
    return "GPU" if kind == "cuda" else "CPU"


def _one_way(first: str | None, second: str | None, names: Mapping[str, str], what: str) -> str | None:
    """What differs or is unknown of how the two were taken; two launches that nobody knows are not told apart by it."""
    if first is None or second is None:
        unknown = " and ".join(side for side, known in (("A", first), ("B", second)) if known is None)
        return f"{what} unknown in {unknown}"
    return None if first == second else f"{names[first]} in A, {names[second]} in B"


def _tracing(before: Result, after: Result, headline: Headline) -> str | None:
    note = UNKNOWN_TRACING if headline == "cold" else f"warm: {UNKNOWN_TRACING}"
    unknown = [
        side for side, r in (("A", before), ("B", after)) if r.conditions is not None and note in r.conditions.notes
    ]
    return f"what tracing adds is unknown in {' and '.join(unknown)}" if unknown else None


def _taken_off(first: Figure, second: Figure) -> str | None:
    """The tracer's part of one and the same code taken off on one side alone, and large enough to be seen."""
    parts = (first.correction_s or 0.0, second.correction_s or 0.0)
    if all(parts) or max(parts) <= LEAST_DIFFERENCE * min(first.estimate, second.estimate):
        return None
    return f"what tracing adds was taken off in {'A' if parts[0] else 'B'} only"


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
