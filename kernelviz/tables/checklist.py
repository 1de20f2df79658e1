"""The columns of the checklist of cases: a point each."""

from dataclasses import dataclass

from kernelviz.core import Result, units
from kernelviz.metrics.checklist import CHECKS, Check, CheckName
from kernelviz.tables.column import VARIANT, VARIANT_TEXT, Column, View
from kernelviz.text.checklist import NAMES, RULES, describe_count, format_check


@dataclass(frozen=True, slots=True)
class CheckedCase:
    """A row of the table: a case with its six points."""

    result: Result
    checks: tuple[Check, ...]

    def check(self, name: CheckName) -> Check:
        """The point of that name."""
        return next(check for check in self.checks if check.name == name)


def _column(name: CheckName) -> Column[CheckedCase]:
    return Column("", NAMES[name], RULES[name], units.TEXT, lambda case: format_check(case.check(name)),
                  View.WIDE | View.TERMINAL)  # fmt: skip


CHECKLIST: tuple[Column[CheckedCase], ...] = (
    VARIANT,
    VARIANT_TEXT,
    Column(
        "", "Passed", "How many of the six points are passed.", units.OWN_TEXT, lambda case: describe_count(case.checks)
    ),
    *map(_column, CHECKS),
)
