"""Use case: the ladder of an op. Which runs show it, its steps at a problem of a run, what changed from step to step, and measuring
it or one step of it here. For page, CLI and Python."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from kernelviz.bench.bench import Bench
from kernelviz.bench.claims import problem_of
from kernelviz.bench.comparison import opened
from kernelviz.bench.ladder_changes import LadderChanges
from kernelviz.bench.summaries import RunSummary
from kernelviz.core import (
    LIVING,
    BadField,
    Device,
    KernelvizError,
    Method,
    Plan,
    Problem,
    Run,
    RunRequest,
    check_name,
)
from kernelviz.core.claim import Claim, RatioTest, TimeTest
from kernelviz.core.sizes import expand
from kernelviz.formats.claim_files import shipped_claims
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.ladder import (
    BackendLadder,
    DeclaredVariant,
    Ladder,
    PublishedStep,
    PublishedValue,
    Step,
    ladder_at,
    steps_by_backend,
)
from kernelviz.metrics.library_comparison import OWN
from kernelviz.ops import Op, Variant, catalogue
from kernelviz.text import describe_reason, format_problem
from kernelviz.text.ladder import describe_gain, describe_source_changes

BUDGET_S = 0.3
"""Largest device time for each case of a measurement that the page starts, in seconds."""
FEWEST = 2
"""A run shows a ladder if its plan has so many variants of one backend."""
FIRST_OP = "matmul"
"""The op that the page begins with where nothing was measured."""
_MOST_RUNS = 100
"""Runs of this machine that are looked at."""


def declared(op: Op, problem: Problem) -> tuple[DeclaredVariant, ...]:
    """What the catalogue says of the variants of an op, in their order, about a problem."""
    return tuple(_declared(op, variant, problem) for variant in op.of(problem).variants)


def _declared(op: Op, variant: Variant, problem: Problem) -> DeclaredVariant:
    published, values = published_of(op, variant, problem)
    return DeclaredVariant(
        name=variant.name,
        backend=variant.backend,
        idea=variant.summary,
        techniques=frozenset(variant.techniques),
        published=published,
        published_values=values,
        only_when_named=variant.only_when_named,
        digest=_digest(op.name, variant.name, problem.direction == "backward"),
        refusal=variant.refuses(problem),
    )


@lru_cache(maxsize=2048)
def _digest(op: str, variant: str, backward: bool) -> str | None:
    """The digest of a variant of the package; None for one of a plug-in, whose code only the worker reads."""
    own = catalogue().get(op)
    known = next((v for v in own.variants if v.name == variant), None) if own is not None else None
    return None if known is None else (known.of_backward() if backward else known).source_digest()


def published_of(
    op: Op, variant: Variant, problem: Problem
) -> tuple[tuple[PublishedStep, ...], tuple[PublishedValue, ...]]:
    """The gains and the rates or times that sources report for the idea of a variant: those of the catalogue, and those of the
    published claims. Of several numbers of one source over one variant, the one at this problem, else at its number format."""
    claims = [c for c in shipped_claims().claims if c.op == op.name and c.cases[0].variant == variant.name]
    gains = [(_problem(op, c), _step(op, c)) for c in claims if isinstance(c.test, RatioTest) and len(c.test.over) == 1]
    declared_gain = variant.published
    if declared_gain is not None and not any(
        (step.over, step.source) == (declared_gain.over, declared_gain.source) for _, step in gains
    ):
        gains.append(
            (None, PublishedStep(declared_gain.factor, declared_gain.over, declared_gain.source, declared_gain.gpu))
        )
    best: dict[tuple[str, str], tuple[int, PublishedStep]] = {}
    for at, step in gains:
        rank = _rank(at, problem)
        also_declared = declared_gain is not None and (step.over, step.source) == (
            declared_gain.over,
            declared_gain.source,
        )
        if rank < 2 or also_declared:
            key = (step.over, step.source)
            if key not in best or rank < best[key][0]:
                best[key] = rank, step
    values = [_value(c) for c in claims if isinstance(c.test, TimeTest) and _problem(op, c) == problem]
    return tuple(step for _, step in best.values()), tuple(value for value in values if value is not None)


def _rank(at: Problem | None, problem: Problem) -> int:
    """0: this problem; 1: its number format and direction, or not stated; 2: another one."""
    if at is None:
        return 1
    if at.key == problem.key:
        return 0
    return 1 if (at.dtype, at.compute, at.direction) == (problem.dtype, problem.compute, problem.direction) else 2


def _problem(op: Op, claim: Claim) -> Problem | None:
    try:
        return problem_of(op, claim.cases[0])
    except KernelvizError:
        return None


def _step(op: Op, claim: Claim) -> PublishedStep:
    assert isinstance(claim.test, RatioTest)
    return PublishedStep(
        factor=claim.published.value,
        over=claim.test.over[0].variant,
        source=shipped_claims().source_of(claim).where,
        device=claim.published_on,
        problem=_problem(op, claim),
        remark=claim.remark or claim.substitute,
    )


def _value(claim: Claim) -> PublishedValue | None:
    unit = claim.published.unit
    if unit not in ("flop/s", "B/s", "s"):
        return None
    return PublishedValue(
        value=claim.published.value,
        unit=unit,
        source=shipped_claims().source_of(claim).where,
        device=claim.published_on,
        remark=claim.remark or claim.substitute,
    )


# Runs


def ladder_ops(bench: Bench) -> tuple[str, ...]:
    """The ops that have a ladder: at least FEWEST variants of one backend that are written here."""
    return tuple(op.name for op in bench.ops().values() if _longest(op, [v.name for v in op.variants]) >= FEWEST)


def _longest(op: Op, names: Sequence[str]) -> int:
    """How many of the variants the longest ladder has."""
    backends = [v.backend for v in op.variants if v.name in names and v.backend in OWN]
    return max((backends.count(backend) for backend in set(backends)), default=0)


def op_with_ladder(bench: Bench, name: str) -> Op:
    """The op. Errors: UnknownName with the nearest one."""
    check_name("op", name, ladder_ops(bench))
    return bench.ops()[name]


def shows_ladder(bench: Bench, summary: RunSummary) -> bool:
    """Whether the plan of a run has at least FEWEST steps of a ladder, and the run is no tuning."""
    return summary.status in LIVING or _steps_of(bench, summary) >= FEWEST


def offered(bench: Bench, op: str) -> tuple[RunSummary, ...]:
    """The runs that show a ladder of the op: those of this machine, the newest first, then those that came with the package."""
    own = [run for run in bench.history.find(op, limit=_MOST_RUNS) if run.op == op]
    shipped = [run for run in bench.history.shipped() if run.op == op]
    return tuple(run for run in (*own, *shipped) if shows_ladder(bench, run))


def default_run(bench: Bench, op: str) -> RunSummary | None:
    """The run with the most steps of one ladder; of several the newest one of this machine, else one that came with the package."""
    runs = [run for run in offered(bench, op) if run.done]
    return max(runs, key=lambda run: (_steps_of(bench, run), not run.shipped, run.created_at), default=None)


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
    run = bench.load(summary.id)
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


def default_problem(bench: Bench, run: Run) -> Problem:
    """The problem with the most correct steps; of several the one that most published numbers are about, then the largest."""
    op = op_with_ladder(bench, run.plan.op)

    def rank(problem: Problem) -> tuple[int, int, int]:
        results = [r for r in run.results if r.problem.key == problem.key]
        names = [r.variant for r in results if r.timing is not None]
        published = sum(
            (c.published.value > 0 and _problem(op, c) == problem) for c in shipped_claims().claims if c.op == op.name
        )
        size = max((r.cost.work_flop + r.cost.moved_bytes for r in results if r.cost is not None), default=0)
        return _longest(op, names), published, size

    return max(problems_of(run), key=rank)


# Ladders


def ladder_of(
    bench: Bench,
    run: Run,
    problem: Problem | None = None,
    headline: Headline = "cold",
    *,
    ops: Mapping[str, Op] | None = None,
) -> Ladder:
    """The ladders of a run at a problem, by default at `default_problem`. Errors: UnknownName for an op without a ladder."""
    op = op_with_ladder(bench, run.plan.op) if ops is None else ops[run.plan.op]
    chosen = problem or default_problem(bench, run)
    return ladder_at(run, chosen, declared(op, chosen), bench.roofs_of(run), headline)


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


# Measuring


def runnable(bench: Bench, op: Op, problems: Sequence[Problem], device_id: str) -> tuple[str, ...]:
    """The steps and libraries that can run on a device and solve one of the problems, in the order of the catalogue."""
    kinds = {v.name: v for v in (ladder_variants(op, problems[0]) if problems else ())}
    return tuple(
        offer.variant.name
        for offer in bench.offers(op.name, device_id)
        if offer.available
        and offer.variant.name in kinds
        and any(offer.variant.refuses(problem) is None for problem in problems)
    )


def ladder_variants(op: Op, problem: Problem) -> tuple[DeclaredVariant, ...]:
    """The steps of all ladders of an op, and its libraries, without those that are measured only when somebody names them."""
    every = declared(op, problem)
    steps = steps_by_backend([v for v in every if v.backend in OWN])
    own = {v.name for of in steps.values() for v in of}
    return tuple(v for v in every if v.name in own or (v.backend not in OWN and not v.only_when_named))


def plan_of(
    bench: Bench,
    op: str,
    device_id: str | None = None,
    *,
    sizes: Mapping[str, str] | None = None,
    dtype: str | None = None,
    compute: str | None = None,
    direction: str = "forward",
    data: str = "normal",
    backend: str | None = None,
    variant: str | None = None,
) -> Plan:
    """The plan that measures the ladder of an op on a device: its steps of all backends or of one, and the libraries. `variant`:
    only this step, the one before it that can run there, and the baseline.

    Errors: UnknownName for the names; BadField for sizes, and if no step can run there, with the reason.
    """
    known = op_with_ladder(bench, op)
    device = bench.device(device_id or bench.default_device())
    request = RunRequest(
        op=op,
        sizes=dict(sizes) if sizes is not None else default_sizes(known, device),
        dtype=dtype,
        compute=compute,
        direction=direction,
        data=data,
        device=device.id,
    )
    problems = bench.plan(msgspec.structs.replace(request, variants=(known.baseline,))).problems
    names = runnable(bench, known, problems, device.id)
    own = {v.name: v.backend for v in known.variants if v.backend in OWN}
    if backend is not None:
        check_name("backend", backend, dict.fromkeys(own.values()))
    if variant is not None:
        check_name("variant", variant, own, of=f"op {op!r}")
        backend = own[variant]
    steps = [name for name in names if name in own and backend in (None, own[name])]
    if variant is not None and variant not in steps:
        raise BadField("variant", variant, _why_not(bench, known, variant, problems, device))
    if not steps:
        first = next(name for name in own if backend in (None, own[name]))
        raise BadField("op", op, f"no rung of it can run there: {_why_not(bench, known, first, problems, device)}")
    if variant is not None:
        place = steps.index(variant)
        chosen = {*steps[max(0, place - 1) : place + 1], known.baseline}
    else:
        chosen = {*steps, *(name for name in names if name not in own)}
    order = tuple(v.name for v in known.variants if v.name in chosen)
    return bench.plan(msgspec.structs.replace(request, variants=order))


def _why_not(bench: Bench, op: Op, variant: str, problems: Sequence[Problem], device: Device) -> str:
    """Why a step cannot be measured on a device."""
    offer = next(o for o in bench.offers(op.name, device.id) if o.variant.name == variant)
    refusal = offer.lack or next(filter(None, (offer.variant.refuses(p) for p in problems)), None)
    reason = f"{describe_reason(refusal)}" if refusal is not None else "it is no rung of the ladder at this size"
    return f"{variant} on {device.name}: {reason}"


def default_sizes(op: Op, device: Device) -> dict[str, str]:
    """The largest of the sizes that the op is measured at by default on a device."""
    texts = {axis.name: axis.default if device.kind == "cuda" else axis.cpu_default for axis in op.axes}
    return {axis: str(size) for axis, size in expand(op.axis_names, texts)[-1].items()}


def start(
    bench: Bench,
    plan: Plan,
    *,
    budget_s: float = BUDGET_S,
    owner: str = "",
) -> str:
    """Measure a plan of `plan_of`, cold device times only, and return the id of the run at once. Errors: BadField, StoreError."""
    device, problem = bench.device(plan.device), plan.problems[0]
    title = f"ladder of {format_problem(problem)}, {device.name}" if len(plan.problems) == 1 else ""
    return bench.run(plan, Method(budget_s=budget_s), owner=owner, title=title)


def start_problem(
    bench: Bench,
    problem: Problem,
    device_id: str | None = None,
    *,
    backend: str | None = None,
    variant: str | None = None,
    budget_s: float = BUDGET_S,
    owner: str = "",
) -> str:
    """Measure the ladder at one problem, or one step of it, and return the id of the run. Errors: as `plan_of`."""
    return start(
        bench,
        plan_of_problem(bench, problem, device_id, backend=backend, variant=variant),
        budget_s=budget_s,
        owner=owner,
    )


def plan_of_problem(
    bench: Bench,
    problem: Problem,
    device_id: str | None = None,
    *,
    backend: str | None = None,
    variant: str | None = None,
) -> Plan:
    """`plan_of` at one problem. Errors: as `plan_of`."""
    return plan_of(
        bench,
        problem.op,
        device_id,
        sizes={axis: str(size) for axis, size in problem.sizes.items()},
        dtype=problem.dtype,
        compute=problem.compute,
        direction=problem.direction or "forward",
        data=problem.data or "normal",
        backend=backend,
        variant=variant,
    )


# Records


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
        "machine_code": str(changes.sentences.get(step.variant, "")) or None,
        "code_changed_since": step.code_changed,
    }  # fmt: skip
