"""Workloads for scripts and notebooks: measure one, open its runs, and compare them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kernelviz import bench as use_cases
from kernelviz.api.measurement import owner, paths, size_text
from kernelviz.api.report import frame
from kernelviz.bench.workload_comparison import compared, opened
from kernelviz.bench.workload_plan import WorkloadRequest
from kernelviz.core.workload import WorkloadRun
from kernelviz.core.workload_explanations import RunAsDeclaredNow
from kernelviz.formats import workload_document, workload_exports
from kernelviz.metrics.workloads import rows
from kernelviz.plots.workloads import chart_of
from kernelviz.tables.workloads import pair_record, record
from kernelviz.text.workload_insight import describe_insight
from kernelviz.text.workloads import describe_comparison

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


class WorkloadReport(RunAsDeclaredNow, frozen=True, kw_only=True):
    """A run of a workload with methods for use in Python."""

    @classmethod
    def of(cls, run: WorkloadRun) -> WorkloadReport:
        """The report of a run."""
        recorded = run.recorded if isinstance(run, RunAsDeclaredNow) else None
        return cls(**{name: getattr(run, name) for name in WorkloadRun.__struct_fields__}, recorded=recorded)

    def to_frame(self) -> pd.DataFrame:
        """A row per case: each figure with its interval, in SI base units, the gain over the baseline, and the verdict."""
        return frame([record(self, row) for row in rows(self)])

    @property
    def insight(self) -> str:
        """One sentence: which variant is best, and by how much."""
        return str(describe_insight(self))

    def chart(self, point: str | None = None) -> go.Figure:
        """The chart that the workload declares. `point`: one of `metrics.workloads.points`; None: the last one."""
        return chart_of(self, point=point)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file; the ending names the format: .json, .md, .csv or .html. Errors: OSError."""
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(workload_exports.encode(self, workload_exports.format_of(os.fspath(path))))

    @property
    def digest(self) -> str:
        """SHA-256 of its facts."""
        return workload_document.digest(self)

    def __repr__(self) -> str:
        return f"<WorkloadReport {self.id}: {self.title}, {self.status}, {len(self.results)} of {len(self.plan.cases)} cases>"


def workload(
    name: str,
    variants: Sequence[str] | None = None,
    *,
    values: Mapping[str, int | str | Sequence[int]] | None = None,
    preset: str | None = None,
    device: str | Sequence[str] | None = None,
    baseline: str | None = None,
    budget_s: float | None = None,
    title: str = "",
    plugins: Sequence[str | os.PathLike[str]] = (),
) -> WorkloadReport:
    """Measure a workload and wait for its end.

    variants: besides the baseline; by default all that can run here. values: of axes, as ``{"size": "2^10..2^20"}``; the others
    are those of the preset. device: one id, or two for a workload of two processes; by default the GPUs of this machine, else
    ``cpu``. budget_s: seconds of measuring per case. plugins: files with workloads of your own. An interrupt cancels the run, and
    its results stay. Errors: UnknownName, BadField, StoreError.
    """
    bench = use_cases.current().workloads
    request = WorkloadRequest(
        workload=name,
        variants=(variants,) if isinstance(variants, str) else None if variants is None else tuple(variants),
        values={axis: size_text(value, axis) for axis, value in (values or {}).items()},
        preset=preset,
        devices=(device,) if isinstance(device, str) else None if device is None else tuple(device),
        baseline=baseline,
        budget_s=budget_s,
        plugins=paths(plugins),
    )
    return wait_for_workload(bench.run(bench.plan(request), owner=owner(), title=title))


def resume_workload(run_id: str) -> WorkloadReport:
    """Measure the cases of a cancelled or interrupted run that have no result, and wait. Errors: UnknownRun, BadField."""
    use_cases.current().workloads.resume(run_id, owner=owner())
    return wait_for_workload(run_id)


def wait_for_workload(run_id: str) -> WorkloadReport:
    """Wait for the end of a run of a workload; an interrupt cancels it."""
    bench = use_cases.current().workloads
    try:
        for _ in bench.follow(run_id):
            pass
    except KeyboardInterrupt:
        bench.cancel(run_id)
        raise
    return WorkloadReport.of(bench.load(run_id))


def load_workload(run: str | os.PathLike[str]) -> WorkloadReport:
    """The run of a workload with that id, or that of a file. Errors: UnknownRun, DocumentError, BadField."""
    return WorkloadReport.of(opened(use_cases.current().workloads, os.fspath(run)))


def workload_runs(search: str = "") -> pd.DataFrame:
    """The stored runs of workloads, the newest first."""
    matching = use_cases.current().workloads.find(search, limit=10_000)
    names = ("id", "title", "workload", "device", "created_at", "status", "cases", "done", "failed", "note")
    return frame([{name: getattr(one, name) for name in names} for one in matching])


def compare_workloads(
    a: str, b: str | None = None, *, variant_a: str | None = None, variant_b: str | None = None
) -> pd.DataFrame:
    """Two runs of a workload (ids or files) case by case, or two variants of one: values, gain of B over A, and verdict.

    The frame's attribute ``attrs["insight"]`` is the sentence about it. Errors: UnknownRun, UnknownName, DocumentError, BadField.
    """
    of = compared(use_cases.current().workloads, a, b or a, variant_a=variant_a, variant_b=variant_b)
    table: Any = frame([pair_record(pair) for pair in of.pairs])
    table.attrs["insight"] = str(describe_comparison(of))
    return table  # type: ignore[no-any-return]
