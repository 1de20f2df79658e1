"""The columns of a comparison: a row a pair, worst first."""

from kernelviz.core import Result, units
from kernelviz.metrics import foreign_times
from kernelviz.metrics.comparison import Comparison, Pair
from kernelviz.metrics.equal_clock import equal_clock
from kernelviz.metrics.figures import figure_of
from kernelviz.metrics.issue_rate import IssueShare
from kernelviz.metrics.stability import stability
from kernelviz.metrics.sweep import varying_axes
from kernelviz.metrics.verdict_reasons import OtherTool, Side
from kernelviz.tables.column import ISSUE_HELP, MEMORY_HELP, Column, View, axes_of, select, size_columns
from kernelviz.text import describe_pair, describe_verdict_reason, format_badge_of, format_case, format_variant
from kernelviz.text.comparison import format_kind
from kernelviz.text.text import sentence_case


def pair_columns(comparison: Comparison, view: View) -> list[Column[Pair]]:
    """The columns, with sizes on the page; in the terminal the case is one text."""

    def time_s(result: Result, pair: Pair) -> float | None:
        if isinstance(pair.reason, OtherTool):
            return foreign_times.of_case(result)[pair.reason.time].estimate
        figure = figure_of(result.timing, comparison.headline)
        return figure.estimate if figure and not stability(figure).unstable else None

    def width(result: Result) -> float | None:
        figure = figure_of(result.timing, comparison.headline)
        return figure.half_width if figure and not stability(figure).unstable else None

    def memory_bytes(result: Result) -> int | None:
        return result.peak_memory.call_bytes if result.peak_memory else None

    def issue(pair: Pair, side: Side) -> IssueShare | None:
        shares = equal_clock(pair, comparison)
        return shares.before if side == "A" else shares.after

    def of_side(side: Side) -> list[Column[Pair]]:
        return [
            Column("", f"Of issue rate, {side}", ISSUE_HELP, units.SHARE,
                   lambda p: share.fraction if (share := issue(p, side)) else None, View.WIDE, optional=True),
            Column("", f"SM clock of {side}", "Mean SM clock of the calls, measured on the device.", units.CLOCK,
                   lambda p: share.clock_hz if (share := issue(p, side)) else None, View.WIDE, optional=True),
        ]  # fmt: skip

    memory_help = MEMORY_HELP.format("a call")
    axes = varying_axes([p.problem for p in comparison.pairs])
    time_help = f"{comparison.headline.capitalize()} time: median of trimmed block means."
    width_help = "Half the 95 % interval, bootstrapped over blocks."
    quality_help = "How far the time can be relied on, with the worst reason. A click on the row shows all parts."
    one, both = (View(0), View.WIDE) if comparison.by_problem else (View.WIDE, View(0))
    columns: list[Column[Pair]] = [
        Column("", "Verdict", "The meaning of each is below the table.", units.OWN_TEXT, format_kind,
               View.WIDE),
        Column("", "Variant", "", units.TEXT, lambda p: format_variant(p.before.variant), one),
        Column("", "Variant A", "", units.TEXT, lambda p: format_variant(p.before.variant), both),
        Column("", "Variant B", "", units.TEXT, lambda p: format_variant(p.after.variant), both),
        Column("", "Case", "", units.TEXT, lambda p: format_case(p, axes, by_problem=comparison.by_problem), View.TERMINAL),
        *size_columns(axes_of([p.problem for p in comparison.pairs]), lambda p: p.problem, View.WIDE),
        Column("", "Time B / time A", "Above 1, B is slower.", units.RATIO, lambda p: p.ratio.estimate if p.ratio else None,
               View.WIDE),
        Column("", "From", "Lower end of the 95 % interval of the ratio.", units.RATIO,
               lambda p: p.ratio.low if p.ratio else None, View.WIDE),
        Column("", "To", "Upper end of the 95 % interval of the ratio.", units.RATIO,
               lambda p: p.ratio.high if p.ratio else None, View.WIDE),
        Column("", "Noise floor, ±", "The whole interval has to be outside of it.", units.WIDTH, lambda p: p.floor, View.WIDE),
        Column("", "Time A", time_help, units.SECONDS, lambda p: time_s(p.before, p)),
        Column("", "Time B", time_help, units.SECONDS, lambda p: time_s(p.after, p)),
        Column("", "± of A", width_help, units.WIDTH, lambda p: width(p.before), View.WIDE),
        Column("", "± of B", width_help, units.WIDTH, lambda p: width(p.after), View.WIDE),
        Column("", f"B against A, {comparison.headline} L2", "", units.TEXT, describe_pair, View.TERMINAL),
        Column("", "Reason", "The reason of the verdict, or why there is none.", units.TEXT,
               lambda p: sentence_case(describe_verdict_reason(p.reason)), View.WIDE, width="medium"),
        Column("", "Quality of A", quality_help, units.TEXT,
               lambda p: format_badge_of(p.before, comparison.headline, comparison.a.method.clock), View.WIDE, width="large"),
        Column("", "Quality of B", quality_help, units.TEXT,
               lambda p: format_badge_of(p.after, comparison.headline, comparison.b.method.clock), View.WIDE, width="large"),
        # Behind the quality, which has to be in sight without scrolling.
        Column("", "Memory of a call, A", memory_help, units.MEMORY, lambda p: memory_bytes(p.before), View.WIDE, optional=True),
        Column("", "Memory of a call, B", memory_help, units.MEMORY, lambda p: memory_bytes(p.after), View.WIDE, optional=True),
        Column("", "At equal clock, B / A", "Time B / time A if both had run at one SM clock. 1: the clocks explain the whole "
               "difference.", units.RATIO, lambda p: equal_clock(p, comparison).ratio, View.WIDE | View.TERMINAL, optional=True),
        *of_side("A"),
        *of_side("B"),
    ]  # fmt: skip
    return select(columns, comparison.pairs, view)
