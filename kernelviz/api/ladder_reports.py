"""The ladder of an op: its rungs in order, what each gains, and what changed in its code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from kernelviz import bench as use_cases
from kernelviz.api.measurement import owner, size_texts, wait_for_run
from kernelviz.api.report import PathLike, frame, load
from kernelviz.bench import ladder as use_case
from kernelviz.bench import ladder_measuring as measuring
from kernelviz.bench.comparison import HEADLINES
from kernelviz.bench.ladder_changes import changes_of
from kernelviz.bench.snapshots import at_sizes
from kernelviz.core import BadField, Problem, Run, check_name
from kernelviz.formats import ladder_page
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.ladder import Ladder
from kernelviz.metrics.ladder_changes import LadderChanges
from kernelviz.metrics.ladder_summary import summary_of
from kernelviz.text.ladder_markdown import markdown
from kernelviz.text.ladder_summary import describe_summary

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class LadderReport:
    """The ladders of a run at one problem. `ladder`: the facts, `changes`: what changed in source and machine code from rung to
    rung. `kernelviz.plots.value_by_step(report.ladder)` draws the climb."""

    ladder: Ladder
    changes: LadderChanges

    def to_frame(self) -> pd.DataFrame:
        """One row for each rung: time (s) with its interval, rates, share of the roof, gain over the last correct rung before it
        with its interval and verdict, published gains, and what changed."""
        return frame(use_case.records(self.ladder, self.changes))

    def to_markdown(self, backend: str | None = None) -> str:
        """The ladder as Markdown that reads like a work log, with the lines of source that changed."""
        return markdown(self.ladder, self.changes, backend=backend)

    def save(self, path: PathLike, backend: str | None = None) -> Path:
        """Write the ladder as a page that opens offline (.html), as Markdown (.md) or as JSON (.json). Errors: BadField for
        another ending, OSError."""
        file = Path(path)
        match file.suffix:
            case ".html" | ".htm":
                file.write_bytes(ladder_page.page(self.ladder, self.changes, backend=backend))
            case ".md":
                file.write_text(f"{self.to_markdown(backend)}\n", encoding="utf-8")
            case ".json":
                file.write_bytes(use_case.as_json(self.ladder, self.changes, backend))
            case _:
                raise BadField("path", file, "name a file that ends in .html, .md or .json")
        return file

    def __repr__(self) -> str:
        main = self.ladder.main
        said = describe_summary(None if main is None else summary_of(self.ladder, main), self.ladder.metric, str)
        return f"<kernelviz ladder of {self.ladder.problem.key}, run {self.ladder.run.id}: {said}>"


def ladder(
    op: str | None = None,
    *,
    run: Run | PathLike | None = None,
    problem: str | None = None,
    sizes: Mapping[str, int | str | Sequence[int]] | None = None,
    l2: str = "cold",
    machine_code: bool = True,
    measure: bool = False,
    backend: str | None = None,
    variant: str | None = None,
    dtype: str | None = None,
    compute: str | None = None,
    direction: str = "forward",
    device: str | None = None,
    budget_s: float = measuring.BUDGET_S,
) -> LadderReport:
    """The rungs of an op in order, with what each gains over the one before it.

    run: a run, its id, or a file that holds one; by default the run of the op with the most rungs. problem: the key of a problem
    of the run; by default the one with the most rungs. sizes: only problems with these sizes. machine_code: also read what
    changed in the machine code, which takes seconds and needs nvdisasm. measure: first measure all rungs and the libraries at
    `sizes` (by default the largest usual ones), only the ladder of a `backend`, or only one `variant` and the rung before it,
    with at most `budget_s` seconds of device time for each case. Errors: UnknownName; UnknownRun; BadField, also if none can run.
    """
    check_name("l2", l2, HEADLINES)
    bench = use_cases.current()
    texts = None if sizes is None else size_texts(sizes)
    if measure:
        if run is not None or problem is not None:
            raise BadField("measure", "True", "it measures a new run; leave out run and problem, and give sizes")
        plan = measuring.plan_of(
            bench, op or use_case.default_op(bench), device, sizes=texts, dtype=dtype, compute=compute, direction=direction,
            backend=backend, variant=variant,
        )  # fmt: skip
        run_id = measuring.start(bench, plan, budget_s=budget_s, owner=owner())
        measured = wait_for_run(bench, run_id)
        return _report(measured, plan.problems[-1], l2, machine_code=machine_code)
    opened = _opened(op, run, texts)
    keys = at_sizes(opened, texts) if texts else None
    chosen = (
        use_case.problem_named(opened, problem)
        if problem is not None
        else use_case.default_problem(bench, opened, keys)
    )
    return _report(opened, chosen, l2, machine_code=machine_code)


def _opened(op: str | None, run: Run | PathLike | None, sizes: Mapping[str, str] | None) -> Run:
    """Errors: UnknownName, UnknownRun, BadField."""
    bench = use_cases.current()
    if run is not None:
        opened = run if isinstance(run, Run) else load(run)
        if op is not None and opened.plan.op != op:
            raise BadField("run", opened.id, f"it is a run of {opened.plan.op}, not of {op}")
        use_case.op_with_ladder(bench, opened.plan.op)
        return opened
    name = op or use_case.default_op(bench)
    use_case.op_with_ladder(bench, name)
    summary = use_case.default_run(bench, name, sizes)
    if summary is None:
        raise BadField("op", name, f"no run here shows its ladder; ladder({name!r}, measure=True) measures it")
    return bench.load(summary.id)


def _report(run: Run, problem: Problem, l2: str, *, machine_code: bool) -> LadderReport:
    bench = use_cases.current()
    ladders = use_case.ladder_of(bench, run, problem, cast(Headline, l2))
    return LadderReport(ladders, changes_of(bench, ladders, machine_code=machine_code))
