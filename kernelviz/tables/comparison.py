"""The columns of a comparison: a row a pair, worst first."""

from kernelviz.core import Result, units
from kernelviz.metrics.comparison import Comparison, Pair
from kernelviz.metrics.figures import figure_of
from kernelviz.metrics.sweep import telling_axes
from kernelviz.tables.column import Column, View, axes_of, select, size_columns
from kernelviz.text import describe_pair, describe_quality_of, describe_verdict_reason, format_case, format_variant
from kernelviz.text.comparison import sign_of


def _change(ratio: float | None) -> float | None:
    return None if ratio is None else ratio - 1


def pair_columns(comparison: Comparison, view: View) -> list[Column[Pair]]:
    """The columns, with sizes on the page; in the terminal the case is one text."""

    def time_s(result: Result) -> float | None:
        figure = figure_of(result.timing, comparison.headline)
        return figure.estimate if figure else None

    def width(result: Result) -> float | None:
        figure = figure_of(result.timing, comparison.headline)
        return figure.half_width if figure else None

    axes = telling_axes([p.problem for p in comparison.pairs])
    time_help = f"{comparison.headline.capitalize()} time: median of trimmed block means."
    width_help = "Half the 95 % interval, bootstrapped over blocks."
    quality_help = "How far the time can be relied on, and why: see the page Method."
    one, both = (View(0), View.WIDE) if comparison.by_problem else (View.WIDE, View(0))
    columns: list[Column[Pair]] = [
        Column("", "Verdict", "The meaning of each is below the table.", units.OWN_TEXT, lambda p: f"{sign_of(p)} {p.kind}",
               View.WIDE),
        Column("", "Variant", "", units.TEXT, lambda p: format_variant(p.before.variant), one),
        Column("", "Variant A", "", units.TEXT, lambda p: format_variant(p.before.variant), both),
        Column("", "Variant B", "", units.TEXT, lambda p: format_variant(p.after.variant), both),
        Column("", "Case", "", units.TEXT, lambda p: format_case(p, axes, by_problem=comparison.by_problem), View.TERMINAL),
        *size_columns(axes_of([p.problem for p in comparison.pairs]), lambda p: p.problem, View.WIDE),
        Column("", "Change", "Time of B over time of A, less one: above 0, B is slower.", units.CHANGE,
               lambda p: _change(p.ratio.estimate if p.ratio else None), View.WIDE),
        Column("", "From", "Lower end of the 95 % interval of the change.", units.CHANGE,
               lambda p: _change(p.ratio.low if p.ratio else None), View.WIDE),
        Column("", "To", "Upper end of the 95 % interval of the change.", units.CHANGE,
               lambda p: _change(p.ratio.high if p.ratio else None), View.WIDE),
        Column("", "Noise floor, ±", "The whole interval has to be outside of it.", units.WIDTH, lambda p: p.floor, View.WIDE),
        Column("", "Time A", time_help, units.SECONDS, lambda p: time_s(p.before)),
        Column("", "Time B", time_help, units.SECONDS, lambda p: time_s(p.after)),
        Column("", "± of A", width_help, units.WIDTH, lambda p: width(p.before), View.WIDE),
        Column("", "± of B", width_help, units.WIDTH, lambda p: width(p.after), View.WIDE),
        Column("", f"B against A, {comparison.headline} L2", "", units.TEXT, describe_pair, View.TERMINAL),
        Column("", "Reason", "The reason of the verdict, or why there is none.", units.TEXT,
               lambda p: describe_verdict_reason(p.reason), View.WIDE, width="medium"),
        Column("", "Quality of A", quality_help, units.TEXT,
               lambda p: describe_quality_of(p.before, comparison.headline, comparison.a.method.clock), View.WIDE, width="large"),
        Column("", "Quality of B", quality_help, units.TEXT,
               lambda p: describe_quality_of(p.after, comparison.headline, comparison.b.method.clock), View.WIDE, width="large"),
    ]  # fmt: skip
    return select(columns, comparison.pairs, view)
