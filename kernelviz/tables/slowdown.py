"""The columns of slow cases of a comparison: a row for each case of which B is slower, the worst first."""

from kernelviz.core import units
from kernelviz.metrics.comparison import Comparison
from kernelviz.metrics.slowdown import Slowdown
from kernelviz.metrics.sweep import varying_axes
from kernelviz.tables.column import Column
from kernelviz.text import describe_pair, format_case
from kernelviz.text.slowdown import describe_slowdown


def slowdown_columns(comparison: Comparison) -> tuple[Column[Slowdown], ...]:
    """The columns; the name of a case has the axes that differ between the cases of the comparison."""
    axes = varying_axes([p.problem for p in comparison.pairs])
    return (
        Column("", "Case", "", units.TEXT, lambda row: format_case(row.pair, axes, by_problem=comparison.by_problem)),
        Column("", "B against A", "The verdict with the change of its time.", units.TEXT, lambda row: describe_pair(row.pair)),
        Column("", "Likeliest reasons", "What differs in A's favour, the likeliest reason first, and what is unknown.",
               units.OWN_TEXT, describe_slowdown, width="large"),
    )  # fmt: skip
