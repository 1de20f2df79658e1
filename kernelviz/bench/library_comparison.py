"""Use case: how far the ladders of ops get, from runs here, documents and backups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.bench import backup
from kernelviz.bench.comparison import opened
from kernelviz.core.run import Run
from kernelviz.metrics.library_comparison import COMPILED, EAGER, LIGER, Standing, standings, time_s

if TYPE_CHECKING:
    from kernelviz.bench.bench import Bench


def ladders(bench: Bench, sources: Sequence[str]) -> tuple[Standing, ...]:
    """The standings of runs: each source is a run's id, a document or a backup.

    Errors: UnknownRun, BadField for a file that cannot be read, DocumentError.
    """
    return standings(run for source in sources for run in _runs(bench, source))


def _runs(bench: Bench, source: str) -> Iterator[Run]:
    path = Path(source)
    if path.is_file() and backup.recognised(path):
        yield from backup.runs(path)
    else:
        yield opened(bench, source)


def records(found: Sequence[Standing]) -> list[dict[str, Any]]:
    """A row a problem in SI base units; unknown is None. For JSON and data frames."""
    return [
        {
            "op": s.problem.op,
            **s.problem.sizes,
            "dtype": s.problem.dtype,
            "direction": s.problem.direction,
            "read_bytes": s.cost.read_bytes,
            "written_bytes": s.cost.written_bytes,
            "own": s.own.variant if s.own else None,
            "own_s": time_s(s.own),
            "library": s.library.variant if s.library else None,
            "library_s": time_s(s.library),
            **{f"{name}_s": time_s(s.named.get(name)) for name in (EAGER, COMPILED, LIGER)},
            "own_over_library": s.ratio,
            "roof_fraction": s.share,
        }
        for s in found
    ]
