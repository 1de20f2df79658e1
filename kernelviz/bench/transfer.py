"""Use case: the transfer matrix over the stored tunings of a variant, and measuring what is missing in it."""

from collections.abc import Sequence

from kernelviz.bench.bench import Bench
from kernelviz.core import BadField, Method, Problem, Run, RunRequest, Tuning, UnknownRun
from kernelviz.core.chunks import parts
from kernelviz.core.configuration import configuration_text
from kernelviz.core.problem import case_key
from kernelviz.metrics.transfer import Transfer, comparable, name_of, transfer

METHOD = Method(budget_s=0.2, figures=("cold",))
"""The method by which missing pairs are measured: cold device times only, in rounds that the configurations share."""
MOST_SHAPES = 12
"""Shapes in a matrix, the newest tunings: more do not fit on a page."""
_MOST_KEYS = 500


def of_tuning(bench: Bench, tuning: Tuning) -> Transfer:
    """The matrix of the tunings that can be compared with this one, of which it is always one."""
    known = (s.tuning for s in bench.tunings.find(tuning.problem.op, variant=tuning.variant))
    stored = [tuning, *(t for t in known if t.key != tuning.key)]
    newest = sorted(stored, key=lambda t: (t.key != tuning.key, _age(t, stored)))
    tunings, other_code = comparable(tuning, newest[:MOST_SHAPES])
    return transfer(tunings, lambda problem: _runs_at(bench, tunings, problem), other_code)


def _age(tuning: Tuning, stored: Sequence[Tuning]) -> int:
    """0 for the newest."""
    return sum(other.created_at > tuning.created_at for other in stored)


def _runs_at(bench: Bench, tunings: Sequence[Tuning], problem: Problem) -> list[Run]:
    """The runs that have measured one of these configurations at the problem: runs for this purpose first, because their
    configurations share all rounds, then tunings; the newest first."""
    keys = [case_key(problem, name_of(t)) for t in tunings]
    run_ids: dict[str, None] = {}
    for some in parts(keys, _MOST_KEYS):
        run_ids.update(dict.fromkeys(run_id for _, run_id, _ in bench.history.results_on(tunings[0].device_uuid, some)))
    runs: list[Run] = []
    for run_id in run_ids:
        try:
            runs.append(bench.load(run_id))
        except UnknownRun:  # deleted meanwhile
            continue
    return sorted(runs, key=lambda run: run.plan.search is not None)


def missing_at(matrix: Transfer, shape: int) -> tuple[Tuning, ...]:
    """The tunings whose configurations nobody has measured at that shape."""
    return tuple(matrix.tunings[a] for a, b in matrix.missing if b == shape)


def measure(bench: Bench, matrix: Transfer, shape: int, device_id: str, *, owner: str = "") -> str:
    """Measure the configurations that are missing at a shape beside its own, and return the id of the run at once.

    Errors: BadField if nothing is missing there, or if the device is not the one of the tunings; UnknownName and BadField as of
    a run."""
    at = matrix.tunings[shape]
    missing = missing_at(matrix, shape)
    if not missing:
        raise BadField("shape", at.problem.key, "every configuration was measured there already")
    if bench.device(device_id).uuid != at.device_uuid:
        raise BadField("device", device_id, f"the tunings are of {at.device}; times of another device are not compared")
    problem = at.problem
    try:
        plugins = bench.load(at.run_id).plan.plugins
    except UnknownRun:
        plugins = ()
    names = tuple(dict.fromkeys((name_of(at), *map(name_of, missing))))
    plan = bench.plan(
        RunRequest(
            op=problem.op,
            sizes={axis: str(size) for axis, size in problem.sizes.items()},
            variants=names,
            baseline=names[0],
            dtype=problem.dtype,
            compute=problem.compute,
            direction=problem.direction or "forward",
            device=device_id,
            plugins=plugins,
        )
    )
    return bench.run(
        plan,
        METHOD,
        owner=owner,
        title=f"transfer of {at.variant} to {problem.key}: {configuration_text(at.configuration)}",
    )
