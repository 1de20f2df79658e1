"""Use case: own variants, and the one that a user gets (`auto`), compared with every library. For page, CLI and Python."""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from kernelviz.bench import backup
from kernelviz.bench.bench import Bench
from kernelviz.bench.best import auto_names
from kernelviz.bench.comparison import opened
from kernelviz.bench.gallery import families_of
from kernelviz.bench.summaries import RunSummary
from kernelviz.core import LIVING, Run, check_name
from kernelviz.metrics.library_comparison import (
    COMPILED,
    EAGER,
    LIGER,
    Auto,
    ComparisonRow,
    comparison_rows,
    last_of_each,
    misses_first,
    time_s,
)

NEWEST = 200
"""Without a source, so many stored runs are compared, beside those that come with the package."""


def library_comparison(
    bench: Bench,
    sources: Sequence[str] = (),
    *,
    card: str | None = None,
    family: str | None = None,
    op: str | None = None,
) -> tuple[ComparisonRow, ...]:
    """One row for each problem of each card, misses first: the lowest ratio of best own variant and best library.

    Each source is the id of a run, a document or a backup; by default the newest runs that are stored here, and those that come
    with the package. With a card, a family or an op, only rows of these.
    Errors: UnknownRun, BadField for a file that cannot be read, DocumentError; UnknownName, with the known names.
    """
    every = _of_sources(bench, sources) if sources else every_row(bench)
    return matching(bench, every, card=card, family=family, op=op)


def matching(
    bench: Bench,
    every: Sequence[ComparisonRow],
    *,
    card: str | None = None,
    family: str | None = None,
    op: str | None = None,
) -> tuple[ComparisonRow, ...]:
    """Of these rows, those of a card, a family and an op, misses first. Errors: UnknownName, with the known names."""
    ops = bench.ops()
    if card is not None:
        check_name("card", card, cards_of(every))
    if family is not None:
        check_name("family", family, families_of(ops))
    if op is not None:
        check_name("op", op, ops_of(every))
    return tuple(
        row
        for row in misses_first(every)
        if card in (None, row.card)
        and op in (None, row.problem.op)
        and family in (None, ops[row.problem.op].family if row.problem.op in ops else None)
    )


def every_row(bench: Bench) -> tuple[ComparisonRow, ...]:
    """The rows of all runs of GPUs that are stored here or come with the package, the newest of each problem."""
    stored = [run for run in bench.history.find(limit=NEWEST) if run.done > run.failed and not run.shipped]
    known = bench.ops()  # a run of another tool has neither own variants nor libraries
    runs = (run for run in (*bench.history.shipped(), *reversed(stored)) if run.op in known)
    of_runs = (_rows.__wrapped__(bench, run) if run.status in LIVING else _rows(bench, run) for run in runs)
    return last_of_each(row for rows in of_runs for row in rows)


def cards_of(rows: Sequence[ComparisonRow]) -> tuple[str, ...]:
    """The names of the cards."""
    return tuple(dict.fromkeys(row.card for row in rows))


def ops_of(rows: Sequence[ComparisonRow]) -> tuple[str, ...]:
    """The names of the ops."""
    return tuple(dict.fromkeys(sorted(row.problem.op for row in rows)))


def key_of(row: ComparisonRow) -> str:
    """One line that names the problem of a card, for addresses."""
    return f"{row.problem.key} | {row.card}"


def as_json(rows: Sequence[ComparisonRow]) -> bytes:
    """The records as a file in JSON."""
    return json.dumps(library_records(rows), ensure_ascii=False, allow_nan=False, indent=2).encode() + b"\n"


def _of_sources(bench: Bench, sources: Sequence[str]) -> tuple[ComparisonRow, ...]:
    return comparison_rows((run for source in sources for run in _runs_of(bench, source)), auto=_auto(bench))


def _auto(bench: Bench) -> Auto:
    return partial(auto_names, bench)


# The page asks at each redraw. All runs that come with the package, with their samples, would take seconds.
@lru_cache(maxsize=2 * NEWEST)
def _rows(bench: Bench, run: RunSummary) -> tuple[ComparisonRow, ...]:
    timed = bench.history.times(run.id)
    return comparison_rows([timed], auto=_auto(bench)) if timed.environment.device.kind == "cuda" else ()


def _runs_of(bench: Bench, source: str) -> Iterator[Run]:
    path = Path(source)
    if path.is_file() and backup.recognised(path):
        yield from backup.runs(path)  # one at a time: a backup may hold many runs
    else:
        yield opened(bench, source)


def library_records(rows: Sequence[ComparisonRow]) -> list[dict[str, Any]]:
    """One record for each problem, in SI base units, for JSON and data frames. An unknown value is None."""
    return [
        {
            "op": row.problem.op,
            **row.problem.sizes,
            "dtype": row.problem.dtype,
            "direction": row.problem.direction,
            "read_bytes": row.cost.read_bytes,
            "written_bytes": row.cost.written_bytes,
            "card": row.card,
            "run": row.run_id,
            "own": row.own.variant if row.own else None,
            "own_s": time_s(row.own),
            "library": row.library.variant if row.library else None,
            "library_s": time_s(row.library),
            **{f"{name}_s": time_s(row.named.get(name)) for name in (EAGER, COMPILED, LIGER)},
            "auto": row.choice,
            "auto_s": time_s(row.auto),
            "auto_over_own": row.auto_ratio,
            "auto_over_library": row.auto_over_library,
            "libraries": {result.variant: time_s(result) for result in row.libraries},
            "own_over_library": row.ratio,
            "roof_fraction": row.share,
        }
        for row in rows
    ]
