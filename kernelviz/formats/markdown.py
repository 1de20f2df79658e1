"""Markdown for an issue or a pull request: the machine, a table with one row per case, and the measurement quality.

Text of a run is written as code, so that it cannot become a mention, a link or HTML.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from kernelviz.core import Roof, Run
from kernelviz.core.command import commands
from kernelviz.formats import document
from kernelviz.formats.export_format import Export
from kernelviz.formats.offline import selection
from kernelviz.metrics import foreign_times
from kernelviz.metrics.rows import rows
from kernelviz.metrics.summary import summary
from kernelviz.tables.cases import case_columns, cases
from kernelviz.tables.column import Column, Row, View
from kernelviz.tables.other_times import other_times_columns
from kernelviz.text import Text, describe_methods
from kernelviz.text.absences import MORE, describe_missing_figures
from kernelviz.text.foreign_times import NOT_OURS
from kernelviz.text.report import (
    above_roofs,
    conclusion,
    configurations,
    describe_later_roofs,
    doubts,
    failures,
    heading,
    quality_lines,
)
from kernelviz.text.text import on_one_line

_BAR = "\\|"
_TICKS = re.compile(r"`+")


def encode(run: Run, roofs: Sequence[Roof] | None = None) -> bytes:
    """The run as Markdown in UTF-8: one table, failures and doubts, the machine, and the command that measures the same plan.

    Shares are of these roofs, or of the run's own.
    """
    return "\n".join(_lines(run, run.environment.roofs if roofs is None else roofs)).encode("utf-8", "replace") + b"\n"


def _lines(run: Run, roofs: Sequence[Roof]) -> Iterator[str]:
    whole, run = run, selection.part_of(run)
    table_rows = rows(run, roofs)
    alone = foreign_times.alone(run)
    if run.title:
        yield f"### {code(run.title)}\n"
    yield f"{code(heading(run))}\n"
    table = cases(run, table_rows)
    columns = other_times_columns if alone else case_columns
    yield from table_lines(columns(table, View.MARKDOWN), table, lambda case: "" if case.row.failure else "–")
    if run is not whole:
        yield f"\n{selection.describe_part(whole, run, 'table')}"
    if alone:
        yield f"\n{NOT_OURS}\n"
        yield from (f"- {code(f'{name}: {how}')}" for name, how in describe_methods(run).items())
    yield ""
    if not alone:
        yield f"**{code(conclusion(summary(table_rows), run, roofs))}**\n"
    for line in (
        *describe_later_roofs(run, roofs),
        *failures(table_rows),
        *above_roofs(table_rows),
        *configurations(table_rows, run),
        *describe_missing_figures([row.result for row in table_rows], run, MORE),
        *(() if alone else doubts(table_rows, run, "cold")),
    ):
        yield f"- {code(line)}"
    yield ""
    if not alone:
        yield from _folded("Measurement quality of each time", quality_lines(table_rows, run, "cold"))
    yield from _behind(whole, measured_here=not alone)


def _folded(heading: str, lines: Sequence[str | Text]) -> Iterator[str]:
    if lines:
        yield f"<details><summary>{heading}</summary>\n"
        yield from (f"- {code(line)}" for line in lines)
        yield "\n</details>\n"


def table_lines(
    columns: Sequence[Column[Row]], table: Sequence[Row], missing: Callable[[Row], str] = lambda row: "–"
) -> Iterator[str]:
    """The lines of a table, foreign text as code. `missing`: the text of an unknown value."""
    yield _row([" ".join(filter(None, (c.title, code(c.subject)))) for c in columns])
    yield f"|{''.join('---:|' if c.unit.right else '---|' for c in columns)}"
    for row in table:
        texts = [c.single(row, missing(row)) for c in columns]
        yield _row([code(text) if c.unit.foreign else text for c, text in zip(columns, texts, strict=True)])


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


def code(text: str | Text) -> str:
    """Any text as a code span on one line. Empty text stays empty.

    >>> print(code("a <i> @you"), code("`x`"))
    `a <i> @you` `` `x` ``
    """
    line = str(on_one_line(text))
    if not line:
        return ""
    fence = "`" * (max(map(len, _TICKS.findall(line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _row(cells: Sequence[str]) -> str:
    # A bar ends a cell even inside code.
    return f"| {' | '.join(cell.replace('|', _BAR) for cell in cells)} |"


EXPORT = Export(
    name="md",
    suffix=".md",
    media_type="text/markdown",
    encode=encode,
    encode_with_roofs=encode,
    label="Markdown table, for an issue or a pull request",
)
