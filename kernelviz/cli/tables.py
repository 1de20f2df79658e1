"""Results as a table for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kernelviz.cli.progress import typed_size, typed_sizes
from kernelviz.core import units
from kernelviz.core.problem import Problem
from kernelviz.core.run import Roof, Run
from kernelviz.metrics import roofline
from kernelviz.metrics.drift import drift_words
from kernelviz.metrics.figures import FIGURES, TIMES, host_bound_words, times_s
from kernelviz.metrics.roofline import Headline
from kernelviz.metrics.samples import SHOWN, Spread, spread
from kernelviz.metrics.summary import (
    STAGE_WORDS,
    Row,
    Summary,
    correctness_words,
    rows,
    summary,
    time_words,
    verdict_words,
)
from kernelviz.metrics.sweep import varying_axes
from kernelviz.metrics.trust import Trust, trust
from kernelviz.metrics.winner import winners
from kernelviz.metrics.winner_words import winner_words


def report(run: Run, roofs: Sequence[Roof], headline: Headline = "cold", *, verbose: bool = False) -> RenderableType:
    """The whole answer: what was measured, a row a case, the reasons of failures and doubts, and the winner.

    `verbose`: also every figure of every case, and the whole trust line of each.
    """
    found = rows(run, roofs, headline)
    parts: list[RenderableType] = [Text(heading(run, headline)), results(found, run, headline)]
    parts += [Text(line) for line in failures(found)]
    if verbose:
        parts += [Text(""), figures(found, run), *(Text(f"{f.name}: {f.question}", style="dim") for f in FIGURES)]
        parts += [Text(""), *(Text(line) for line in trust_lines(found, run, headline)), Text("")]
    else:
        parts += [Text(line) for line in doubts(found, run, headline)]
    parts.append(Text(conclusion(summary(found), run, roofs)))
    parts += [Text(line) for line in leads(found, headline)]
    parts.append(Text(f"run {run.id}", style="dim"))
    return Group(*parts)


def heading(run: Run, headline: Headline = "cold") -> str:
    """Op, dtype, sizes that stayed the same, and the device."""
    problem = run.plan.problems[0]
    varying = varying_axes(run.plan.problems)
    fixed = typed_sizes(problem, [a for a in problem.sizes if a not in varying])
    words = [problem.op, problem.precision, problem.direction, f"{problem.data} data", fixed]
    return f"{' · '.join(w for w in words if w)} on {run.environment.device.name}, {headline} L2"


def results(found: Sequence[Row], run: Run, headline: Headline = "cold") -> Table:
    """One row a case, in the order of the plan."""
    table = _table(run, ("time", "rate", "of roof"))
    for title in (f"against {run.plan.baseline}", "correct", "trust"):
        table.add_column(title)
    trusted = [trust(row.result, headline, run.method.clock) for row in found]
    _fill(table, found, run, [(*cells(row), t.badge if t else "") for row, t in zip(found, trusted, strict=True)])
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


def trust_lines(found: Sequence[Row], run: Run, headline: Headline) -> list[str]:
    """The whole trust line of each time, behind its sizes and variant."""
    varying = varying_axes(run.plan.problems)
    return [
        " ".join((*(f"{a}={typed_size(row.result.problem.sizes[a])}" for a in varying), row.result.variant, t.line))
        for row in found
        if (t := trust(row.result, headline, run.method.clock)) is not None
    ]


def doubts(found: Sequence[Row], run: Run, headline: Headline) -> list[str]:
    """Why times are not sound: a line a level, each reason once, with how many cases it is true of. Wrong ones are told as
    failures."""
    timed = [row for row in found if row.failure is None]
    trusted = [t for row in timed if (t := trust(row.result, headline, run.method.clock)) is not None]
    lines = []
    for level in ("doubtful", "noticed"):
        alike = [t for t in trusted if t.level == level]
        if alike:
            reasons = "; ".join(_reasons(alike))
            lines.append(f"{alike[0].badge} ({len(alike)} of {len(timed)} cases): {reasons}")
    return lines


def _reasons(alike: Sequence[Trust]) -> list[str]:
    """The reasons of times of one level, part by part: a part that says something else each time is told twice at most."""
    parts: dict[str, Counter[str]] = {}
    for one in alike:
        for part in one.reasons:
            parts.setdefault(part.name, Counter())[part.words] += 1
    said = []
    for words in parts.values():
        most = [w for w, _ in words.most_common(2)]
        count = "" if words.total() == len(alike) else f" ({words.total()})"
        said.append(" / ".join(most) + (" / …" if len(words) > len(most) else "") + count)
    return said


def cells(row: Row) -> tuple[str, str, str, str, str]:
    """Time, rate, share of the roof, verdict, correctness of one case."""
    if row.failure is not None and row.wrong_figure is None:
        return f"✕ {STAGE_WORDS[row.failure.stage]}", "", "", "", ""
    time = time_words(row.figure or row.wrong_figure)
    if row.failure is not None:
        return time, "", "", f"✕ {STAGE_WORDS[row.failure.stage]}", correctness_words(row.result)
    verdict = "baseline" if row.is_baseline else verdict_words(row.verdict)
    share = "–" if row.efficiency is None else units.percent(row.efficiency)
    return time, rate_words(row), share, verdict, correctness_words(row.result)


def rate_words(row: Row) -> str:
    """FLOP/s where the problem does much arithmetic on each byte, else GB/s of the minimal bytes."""
    cost = row.result.cost
    if cost is None:
        return ""
    if roofline.intense(cost):
        return units.rate(row.rate_flop_per_s, "FLOP/s")
    return units.gigabytes_per_s(row.bandwidth_bytes_per_s)


def failures(found: Sequence[Row]) -> list[str]:
    """Each reason once, with the variant and how many of its cases it explains."""
    reasons: dict[tuple[str, str], list[Row]] = {}
    for row in found:
        if row.failure is not None:
            words = " ".join(f"{STAGE_WORDS[row.failure.stage]}: {row.failure.message}".split())
            reasons.setdefault((row.result.variant, words), []).append(row)
    return [
        f"✕ {variant} {words}" + (f" ({len(group)} sizes)" if len(group) > 1 else "")
        for (variant, words), group in reasons.items()
    ]


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


def conclusion(found: Summary | None, run: Run, roofs: Sequence[Roof]) -> str:
    """The winner in one sentence, and what is missing for a share of the roof."""
    if found is None:
        return "No case has a correct time."
    words = [f"Fastest: {found.fastest}"]
    if found.speed_up is not None and found.fastest != run.plan.baseline:
        over = f" (geometric mean of {found.speed_ups} sizes)" if found.speed_ups > 1 else ""
        words.append(f"{found.speed_up:.2f}× {run.plan.baseline}{over}")
    if found.efficiency is not None:
        words.append(f"{units.percent(found.efficiency)} of the measured roof")
    text = ", ".join(words) + "."
    return text if roofs else f"{text} Roofs are not calibrated: `kernelviz device --calibrate` measures them."
