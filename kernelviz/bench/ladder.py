"""Use case: the ladder of an op. Which runs show it, its steps at a problem of a run, what changed from step to step, and measuring
it or one step of it here. For page, CLI and Python."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from kernelviz.bench.bench import Bench
from kernelviz.bench.claims import problem_of
from kernelviz.bench.code import Contents
from kernelviz.bench.comparison import opened
from kernelviz.bench.summaries import RunSummary
from kernelviz.core import (
    LIVING,
    BadField,
    Device,
    KernelvizError,
    Method,
    Plan,
    Problem,
    Result,
    Run,
    RunRequest,
    check_name,
)
from kernelviz.core.claim import Claim, RatioTest, TimeTest
from kernelviz.core.code import CodeError
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
)
from kernelviz.metrics.library_comparison import OWN
from kernelviz.metrics.source_changes import CaseSource, SourceChanges, SourceFile, source_changes
from kernelviz.ops import Op, Variant, catalogue

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
    bench: Bench, run: Run, problem: Problem | None = None, headline: Headline = "cold", *, ops: Mapping[str, Op] | None = None
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


# What changed


def source_of(result: Result, contents: Contents) -> CaseSource:
    """The sources of a case, with their texts as far as they are on this machine."""
    codes = result.code or ()
    artifacts = [(code, a) for code in codes for a in code.artifacts if a.kind == "source"]
    if not artifacts:
        return CaseSource(unknown="not_captured" if result.backend in OWN else "library")
    macros: dict[str, str] = {}
    warps: dict[str, int] = {}
    for code in codes:
        macros |= code.defines
        if code.warps is not None:
            warps["warps"] = code.warps
    named = {(a.name or code.kernel, a.digest): None for code, a in artifacts}
    return CaseSource(
        kernels=tuple(dict.fromkeys(code.kernel for code in codes)),
        files=tuple(SourceFile(name, digest, _text(contents, digest)) for name, digest in named),
        macros=macros,
        # Macros say what a configuration became.
        parameters={} if macros else {**(result.configuration or {}), **warps},
    )


def _text(contents: Contents, digest: str) -> str | None:
    try:
        content = contents.get(digest)
    except CodeError:
        return None
    return None if content is None else content.decode("utf-8", "replace")


def sources_of(bench: Bench, ladder: Ladder) -> Mapping[str, SourceChanges]:
    """What changed in the source of each step against the step that it is compared with, by variant."""
    return {after.variant: source_changes(*(source_of(r, contents) for r in (before, after))) for before, after, contents in _pairs(bench, ladder)}


def _pairs(bench: Bench, ladder: Ladder) -> Iterator[tuple[Result, Result, Contents]]:
    contents = bench.history.code.contents_of(ladder.run)
    for before, after in compared_results(ladder):
        yield before, after, contents


def compared_results(ladder: Ladder) -> Iterator[tuple[Result, Result]]:
    """For each step with a result, the result that it is compared with, and its own."""
    results = {step.variant: step.result for of in ladder.ladders for step in of.steps}
    for of in ladder.ladders:
        for step in of.steps:
            before = results.get(step.over.name) if step.over is not None else None
            if before is not None and step.result is not None:
                yield before, step.result
