"""Compare runs with each other, with the roofs, with libraries, and with earlier runs of the same case."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kernelviz import bench as use_cases
from kernelviz.api.measurement import owner, size_texts, wait_for_run
from kernelviz.api.report import PathLike, frame
from kernelviz.bench import comparison, regression
from kernelviz.bench import fusion as fusing
from kernelviz.bench import gallery as recorded
from kernelviz.bench import library_comparison as against_libraries
from kernelviz.bench import roofline as placing
from kernelviz.bench.code_changes import changes_of_pairs
from kernelviz.bench.code_differences import CodeDifference, code_differences
from kernelviz.bench.slowdown import slowdowns, speedups
from kernelviz.bench.trends import CaseTrend
from kernelviz.core import BadField, Run
from kernelviz.core.code_changes import CodeChanges
from kernelviz.metrics.comparison import Comparison
from kernelviz.metrics.library_comparison import ComparisonRow
from kernelviz.metrics.slowdown import Slowdown
from kernelviz.text import describe_mean, format_counts

if TYPE_CHECKING:
    import pandas as pd


class Compared(Comparison):
    """A comparison with methods for use in Python. `pairs`: the largest slow-down first. `slower_than(0.02)`: pairs slower by
    over 2 %."""

    @classmethod
    def of(cls, compared: Comparison) -> Self:
        return cls(**{field.name: getattr(compared, field.name) for field in fields(compared)})

    @property
    def record(self) -> dict[str, Any]:
        """The record that `kernelviz compare --json` prints: the runs, the summary, what differs between them, one row for each
        case."""
        return comparison.record(self)

    def to_frame(self) -> pd.DataFrame:
        """One row for each case, the largest slow-down first: verdict, reason, ratio (time of B over time of A) with its
        interval, both times."""
        return frame(comparison.records(self))

    def code_differences(self) -> tuple[CodeDifference, ...]:
        """For each pair, which facts about the machine code of its kernels differ, or why that is unknown."""
        return code_differences(use_cases.current().history.code_facts, self)

    def code_changes(self) -> tuple[CodeChanges, ...]:
        """For each pair, what has changed in the machine code, the likeliest cause of the difference first. `changes.cause` is
        None if no change can be the reason."""
        return changes_of_pairs(use_cases.current().history.code_facts, self, self.pairs)

    def slowdowns(self) -> tuple[Slowdown, ...]:
        """For each pair of which B is slower, the worst first: what differs in A's favour (`reasons`, the likeliest first), by
        topic (`topics`), and what is unknown."""
        return slowdowns(use_cases.current().history.code_facts, self)

    def speedups(self) -> tuple[Slowdown, ...]:
        """For each pair of which B is faster, the largest gain first: what differs in B's favour (`reasons`, the likeliest
        first), by topic (`topics`), and what is unknown. `slowdowns` told from A to B, by the same rule."""
        return speedups(use_cases.current().history.code_facts, self)

    def __repr__(self) -> str:
        return f"<kernelviz comparison of {self.b.id} with {self.a.id}: {format_counts(self)}; {describe_mean(self)}>"


def compare(
    a: Run | PathLike,
    b: Run | PathLike,
    *,
    variant_a: str | None = None,
    variant_b: str | None = None,
    l2: str = "cold",
) -> Compared:
    """Compare run B with run A, the baseline, case by case. Each is a run, the id of a run, or the path of a document.

    With variants, one variant of A is compared with one of B (the same one if only one is named), problem by problem. Errors:
    UnknownRun, UnknownName with the known names, BadField for a run with itself.
    """
    first, second = (
        source if isinstance(source, Run) else comparison.opened(use_cases.current(), os.fspath(source))
        for source in (a, b)
    )
    return Compared.of(comparison.compare(first, second, variant_a=variant_a, variant_b=variant_b, l2=l2))


def regress(run_id: str, *, device: str | None = None, l2: str = "cold") -> Compared:
    """Measure the plan of a stored run again by its method, and compare the new run with it.

    Errors: UnknownRun; BadField for a run that is still in progress or a device that is not here; UnknownName for a variant
    that no longer exists.
    """
    bench = use_cases.current()
    new_id = regression.again(bench, run_id, device=device, anywhere=False)
    return Compared.of(comparison.compare(bench.load(run_id), wait_for_run(bench, new_id), l2=l2))


def trends(op: str | None = None, *, device: str | None = None, l2: str = "cold") -> tuple[CaseTrend, ...]:
    """The trends of all cases that were measured on the device: levels, changes, and `trend.regression` if a case is slower
    than at its best level. Errors: UnknownName."""
    bench = use_cases.current()
    if op is not None:
        regression.must_be_op(bench, op)
    return bench.trends.cases(device or bench.default_device(), op=op, l2=l2)


def roofline(
    *runs: str, level: str = "dram", roofs: str = "measured", precision: str | None = None, variant: str | None = None
) -> pd.DataFrame:
    """The cases of runs on the roofline, one row for each case: share of the roof, what limits it, and the evidence for that.

    runs: ids; by default the newest run, or some of those that come with kernelviz. level: ``dram`` uses the cold times, ``l2``
    the warm ones. roofs: ``measured`` or ``datasheet``. `kernelviz.plots.rates_by_intensity` draws the result of
    `kernelviz.bench.roofline.place`. Errors: UnknownRun for an id that is not in the store; UnknownName, with the known names.
    """
    bench = use_cases.current()
    placement = placing.place(
        bench, runs or placing.default_runs(bench), level=level, source=roofs, precision=precision, variant=variant
    )
    return frame(placing.records(placement))


def fusion(
    *sources: str | Path,
    measure: str | None = None,
    sizes: Mapping[str, int | str | Sequence[int]] | None = None,
    dtype: str | None = None,
    device: str | None = None,
    budget_s: float = fusing.BUDGET_S,
) -> pd.DataFrame:
    """What fusing saves, one row for each composition at each problem: bytes, launches, times, and the speed-up, predicted in two
    ways and measured, with the reasons why a prediction fails.

    sources: ids of runs or files; by default the newest run of each family. measure: an op whose steps and fused variants are
    measured first, at `sizes`, or by default at the sizes of the page Fusion. Errors: UnknownRun; UnknownName for an op that
    declares no fusion; BadField for a file, for sizes, and where nothing fused can run.
    """
    bench = use_cases.current()
    if measure is not None:
        if sources:
            raise BadField("measure", measure, "it measures a new run; leave out the runs and files")
        texts = None if sizes is None else size_texts(sizes)
        run_id = fusing.start(bench, measure, device, sizes=texts, dtype=dtype, budget_s=budget_s, owner=owner())
        wait_for_run(bench, run_id)
        return frame(fusing.records(fusing.rows_of(bench, run_id)))
    newest = (fusing.newest_of(bench, family) for family in fusing.FAMILIES)
    named = [str(source) for source in sources] or [run.id for run in newest if run is not None]
    return frame(fusing.records(fusing.rows_of_sources(bench, named)))


def gallery(*, family: str | None = None, op: str | None = None, device: str | None = None) -> pd.DataFrame:
    """The recorded runs that come with kernelviz, one row for each, with its insight; an op without one has a row without a
    run. Errors: UnknownName, with the known names."""
    bench = use_cases.current()
    return frame(recorded.records(recorded.gallery(bench, family=family, op=op, device=device)))


def library_comparison(
    *sources: str | Path, card: str | None = None, family: str | None = None, op: str | None = None
) -> tuple[ComparisonRow, ...]:
    """Compare the fastest correct own variant of each problem, and the one that the op's rule chooses (`row.auto`),
    with the libraries and the roof, misses first. By default, results of runs that come with kernelviz have the cold time and its
    interval alone; `kv.load(row.run_id)` has all.

    sources: run ids or files; by default the newest runs here and those that come with kernelviz. card, family, op: only rows of
    these. Errors: UnknownRun, BadField for a file that cannot be read, DocumentError; UnknownName, with the known names.
    """
    named = [str(source) for source in sources]
    return against_libraries.library_comparison(use_cases.current(), named, card=card, family=family, op=op)
