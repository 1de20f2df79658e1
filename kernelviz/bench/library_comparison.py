"""Use case: compare own variants with libraries, over runs kept here, documents and backups."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kernelviz.bench import backup
from kernelviz.bench.bench import Bench
from kernelviz.bench.comparison import opened
from kernelviz.core import Run
from kernelviz.metrics.library_comparison import COMPILED, EAGER, LIGER, ComparisonRow, comparison_rows, time_s


def library_comparison(bench: Bench, sources: Sequence[str]) -> tuple[ComparisonRow, ...]:
    """One row for each problem of the runs. Each source is the id of a run, a document or a backup.

    Errors: UnknownRun, BadField for a file that cannot be read, DocumentError.
    """
    return comparison_rows(run for source in sources for run in _runs(bench, source))


def _runs(bench: Bench, source: str) -> Iterator[Run]:
    path = Path(source)
    if path.is_file() and backup.recognised(path):
        yield from backup.runs(path)
    else:
        yield opened(bench, source)


def records(rows: Sequence[ComparisonRow]) -> list[dict[str, Any]]:
    """One record for each problem, in SI base units, for JSON and data frames. An unknown value is None."""
    return [
        {
            "op": row.problem.op,
            **row.problem.sizes,
            "dtype": row.problem.dtype,
            "direction": row.problem.direction,
            "read_bytes": row.cost.read_bytes,
            "written_bytes": row.cost.written_bytes,
            "own": row.own.variant if row.own else None,
            "own_s": time_s(row.own),
            "library": row.library.variant if row.library else None,
            "library_s": time_s(row.library),
            **{f"{name}_s": time_s(row.named.get(name)) for name in (EAGER, COMPILED, LIGER)},
            "own_over_library": row.ratio,
            "roof_fraction": row.share,
        }
        for row in rows
    ]
