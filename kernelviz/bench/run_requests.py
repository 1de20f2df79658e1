"""What is requested of a worker for a run: which cases together, with which configurations, and what a tuning measures last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from kernelviz.bench.live import LiveRun
from kernelviz.bench.tunings import Chosen, final_method, finalists
from kernelviz.core import Device, DeviceKind, FigureName, Method, Problem, Result, Run, Tuned
from kernelviz.core.chunks import parts
from kernelviz.core.configuration import is_configuration
from kernelviz.core.problem import case_key
from kernelviz.metrics.absences import is_measured, never_measured
from kernelviz.ops import Op
from kernelviz.store import Store
from kernelviz.worker.request import Request

CONFIGURATIONS = 16
"""The largest number of configurations of a tuning that are bound at a time. They share rounds with the default."""
ROOM_SHARE = 0.2
"""The largest share of the device's memory for their outputs. The float64 reference and the inputs need the rest."""

# The secondary timings whose absence means that they were not measured (a call may have no graph).
_MEASURED_LATER: tuple[FigureName, ...] = ("warm", "call", "loop", "energy", "naive")


def lacks_figures(result: Result | None, method: Method, device: DeviceKind) -> bool:
    """Whether secondary timings have to be measured, if the case has a correct time by then."""
    later = [name for name in _MEASURED_LATER if name in method.figures]
    wanted = [name for name in later if never_measured(name, method.clock, device) is None]
    if result is None:
        return bool(wanted)
    return result.timing is not None and not all(is_measured(result.timing, name) for name in wanted)


def groups_of(names: Sequence[str], most: int) -> list[tuple[str, ...]]:
    """The groups of variants that are measured together: all variants, but at most so many configurations in each group.

    >>> names = ["a", *(f"t[b={n}]" for n in range(20)), "c"]
    >>> [len(group) for group in groups_of(names, 16)], groups_of(names, 16)[0][:3]
    ([18, 4], ('a', 'c', 't[b=0]'))
    """
    plain = [n for n in names if not is_configuration(n)]
    configured = [n for n in names if is_configuration(n)]
    first, *rest = [tuple(some) for some in parts(configured, most)] or [()]
    return [group for group in ((*plain, *first), *rest) if group]


def most_together(op: Op, problem: Problem, device: Device) -> int:
    """The number of configurations of the problem that may be bound at a time. Each has at least two copies of its outputs."""
    bytes_each = 2 * sum(t.size_bytes(problem.sizes, problem.dtype) for t in op.of(problem).outputs)
    room = ROOM_SHARE * (device.memory_bytes or 0)
    return max(1, min(CONFIGURATIONS, int(room // bytes_each))) if room and bytes_each else CONFIGURATIONS


def configurations_of(
    chosen: Chosen, results: Mapping[str, Result], problem: Problem, variants: Sequence[str]
) -> dict[str, Tuned]:
    """The tuned configurations of the variants for the problem.

    A case that has a time in this run keeps its configuration, even if the variant was tuned since, so that all its timings are
    those of one configuration.
    """
    tuned = chosen.of(problem, variants)
    for name in variants:
        known = results.get(case_key(problem, name))
        if known is None or known.timing is None or known.configuration is None:
            continue
        tuned.pop(name, None)
        if known.tuned_by is not None:
            tuned[name] = Tuned(
                configuration=known.configuration, run_id=known.tuned_by, source_digest=known.source_digest
            )
    return tuned


def final_request(run: Run, live: LiveRun, problem: Problem, owner: str, store: Store) -> Request:
    """The last request of a tuning, which measures its best configurations again, in rounds shared with the default."""
    return Request(
        run_id=run.id,
        owner=owner,
        sink=live,
        problem=problem,
        baseline=run.plan.baseline,
        method=final_method(run.method),
        plugins=run.plan.plugins,
        known_baseline=lambda: live.timed(problem, run.plan.baseline),
        timed_variants=lambda: finalists(store, run.id, problem),
    )


def with_following(requests: Sequence[Request]) -> list[Request]:
    """The requests of a run in their order, each of which knows the problem of the next one."""
    keys = [request.problem.key if request.problem is not None else None for request in requests]
    return [replace(request, following=key) for request, key in zip(requests, (*keys[1:], None), strict=False)]


def request_of(
    run: Run,
    live: LiveRun,
    problem: Problem,
    variants: tuple[str, ...],
    owner: str,
    tuned: Mapping[str, Tuned],
    *,
    later: bool = False,
) -> Request:
    """The request for device cold of these variants, or (`later`) for the secondary timings of those that are correct then."""
    return Request(
        run_id=run.id,
        owner=owner,
        sink=live,
        problem=problem,
        variants=variants,
        baseline=run.plan.baseline,
        method=msgspec.structs.replace(
            run.method, figures=tuple(f for f in run.method.figures if (f == "cold") is not later)
        ),
        plugins=run.plan.plugins,
        known_baseline=None if later else lambda: live.timed(problem, run.plan.baseline),
        later=later,
        timed_variants=(lambda: live.timed_variants(problem, variants)) if later else None,
        tuned=tuned,
    )
