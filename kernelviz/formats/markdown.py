"""Markdown for an issue or a pull request: what was measured where, a row a case with interval, verdict and trust, and why.

Texts of a run are set as code: there they can neither become a mention, a link nor HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kernelviz.core import units
from kernelviz.core.command import commands
from kernelviz.core.result import Figure
from kernelviz.core.run import Run
from kernelviz.formats import document
from kernelviz.formats.export_format import Export
from kernelviz.metrics import foreign_times
from kernelviz.metrics.quality import quality_level
from kernelviz.metrics.summary import Row, rows, summary
from kernelviz.metrics.sweep import varying_axes
from kernelviz.text.cells import against_words
from kernelviz.text.correctness import describe_correctness
from kernelviz.text.failures import STAGES
from kernelviz.text.quality import format_level
from kernelviz.text.report import (
    conclusion,
    configurations,
    doubts,
    failures,
    heading,
    rate_words,
    trust_lines,
    typed_size,
)

_BAR = "\\|"
_TICKS = re.compile(r"`+")


def encode(run: Run) -> bytes:
    """UTF-8. One table, then the reasons behind a mark in it, the machine, and the command that measures it again."""
    return "\n".join(_lines(run)).encode("utf-8", "replace") + b"\n"


def _lines(run: Run) -> Iterator[str]:
    found = rows(run, run.environment.roofs)
    alone = foreign_times.alone(run)
    if run.title:
        yield f"### {code(run.title)}\n"
    yield f"{code(heading(run))}\n"
    yield from _others(run, found) if alone else _table(run, found)
    yield ""
    if not alone:
        yield f"**{code(conclusion(summary(found), run, run.environment.roofs))}**\n"
    for line in (*failures(found), *configurations(found, run), *(() if alone else doubts(found, run, "cold"))):
        yield f"- {code(line)}"
    yield ""
    if not alone:
        yield from _folded("What stands behind each time", trust_lines(found, run, "cold"))
    yield from _behind(run, measured_here=not alone)


def _folded(heading: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"<details><summary>{heading}</summary>\n"
        yield from (f"- {code(line)}" for line in lines)
        yield "\n</details>\n"


def _table(run: Run, found: Sequence[Row]) -> Iterator[str]:
    axes = varying_axes(run.plan.problems)
    heads = (
        "variant",
        "time",
        "95 % interval",
        "rate",
        "of roof",
        f"against {code(run.plan.baseline)}",
        "correct",
        "trust",
    )
    yield _row([*map(code, axes), *heads])
    yield _rule(len(axes), len(heads))
    for row in found:
        figure = row.figure or row.wrong_figure
        level = quality_level(row.result, "cold", run.method.clock)
        stage = f"✕ {STAGES[row.failure.stage]}" if row.failure else ""
        words, checked = str(describe_correctness(row.result)), row.result.accuracy
        share = "" if row.efficiency is None else units.percent(row.efficiency)
        facts = [
            units.seconds(figure.estimate) if figure else stage or "–",
            _interval(figure),
            "" if row.failure else rate_words(row),
            share,
            (stage if figure else "") if row.failure else str(against_words(row)),
            code(words) if checked and (checked.reasons or checked.message) else words,
            str(format_level(level)) if level else "",
        ]
        yield _row([*_sizes(row, axes), code(row.result.variant), *facts])


def _others(run: Run, found: Sequence[Row]) -> Iterator[str]:
    """A run of which another tool took the times."""
    axes, names = varying_axes(run.plan.problems), foreign_times.names(run)
    yield _row([*map(code, axes), "variant", *map(code, names)])
    yield _rule(len(axes), len(names) + 1)
    for row in found:
        times = foreign_times.of_case(row.result)
        stage = f"✕ {STAGES[row.failure.stage]}" if row.failure else "–"
        told = [units.seconds(times[n].estimate) if n in times else stage for n in names]
        yield _row([*_sizes(row, axes), code(row.result.variant), *told])
    yield f"\n{foreign_times.NOT_OURS}\n"
    yield from (f"- {code(f'{name}: {how}')}" for name, how in foreign_times.methods(run).items())


def _behind(run: Run, *, measured_here: bool) -> Iterator[str]:
    where = run.environment
    device = where.device
    versions = [f"{name} {version}" for name, version in where.versions.items()]
    machine = [device.name, f"driver {device.driver}" if device.driver else "", *versions, where.platform]
    yield f"Machine: {code(' · '.join(w for w in machine if w))}"
    yield f"Run {code(run.id)} of {code(run.created_at)}, digest {code(document.digest(run)[:16])}\n"
    if run.note:
        yield f"Note: {code(run.note)}\n"
    if measured_here:
        yield "To measure it again:\n"
        yield from (f"    {' '.join(line.split())}" for line in commands(run.plan, run.method))


def code(text: str) -> str:
    """A text as a code span on one line, whatever is in it; nothing for nothing.

    >>> print(code("a <i> @you"), code("`x`"))
    `a <i> @you` `` `x` ``
    """
    line = " ".join(text.split())
    if not line:
        return ""
    fence = "`" * (max(map(len, _TICKS.findall(line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _interval(figure: Figure | None) -> str:
    if figure is None or figure.low is None or figure.high is None:
        return ""
    return f"{units.seconds(figure.low)} – {units.seconds(figure.high)}"


def _sizes(row: Row, axes: Sequence[str]) -> list[str]:
    sizes = row.result.problem.sizes
    return [typed_size(sizes[a]) if a in sizes else "" for a in axes]


def _row(cells: Sequence[str]) -> str:
    # A bar ends a cell, also inside code.
    return f"| {' | '.join(cell.replace('|', _BAR) for cell in cells)} |"


def _rule(sizes: int, others: int) -> str:
    return f"|{'---:|' * sizes}---|{'---:|' * min(others - 1, 4)}{'---|' * max(others - 5, 0)}"


EXPORT = Export(
    name="md",
    suffix=".md",
    media_type="text/markdown",
    encode=encode,
    words="Markdown: a table for an issue or a pull request",
)
