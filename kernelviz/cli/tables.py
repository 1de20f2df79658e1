"""Results as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kernelviz.core import units
from kernelviz.core.problem import Problem
from kernelviz.core.run import Roof, Run
from kernelviz.metrics import foreign_times
from kernelviz.metrics.drift import drift_words
from kernelviz.metrics.figures import FIGURES, TIMES, host_bound_words, times_s
from kernelviz.metrics.quality import quality_level
from kernelviz.metrics.roofline import Headline
from kernelviz.metrics.samples import SHOWN, Spread, spread
from kernelviz.metrics.summary import Row, rows, summary
from kernelviz.metrics.sweep import varying_axes
from kernelviz.metrics.winner import winners
from kernelviz.text.cells import LOCAL_HELP
from kernelviz.text.quality import format_level
from kernelviz.text.report import cells, conclusion, configurations, doubts, failures, heading, trust_lines, typed_size
from kernelviz.text.winners import winner_words


def report(run: Run, roofs: Sequence[Roof], headline: Headline = "cold", *, verbose: bool = False) -> RenderableType:
    """The whole answer: what was measured, a row a case, the reasons of failures and doubts, and the winner.

    `verbose`: also every figure of every case, and the whole trust line of each.
    """
    found = rows(run, roofs, headline)
    if foreign_times.alone(run):
        return Group(Text(heading(run, headline)), *_others(found, run), Text(f"run {run.id}", style="dim"))
    parts: list[RenderableType] = [Text(heading(run, headline)), results(found, run, headline)]
    parts += [Text(line) for line in (*failures(found), *configurations(found, run))]
    if verbose:
        parts += [Text(""), figures(found, run), *(Text(f"{f.name}: {f.question}", style="dim") for f in FIGURES)]
        parts += [Text(""), *(Text(line) for line in trust_lines(found, run, headline)), Text("")]
        if any(row.result.kernels for row in found):
            parts += [kernels(found, run), Text(LOCAL_HELP, style="dim"), Text("")]
    else:
        parts += [Text(line) for line in doubts(found, run, headline)]
    parts.append(Text(conclusion(summary(found), run, roofs)))
    parts += [Text(line) for line in leads(found, headline)]
    parts.append(Text(f"run {run.id}", style="dim"))
    return Group(*parts)


def _others(found: Sequence[Row], run: Run) -> list[RenderableType]:
    """The times of a run that another tool measured, and how each was taken."""
    names = foreign_times.names(run)
    table = _table(run, names)
    lines = []
    for row in found:
        times = foreign_times.of_case(row.result)
        lines.append(["–" if name not in times else units.seconds(times[name].estimate) for name in names])
    _fill(table, found, run, lines)
    how = [Text(f"{name}: {method}", style="dim") for name, method in foreign_times.methods(run).items()]
    return [table, *(Text(line) for line in failures(found)), Text(foreign_times.NOT_OURS), *how]


def results(found: Sequence[Row], run: Run, headline: Headline = "cold") -> Table:
    """One row a case, in the order of the plan."""
    table = _table(run, ("time", "rate", "of roof"))
    for title in (f"against {run.plan.baseline}", "correct", "trust"):
        table.add_column(title)
    levels = [quality_level(row.result, headline, run.method.clock) for row in found]
    _fill(
        table,
        found,
        run,
        [(*cells(row), str(format_level(of)) if of else "") for row, of in zip(found, levels, strict=True)],
    )
    return table


def figures(found: Sequence[Row], run: Run) -> Table:
    """Every figure of every case, each with its own unit; a loop that waits for Python says so."""
    table = _table(run, tuple(TIMES.values()))
    table.add_column("")
    _fill(
        table,
        found,
        run,
        [
            (
                *("–" if time_s is None else units.seconds(time_s) for time_s in times_s(row.result).values()),
                host_bound_words(row.result.timing),
            )
            for row in found
        ],
    )
    return table


def kernels(found: Sequence[Row], run: Run) -> Table:
    """A row for each kernel that a call of each case launches."""
    table = _table(run, ())
    table.add_column("kernel", overflow="fold")
    for title in ("traced", "grid", "block", "registers", "shared, B", "local, B"):
        table.add_column(title, justify="right")
    for row in found:
        sizes = [typed_size(row.result.problem.sizes[a]) for a in varying_axes(run.plan.problems)]
        for k in row.result.kernels:
            counts = (k.registers_per_thread, k.shared_memory_bytes, k.local_memory_bytes)
            table.add_row(
                *sizes,
                row.result.variant,
                k.name,
                units.seconds(k.duration_s),
                *("–" if size is None else "x".join(map(str, size)) for size in (k.grid, k.block)),
                *("–" if count is None else str(count) for count in counts),
            )
    return table


def _table(run: Run, numbers: Sequence[str]) -> Table:
    """Columns for the sizes, the variant, and numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for axis in varying_axes(run.plan.problems):
        table.add_column(axis, justify="right")
    table.add_column("variant", overflow="fold")
    for title in numbers:
        table.add_column(title, justify="right")
    return table


def _fill(table: Table, found: Sequence[Row], run: Run, lines: Sequence[Sequence[str]]) -> None:
    varying = varying_axes(run.plan.problems)
    before: Problem | None = None
    for row, line in zip(found, lines, strict=True):
        problem = row.result.problem
        # A size is written once, above its variants; a piped table keeps it in the same column.
        sizes = [typed_size(problem.sizes[a]) if a in problem.sizes else "" for a in varying]
        if before is not None and before.key != problem.key and varying:
            table.add_section()
        before = problem
        table.add_row(*sizes, row.result.variant, *line, style="" if row.failure is None else "red")


def leads(found: Sequence[Row], headline: Headline = "cold") -> list[str]:
    """Who is fastest up to which size; nothing for one size, of which the conclusion says it, unless that is not decided."""
    made = winners(found, headline)
    if len({r.result.variant for r in found}) < 2 or not any(w.names for w in made):
        return []
    if len(made) == 1 and len(made[0].names) == 1:
        return []
    lines = winner_words(found, made, None, str, typed_size)
    return [f"By size: {line}" if not number else f"         {line}" for number, line in enumerate(lines)]


def samples(found: Sequence[Row], run: Run) -> RenderableType:
    """What the samples of every figure of every case say; below them in words which series drift."""
    shown = [(row, f.name, s) for row in found for f in SHOWN if (s := spread(row.result, f.field)) is not None]
    if not shown:
        return Text("No samples: no case has a correct time, or the times came without them.")
    table = _table(run, ("figure", "samples", "blocks", "p50", "p90", "p99", "±", "drift", "lag-1", "SM clock, MHz"))
    drifting: list[RenderableType] = []
    for row, name, s in shown:
        sizes = [typed_size(row.result.problem.sizes[a]) for a in varying_axes(run.plan.problems)]
        table.add_row(*sizes, row.result.variant, name, *_spread_cells(s))
        if s.drift.word in ("up", "down"):
            drifting.append(Text(" ".join((*sizes, row.result.variant, f"{name}: {drift_words(s.drift)}"))))
    return Group(table, *drifting)


def _spread_cells(s: Spread) -> tuple[str, ...]:
    width, clocks = s.figure.half_width, (s.low_clock_hz, s.high_clock_hz)
    return (
        str(s.samples),
        "–" if s.blocks is None else str(s.blocks),
        *(units.seconds(t) for t in (s.p50_s, s.p90_s, s.p99_s)),
        "–" if width is None else units.width(width),
        s.drift.word,
        "–" if s.lag_1 is None else f"{s.lag_1:+.2f}",
        "–" if clocks[0] is None or clocks[1] is None else f"{clocks[0] / 1e6:.0f}–{clocks[1] / 1e6:.0f}",
    )
