"""Results as a table for a terminal."""

from collections.abc import Callable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kernelviz.cli import console
from kernelviz.core import Roof, Run
from kernelviz.core.units import typed_size
from kernelviz.metrics import foreign_times
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.rows import Row, rows
from kernelviz.metrics.samples import spread
from kernelviz.metrics.summary import summary
from kernelviz.metrics.sweep import varying_axes
from kernelviz.metrics.winner import winners
from kernelviz.tables.cases import Case, case_columns, cases
from kernelviz.tables.column import Column, View, select_with_sizes
from kernelviz.tables.kernels import KERNELS, LOCAL_HELP, kernels
from kernelviz.tables.other_times import other_times_columns
from kernelviz.tables.spreads import SPREADS, SpreadOfCase
from kernelviz.text.foreign_times import NOT_OURS, describe_methods
from kernelviz.text.report import conclusion, configurations, doubts, failures, heading, quality_lines
from kernelviz.text.samples import SAMPLED_FIGURES, describe_drift
from kernelviz.text.times import FIGURES
from kernelviz.text.winners import describe_winners


def report(run: Run, roofs: Sequence[Roof], headline: Headline = "cold", *, verbose: bool = False) -> RenderableType:
    """The whole answer: what was measured, a row a case, the reasons of failures and doubts, and the winner.

    `verbose`: also every figure of every case, and the whole trust line of each.
    """
    found = rows(run, roofs, headline)
    if foreign_times.alone(run):
        return Group(Text(str(heading(run, headline))), *_others(found, run), Text(f"run {run.id}", style="dim"))
    parts: list[RenderableType] = [Text(str(heading(run, headline))), results(found, run, headline)]
    parts += [Text(str(line)) for line in (*failures(found), *configurations(found, run))]
    if verbose:
        parts += [Text(""), figures(found, run), *(Text(f"{f.name}: {f.question}", style="dim") for f in FIGURES)]
        parts += [Text(""), *(Text(str(line)) for line in quality_lines(found, run, headline)), Text("")]
        if launched := kernels(found):
            parts += [
                console.table(select_with_sizes(KERNELS, launched, View.TERMINAL, run.plan.problems), launched),
                Text(LOCAL_HELP, style="dim"),
            ]
            parts.append(Text(""))
    else:
        parts += [Text(str(line)) for line in doubts(found, run, headline)]
    parts.append(Text(str(conclusion(summary(found), run, roofs))))
    parts += [Text(line) for line in leads(found, headline)]
    parts.append(Text(f"run {run.id}", style="dim"))
    return Group(*parts)


def _others(found: Sequence[Row], run: Run) -> list[RenderableType]:
    """The times of a run that another tool measured, and how each was taken."""
    of = cases(run, found)
    how = [Text(f"{name}: {method}", style="dim") for name, method in describe_methods(run).items()]
    shown = _table(other_times_columns(of, View.TERMINAL), of)
    return [shown, *(Text(str(line)) for line in failures(found)), Text(NOT_OURS), *how]


def results(found: Sequence[Row], run: Run, headline: Headline = "cold") -> Table:
    """One row a case, in the order of the plan."""
    of = cases(run, found, headline)
    return _table(case_columns(of, View.TERMINAL), of, lambda case: "" if case.row.failure else "–")


def figures(found: Sequence[Row], run: Run) -> Table:
    """Every figure of every case, each with its own unit; a loop that waits for Python says so."""
    of = cases(run, found)
    return _table(case_columns(of, View.TIMES_NARROW), of)


def _table(
    columns: Sequence[Column[Case]], of: Sequence[Case], missing: Callable[[Case], str] = lambda case: "–"
) -> Table:
    """The table with a section for each problem, failures in red."""
    return console.table(
        columns,
        of,
        style=lambda case: "red" if case.row.failure else "",
        group=lambda case: case.result.problem.key,
        missing=missing,
    )


def leads(found: Sequence[Row], headline: Headline = "cold") -> list[str]:
    """Who is fastest up to which size; nothing for one size, of which the conclusion says it, unless that is not decided."""
    made = winners(found, headline)
    if len({r.result.variant for r in found}) < 2 or not any(w.names for w in made):
        return []
    if len(made) == 1 and len(made[0].names) == 1:
        return []
    lines = describe_winners(found, made, None, str, typed_size)
    return [f"By size: {line}" if not number else f"         {line}" for number, line in enumerate(lines)]


def samples(found: Sequence[Row], run: Run) -> RenderableType:
    """What the samples of every figure of every case say; below them in words which series drift."""
    table = [
        SpreadOfCase(row.result, f.name, s)
        for row in found
        for f in SAMPLED_FIGURES
        if (s := spread(row.result, f.field)) is not None
    ]
    if not table:
        return Text("No samples: no case has a correct time, or the times came without them.")
    varying = varying_axes(run.plan.problems)
    drifting = [
        Text(" ".join((*sizes, row.result.variant, f"{row.figure}: {describe_drift(row.spread.drift)}")))
        for row in table
        if row.spread.drift.kind in ("up", "down")
        for sizes in ([typed_size(row.result.problem.sizes[a]) for a in varying],)
    ]
    return Group(console.table(select_with_sizes(SPREADS, table, View.TERMINAL, run.plan.problems), table), *drifting)
