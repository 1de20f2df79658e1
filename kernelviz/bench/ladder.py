"""Use case: the ladder of an op. Which runs show it, its steps at a problem of a run, what changed from step to step, and
measuring it or one step of it here. For page, CLI and Python."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import msgspec

from kernelviz.bench.bench import Bench
from kernelviz.bench.comparison import opened
from kernelviz.bench.ladder_published import claimed_problem, declared
from kernelviz.bench.snapshots import at_sizes
from kernelviz.bench.summaries import RunSummary
from kernelviz.core import LIVING, BadField, Problem, Run, UnknownName, check_name
from kernelviz.formats.claim_files import shipped_claims
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.ladder import BackendLadder, Ladder, Step, ladder_at
from kernelviz.metrics.ladder_changes import LadderChanges
from kernelviz.metrics.library_comparison import OWN
from kernelviz.ops import Op
from kernelviz.text.ladder import describe_gain
from kernelviz.text.ladder_changes import describe_code_changes, describe_source_changes, describe_why

FEWEST = 2
"""A run shows a ladder if its plan has so many variants of one backend."""
FIRST_OP = "matmul"
"""The op that the page begins with where nothing was measured."""
CHANGES = 0.05
"""A step changes the time if the logarithm of the ratio is larger."""
_MOST_RUNS = 100
"""Runs of this machine that are looked at."""


def ladder_ops(bench: Bench) -> tuple[str, ...]:
    """The ops that have a ladder: at least FEWEST variants of one backend that are written here."""
    return tuple(op.name for op in bench.ops().values() if _longest(op, [v.name for v in op.variants]) >= FEWEST)


def _longest(op: Op, names: Sequence[str]) -> int:
    """How many of the variants the longest ladder has."""
    backends = [v.backend for v in op.variants if v.name in names and v.backend in OWN]
    return max((backends.count(backend) for backend in set(backends)), default=0)


def _changing_steps(op: Op, times: Mapping[str, float]) -> int:
    """How many steps of all ladders change the time by more than CHANGES. `times`: in seconds, by variant."""
    count = 0
    for backend in OWN:
        own = [times[v.name] for v in op.variants if v.backend == backend and v.name in times]
        count += sum(abs(math.log(before / after)) > CHANGES for before, after in pairwise(own))
    return count


def op_with_ladder(bench: Bench, name: str) -> Op:
    """The op. Errors: UnknownName with the nearest one; BadField for an op without a ladder."""
    check_name("op", name, bench.ops())
    known = ladder_ops(bench)
    if name not in known:
        why = f"it has no ladder, because no backend has {FEWEST} variants that are written here"
        raise BadField("op", name, f"{why}; choose {', '.join(known)}")
    return bench.ops()[name]


def shows_ladder(bench: Bench, summary: RunSummary) -> bool:
    """Whether the plan of a run has at least FEWEST steps of a ladder, and the run is no tuning."""
    return summary.status in LIVING or _steps_of(bench, summary) >= FEWEST


def offered(bench: Bench, op: str) -> tuple[RunSummary, ...]:
    """The runs that show a ladder of the op: those of this machine, the newest first, then those that came with the package."""
    own = [run for run in bench.history.find(op, limit=_MOST_RUNS) if run.op == op]
    shipped = [run for run in bench.history.shipped() if run.op == op]
    return tuple(run for run in (*own, *shipped) if shows_ladder(bench, run))


def with_code(bench: Bench, op: str) -> tuple[RunSummary, ...]:
    """The runs that show what changed in the code from rung to rung: those of the op, else those of other ops that came with the
    package."""
    coded = bench.history.code.runs_with_whole_code()
    of_op = tuple(run for run in offered(bench, op) if run.id in coded)
    return of_op or tuple(run for run in bench.history.shipped() if run.id in coded and shows_ladder(bench, run))


def default_run(bench: Bench, op: str, sizes: Mapping[str, str] | None = None) -> RunSummary | None:
    """The run with the most steps of one ladder. Of several, the newest one of this machine, else one that came with the package:
    of the device that most of these are of, and with its code, from which the page says what changed from step to step.

    `sizes`: sizes as text by axis, as `at_sizes` reads them; a run that has them goes first."""
    recorded = Counter(run.device for run in bench.history.shipped())
    coded = bench.history.code.runs_with_whole_code()

    def rank(run: RunSummary) -> tuple[int, bool, int, bool, str]:
        of_package = (recorded[run.device], run.id in coded) if run.shipped else (0, False)
        return _steps_of(bench, run), not run.shipped, *of_package, run.created_at

    ranked = sorted((run for run in offered(bench, op) if run.done), key=rank, reverse=True)
    fitting = (run for run in ranked if sizes and _has_sizes(bench.history.times(run.id), sizes))
    return next(fitting, ranked[0] if ranked else None)


def _has_sizes(run: Run, sizes: Mapping[str, str]) -> bool:
    try:
        return bool(at_sizes(run, sizes))
    except (BadField, UnknownName):
        return False


def default_op(bench: Bench) -> str:
    """The op of the newest run of this machine that shows a ladder, else FIRST_OP."""
    known = ladder_ops(bench)
    newest = (run.op for run in bench.history.find(limit=_MOST_RUNS) if run.op in known and shows_ladder(bench, run))
    return next(newest, FIRST_OP if FIRST_OP in known else known[0])


# Reading a run of a hundred cases takes 50 ms, and a page asks again at each redraw.
@lru_cache(maxsize=512)
def _steps_of(bench: Bench, summary: RunSummary) -> int:
    """The most steps of one ladder that have a correct time at one problem of the run; of a run in progress, that are planned."""
    op = bench.ops().get(summary.op)
    if op is None:
        return 0
    run = bench.history.times(summary.id)
    if run.plan.search is not None:
        return 0
    if summary.status in LIVING:
        return _longest(op, run.plan.variants)
    timed: dict[str, list[str]] = {}
    for result in run.results:
        if result.timing is not None:
            timed.setdefault(result.problem.key, []).append(result.variant)
    return max((_longest(op, names) for names in timed.values()), default=0)


def problems_of(run: Run) -> tuple[Problem, ...]:
    """The problems of a run that have a result, in the order of its plan; of a run without one, all of them."""
    measured = {r.problem.key for r in run.results}
    return tuple(p for p in run.plan.problems if p.key in measured) or run.plan.problems


def problem_named(run: Run, key: str) -> Problem:
    """A problem of the run by its key. Errors: UnknownName with the nearest one."""
    check_name("problem", key, [p.key for p in run.plan.problems], of=f"run {run.id!r}")
    return next(p for p in run.plan.problems if p.key == key)


def default_problem(bench: Bench, run: Run, keys: Sequence[str] | None = None) -> Problem:
    """The problem with the most correct steps; of several the one that a quarter of the published numbers are about, then the
    one where the most steps change the time, then the largest.

    `keys`: only of these. Errors: UnknownName for an op without a ladder."""
    op = op_with_ladder(bench, run.plan.op)
    claims = [c for c in shipped_claims().claims if c.op == op.name and c.published.value > 0]

    def rank(problem: Problem) -> tuple[int, int, int, int]:
        results = [r for r in run.results if r.problem.key == problem.key]
        times = {r.variant: figure.estimate for r in results if (figure := figure_of(r.timing, "cold")) is not None}
        about = sum(claimed_problem(op, c) == problem for c in claims)
        size = max((r.cost.work_flop + r.cost.moved_bytes for r in results if r.cost is not None), default=0)
        steps = _longest(op, list(times))
        return steps, about if 4 * about >= len(claims) else 0, _changing_steps(op, times), size

    return max((p for p in problems_of(run) if keys is None or p.key in keys), key=rank)


def ladder_of(
    bench: Bench,
    run: Run,
    problem: Problem | None = None,
    headline: Headline = "cold",
) -> Ladder:
    """The ladders of a run at a problem, by default at `default_problem`. Errors: UnknownName for an op without a ladder."""
    op = op_with_ladder(bench, run.plan.op)
    chosen = problem or default_problem(bench, run)
    return ladder_at(run, chosen, declared(op, chosen, run.environment.device), bench.roofs_of(run), headline)


def ladder_of_stored(bench: Bench, run_id: str, problem: str | None = None, headline: Headline = "cold") -> Ladder:
    """The ladders of a stored run; computed once while it does not change. Errors: UnknownRun, UnknownName."""
    summary = bench.history.openable(run_id)
    make = _ladder.__wrapped__ if summary.status in LIVING else _ladder
    return make(bench, summary, problem, headline)


@lru_cache(maxsize=64)
def _ladder(bench: Bench, summary: RunSummary, problem: str | None, headline: Headline) -> Ladder:
    run = bench.load(summary.id)
    return ladder_of(bench, run, None if problem is None else problem_named(run, problem), headline)


def opened_run(bench: Bench, source: str) -> Run:
    """The run of an id or of a file in any format that can be read. Errors: as `comparison.opened`."""
    return opened(bench, source)


def records(ladder: Ladder, changes: LadderChanges) -> list[dict[str, Any]]:
    """A record for each step of all ladders, in the SI base units that the names state. Unknown is None. For JSON and data
    frames."""
    return [_record(ladder, of, step, changes) for of in ladder.ladders for step in of.steps]


def _record(ladder: Ladder, of: BackendLadder, step: Step, changes: LadderChanges) -> dict[str, Any]:
    row, gain = step.row, step.speed_up
    figure = None if row is None else row.figure
    source = changes.sources.get(step.variant)
    return {
        "run": ladder.run.id,
        "device": ladder.run.environment.device.name,
        "op": ladder.problem.op,
        **ladder.problem.sizes,
        "dtype": ladder.problem.dtype,
        "compute": ladder.problem.compute,
        "direction": ladder.problem.direction,
        "backend": of.backend,
        "number": step.number,
        "variant": step.variant,
        "idea": step.declared.idea,
        "status": step.kind,
        "time_s": figure.estimate if figure else None,
        "time_low_s": figure.low if figure else None,
        "time_high_s": figure.high if figure else None,
        "bandwidth_bytes_per_s": row.bandwidth_bytes_per_s if row else None,
        "rate_flop_per_s": row.rate_flop_per_s if row else None,
        "share_of_roof": row.efficiency if row else None,
        "gain": gain.estimate if gain else None,
        "gain_low": gain.low if gain else None,
        "gain_high": gain.high if gain else None,
        "verdict": step.gain.kind if step.gain else None,
        "over": step.over.name if step.over else None,
        "why": str(describe_gain(step, str)),
        "published": [
            {"factor": p.factor, "over": p.over, "device": p.device, "source": p.source,
             "problem": None if p.problem is None else p.problem.key, "remark": p.remark}
            for p in step.declared.published
        ],
        "published_values": [
            {"value": p.value, "unit": p.unit, "device": p.device, "source": p.source, "remark": p.remark}
            for p in step.declared.published_values
        ],
        "new_techniques": sorted(step.new_techniques),
        "lines_added": source.added if source else None,
        "lines_removed": source.removed if source else None,
        "source": str(describe_source_changes(source)) or None,
        "machine_code": str(describe_code_changes(changes.code.get(step.variant))) or None,
        "mechanism": str(describe_why(changes.code.get(step.variant))) or None,
        "code_changed_since": step.code_changed,
    }  # fmt: skip


def as_json(ladder: Ladder, changes: LadderChanges, backend: str | None = None) -> bytes:
    """The records of all ladders, or of one, as JSON with a line for each step."""
    lines = [msgspec.json.encode(r).decode() for r in records(ladder, changes) if backend in (None, r["backend"])]
    return ("[\n" + ",\n".join(lines) + "\n]\n").encode()
