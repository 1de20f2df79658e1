"""A store of the size that issue of scale speaks of: real results of an H200, many times over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from kernelviz.core.result import Result
from kernelviz.core.run import Run
from kernelviz.formats import shipped_runs
from kernelviz.store import Store

SOURCES = ("h200-add", "h200-scale", "h200-softmax", "h200-rmsnorm", "h200-matmul", "h200-copy")


def filled(folder: Path, *, runs: int, cases: int) -> Store:
    """`runs` runs of `cases` results each, their samples included, a minute apart."""
    store = Store.open(folder)
    sources = [shipped_runs.load(name) for name in SOURCES]
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(runs):
        source = sources[number % len(sources)]
        store.runs.create(_run(source, number, _results(source, cases), begun + timedelta(minutes=number)))
    return store


def _results(source: Run, cases: int) -> tuple[Result, ...]:
    """As many as asked for: beyond those of the source, the same at other sizes."""
    found = list(source.results[:cases])
    for extra in range(cases - len(found)):
        result = source.results[extra % len(source.results)]
        sizes = {axis: n + 1 + extra // len(source.results) for axis, n in result.problem.sizes.items()}
        problem = msgspec.structs.replace(result.problem, sizes=sizes)
        found.append(msgspec.structs.replace(result, problem=problem))
    return tuple(found)


def _run(source: Run, number: int, results: tuple[Result, ...], at: datetime) -> Run:
    problems = tuple({r.problem.key: r.problem for r in results}.values())
    variants = tuple(dict.fromkeys(r.variant for r in results))
    return msgspec.structs.replace(
        source,
        id=f"run-{number:05}",
        title=f"nightly {number}" + (" before the change" if number % 7 == 0 else ""),
        created_at=at.isoformat(timespec="milliseconds"),
        plan=msgspec.structs.replace(source.plan, problems=problems, variants=variants),
        results=results,
    )
