"""The tables of the offline page: the cases with time, share, verdict and quality, all times of each case, and the kernels."""

from collections.abc import Sequence
from html import escape

from kernelviz.core import Run
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.rows import rows
from kernelviz.tables.cases import case_columns
from kernelviz.tables.cases import cases as cases_of
from kernelviz.tables.column import Column, Row, Value, View, evaluate, select_with_sizes
from kernelviz.tables.kernels import KERNELS, shortening
from kernelviz.tables.kernels import kernels as kernels_of
from kernelviz.tables.other_times import other_times_columns
from kernelviz.text import describe_methods
from kernelviz.text.absences import describe_missing_figures
from kernelviz.text.foreign_times import NOT_OURS
from kernelviz.text.report import above_roofs

_LONG = 40
"""Texts longer than this are folded."""


def cases(run: Run, headlines: Sequence[Headline]) -> str:
    """One table for each headline. The script shows the chosen one."""
    tables = []
    for headline in headlines:
        table_rows = rows(run, run.environment.roofs, headline)
        table_cases = cases_of(run, table_rows, headline)
        above = "".join(f"<p>{escape(str(line))}</p>" for line in above_roofs(table_rows))
        table = html_table(
            case_columns(table_cases, View.WIDE), table_cases, f"Every case, {headline}", f"cases-{headline}"
        )
        tables.append(f"<div data-l2={headline}>{table}{above}</div>")
    return "".join(tables)


def figures(run: Run) -> str:
    """All times of all cases in one unit, and why some are missing."""
    table_cases = cases_of(run, rows(run, run.environment.roofs))
    missing = describe_missing_figures([case.result for case in table_cases], run)
    lines = "".join(f"<li>{escape(str(line))}</li>" for line in missing)
    return (f"<p>Missing:</p><ul>{lines}</ul>" if lines else "") + html_table(
        case_columns(table_cases, View.TIMES_WIDE), table_cases, "All times of each case", "figures"
    )


def other_times(run: Run) -> str:
    """All times of a run that another tool measured, and how each was measured."""
    table_cases = cases_of(run, rows(run, run.environment.roofs))
    table = html_table(other_times_columns(table_cases, View.WIDE), table_cases, "All times of each case", "others")
    ways = (f"<li><b>{escape(n)}</b> {escape(str(way))}</li>" for n, way in describe_methods(run).items())
    return f"<p>{NOT_OURS}</p>{table}<ul>{''.join(ways)}</ul>"


def kernels(run: Run) -> str:
    """The kernels that a call of each case launches. Empty if none were recorded."""
    table_rows = rows(run, ())
    kernel_rows = kernels_of(table_rows)
    if not kernel_rows:
        return ""
    table = html_table(
        select_with_sizes(KERNELS, kernel_rows, View.WIDE), kernel_rows, "Kernels of each case", "kernels"
    )
    said = shortening(table_rows)
    few = f"<p>{escape(said)}</p>" if said else ""
    return f"<section><h2>Kernels of a call</h2>{few}{table}</section>"


def html_table(columns: Sequence[Column[Row]], of: Sequence[Row], name: str, key: str) -> str:
    """A table whose headings become buttons for sorting. A cell that is sorted by a number has it as an attribute."""
    evaluated = evaluate(columns, of)
    head = "".join(
        f"<th scope=col{f' title={chr(34)}{escape(m.column.help)}{chr(34)}' if m.column.help else ''}>{escape(m.heading)}"
        for m in evaluated
    )
    body = "".join(
        f"<tr>{''.join(_cell(m.column, row, m.values[number]) for m in evaluated)}</tr>"
        for number, row in enumerate(of)
    )
    return (
        f'<div class=scroll tabindex=0 role=region aria-label="{escape(name)}"><table id={key}>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(column: Column[Row], row: Row, value: Value) -> str:
    is_number = bool(column.unit.form) and isinstance(value, int | float)
    text = column.unit.in_column(value) if isinstance(value, int | float) and is_number else str(value or "–")
    order = column.order(row) if column.order else value if is_number else None
    sorts = f" data-v={order:.9g}" if isinstance(order, int | float) else ""
    if column.short and (short := column.short(row)):
        return f"<td{sorts}><details><summary>{escape(str(short))}</summary>{escape(text)}</details>"
    look = " class=n" if is_number else " class=long" if len(text) > _LONG else ""
    return f"<td{look}{sorts}>{escape(text)}"
