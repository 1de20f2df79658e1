"""Results as a table for a terminal."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kernelviz.cli import console
from kernelviz.core import Roof, Run
from kernelviz.metrics import foreign_times
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.rows import Row, rows
from kernelviz.metrics.samples import spread
from kernelviz.metrics.summary import best_of, summary
from kernelviz.metrics.sweep import varying_axes
from kernelviz.metrics.winner import winners
from kernelviz.tables.cases import Case, case_columns, cases
from kernelviz.tables.column import View, select_with_sizes
from kernelviz.tables.kernels import KERNELS, LOCAL_HELP, kernels
from kernelviz.tables.other_times import other_times_columns
from kernelviz.tables.spreads import SPREADS, SpreadOfCase
from kernelviz.text import describe_drift, describe_methods, describe_winners, format_size
from kernelviz.text.absences import MORE, describe_missing_figures
from kernelviz.text.foreign_times import NOT_OURS
from kernelviz.text.naive import describe_naive_of_run
from kernelviz.text.report import above_roofs, conclusion, configurations, doubts, failures, heading, quality_lines
from kernelviz.text.samples import SAMPLED_FIGURES, WHY_MEDIAN
from kernelviz.text.times import FIGURES


def report(run: Run, roofs: Sequence[Roof], headline: Headline = "cold", *, verbose: bool = False) -> RenderableType:
    """What was measured, a row for each case, the reasons of failures and doubts, and the winner.

    `verbose`: also all figures and the full measurement quality of each case.
    """
    table = rows(run, roofs, headline)
    title, run_id = Text(str(heading(run, headline))), Text(f"run {run.id}", style="dim")
    if foreign_times.alone(run):
        return Group(title, *_foreign_times(table, run), run_id)
    parts: list[RenderableType] = [title, results(table, run, headline)]
    parts += _lines(*failures(table), *configurations(table, run), *above_roofs(table))
    results_of_run = [row.result for row in table]
    if verbose:
        parts += [Text(""), figures(table, run), *_lines(*(f"{f.name}: {f.question}" for f in FIGURES), style="dim")]
        parts += _lines(*describe_naive_of_run(results_of_run, run.environment.device.kind), style="dim")
        parts += _lines(*describe_missing_figures(results_of_run, run))
        parts += [Text(""), *_lines(*quality_lines(table, run, headline)), Text("")]
        if launched := kernels(table):
            columns = select_with_sizes(KERNELS, launched, View.TERMINAL, run.plan.problems)
            parts += [console.table(columns, launched), Text(LOCAL_HELP, style="dim"), Text("")]
    else:
        # Of the figures that this table does not show, --verbose gives the reasons.
        parts += _lines(*describe_naive_of_run(results_of_run, run.environment.device.kind))
        parts += _lines(*describe_missing_figures(results_of_run, run, MORE), *doubts(table, run, headline))
    return Group(*parts, *_lines(conclusion(summary(table), run, roofs), *leads(table, headline)), run_id)


def _lines(*texts: object, style: str = "") -> list[Text]:
    return [Text(str(text), style=style) for text in texts]


def _foreign_times(table: Sequence[Row], run: Run) -> list[RenderableType]:
    """The times of a run that another tool measured, and how each was measured."""
    of_run = cases(run, table)
    methods = _lines(*(f"{name}: {method}" for name, method in describe_methods(run).items()), style="dim")
    times = console.table(other_times_columns(of_run, View.TERMINAL), of_run, style=_style)
    return [times, *_lines(*failures(table), NOT_OURS), *methods]


def results(table: Sequence[Row], run: Run, headline: Headline = "cold") -> Table:
    """One row for each case, in the order of the plan."""
    of_run = cases(run, table, headline)
    return console.table(
        case_columns(of_run, View.TERMINAL),
        of_run,
        style=_style,
        missing=lambda case: "" if case.row.failure else "–",
    )


def figures(table: Sequence[Row], run: Run) -> Table:
    """All figures of each case, each with its unit."""
    of_run = cases(run, table)
    return console.table(case_columns(of_run, View.TIMES_NARROW), of_run, style=_style)


def _style(case: Case) -> str:
    return "red" if case.row.failure else ""


def leads(table: Sequence[Row], headline: Headline = "cold") -> list[str]:
    """The fastest variant by size; nothing for one variant, or if one variant is the fastest of the only size, since the
    conclusion says so."""
    by_size = winners(table, headline)
    obvious = len(by_size) == 1 and len(by_size[0].names) == 1
    if obvious or len({r.result.variant for r in table}) < 2 or not any(w.names for w in by_size):
        return []
    lines = describe_winners(table, by_size, None, str, format_size, best_of(table, headline))
    return [f"By size: {line}" if not number else f"         {line}" for number, line in enumerate(lines)]


def samples(table: Sequence[Row], run: Run) -> RenderableType:
    """Statistics of the samples of each figure of each case, and below them which series drift."""
    spreads = [
        SpreadOfCase(row.result, f.name, s)
        for row in table
        for f in SAMPLED_FIGURES
        if (s := spread(row.result, f.field)) is not None
    ]
    if not spreads:
        return Text("No samples: no case has a correct time, or the times came without them.")
    axes = varying_axes(run.plan.problems)
    drifting = [
        Text(" ".join((*sizes, row.result.variant, f"{row.figure}: {describe_drift(row.spread.drift)}")))
        for row in spreads
        if row.spread.drift.kind in ("up", "down")
        for sizes in ([format_size(row.result.problem.sizes[a]) for a in axes],)
    ]
    return Group(
        console.table(select_with_sizes(SPREADS, spreads, View.TERMINAL, run.plan.problems), spreads),
        *drifting,
        Text(WHY_MEDIAN, style="dim"),
    )
