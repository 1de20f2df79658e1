"""The columns of a run whose times another tool measured."""

from collections.abc import Sequence
from dataclasses import replace

from kernelviz.core import units
from kernelviz.metrics import foreign_times
from kernelviz.tables.cases import Case
from kernelviz.tables.column import VARIANT, VARIANT_TEXT, Column, View, select_with_sizes
from kernelviz.text import describe_failure, describe_methods

_TIME = replace(units.SECONDS, form=".4g")


def _time(name: str, how: str) -> Column[Case]:
    def time_s(case: Case) -> float | None:
        figure = foreign_times.of_case(case.result).get(name)
        return figure.estimate if figure else None

    return Column("", "", how, _TIME, time_s, subject=name, order=time_s)


def other_times_columns(table: Sequence[Case], view: View) -> list[Column[Case]]:
    """The columns, with sizes: every time that the file has, why a case has none, and how each was measured."""
    if not table:
        return []
    run = table[0].run
    columns: list[Column[Case]] = [
        VARIANT,
        VARIANT_TEXT,
        *(_time(name, str(how)) for name, how in describe_methods(run).items()),
        Column(
            "",
            "Failure",
            "The stage that failed.",
            units.OWN_TEXT,
            lambda c: c.stage or None,
            View.NARROW,
            optional=True,
        ),
        Column(
            "",
            "Result",
            "Why there is no time.",
            units.TEXT,
            lambda c: f"{c.stage}: {describe_failure(c.row.failure)}" if c.row.failure else "not checked",
            View.WIDE,
        ),
        Column(
            "",
            "How the times were measured",
            "In the words of the file.",
            units.TEXT,
            lambda c: "; ".join(f"{name}: {f.method}" for name, f in foreign_times.of_case(c.result).items()),
            View.WIDE,
        ),
    ]
    return select_with_sizes(columns, table, view, run.plan.problems)
