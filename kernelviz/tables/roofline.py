"""The columns of cases under their roofs."""

from collections.abc import Sequence

from kernelviz.core import units
from kernelviz.metrics.compute_ceilings import CeilingKind, ceiling_of
from kernelviz.metrics.counters import call_counters
from kernelviz.metrics.grouping import grouped
from kernelviz.metrics.placement import Placed
from kernelviz.metrics.sweep import varying_axes
from kernelviz.tables.column import ISSUE_HELP, Column, View, select
from kernelviz.text import (
    describe_limiter_reason,
    format_badge,
    format_limiter,
    format_problem,
    format_roof_name,
    format_sizes,
    format_time,
    format_variant,
)
from kernelviz.text.quality import INTERVAL_HELP


def placed_columns(cases: Sequence[Placed], view: View) -> list[Column[Placed]]:
    """The columns; op, run and device only if there are several."""
    ops, runs = len({c.problem.op for c in cases}) > 1, len({c.run_id for c in cases}) > 1
    of_runs = View.WIDE if runs else View(0)
    by_op = grouped(cases, key=lambda c: c.problem.op)
    axes = {op: varying_axes([c.problem for c in some]) for op, some in by_op.items()}
    columns: list[Column[Placed]] = [
        Column("", "Run", "", units.TEXT, lambda c: c.run_id, View.TERMINAL if runs else View(0)),
        Column("", "Op", "", units.TEXT, lambda c: c.problem.op, View.WIDE if ops else View(0)),
        Column("", "Case", "", units.TEXT, lambda c: format_problem(c.problem), View.TERMINAL),
        Column("", "Variant", "", units.TEXT, lambda c: format_variant(c.variant), View.WIDE),
        Column("", "Variant", "", units.TEXT, lambda c: c.variant, View.TERMINAL),
        Column("", "Sizes", "The sizes that differ between the cases of an op, or all sizes where none differs.", units.TEXT,
               lambda c: format_sizes(c.problem, axes[c.problem.op] or tuple(c.problem.sizes)),
               View.WIDE if any(axes.values()) else View(0)),
        Column("", "Time", "", units.OWN_NUMBER, lambda c: format_time(c.figure, c.levels), View.TERMINAL),
        Column("", "Limiter", "What limits the case, derived from times, kernels and measured roofs by the rule below.",
               units.OWN_TEXT, lambda c: format_limiter(c.limiter.kind)),
        Column("", "Share of roof", "Shortest time that the shown roofs allow, divided by the time.",
               units.SHARE, lambda c: c.share),
        Column("", "Time / roof", "The time divided by the shortest time that the roof allows.", units.FACTOR,
               lambda c: 1 / c.share if c.share else None),
        Column("", "Time", "Median of trimmed block means.", units.SECONDS, lambda c: _if_stable(c, c.time_s), View.WIDE),
        Column("", "±", INTERVAL_HELP, units.WIDTH,
               lambda c: _if_stable(c, c.figure.half_width), View.WIDE),
        Column("", "Rate", "Floating-point operations of the problem, divided by the time.",
               units.GFLOP_PER_S, lambda c: _if_stable(c, c.rate_flop_per_s), View.WIDE),
        Column("", "Bandwidth", "Fewest bytes that the problem has to move, divided by the time.",
               units.BYTES_PER_S, lambda c: _if_stable(c, c.bandwidth_bytes_per_s), View.WIDE),
        Column("", "Intensity", "Floating-point operations per byte that the problem has to move.",
               units.FLOP_PER_BYTE, lambda c: c.intensity, View.WIDE),
        Column("", "Roof", "The roof that determines the shortest time.", units.OWN_TEXT,
               lambda c: format_roof_name(c.light.roof) if c.light else "unknown", View.WIDE),
        Column("", "Of issue rate", ISSUE_HELP, units.SHARE, lambda c: _share(c, "issue_rate"), optional=True),
        Column("", "Of tensor-core loop", "The rate divided by that of a loop of tensor-core instructions without memory, on "
               "normal data, which Calibrate measured.", units.SHARE, lambda c: _share(c, "tensor_loop"), optional=True),
        Column("", "Of data sheet", "The rate divided by the dense peak that the maker states.", units.SHARE,
               lambda c: _share(c, "data_sheet"), View.WIDE, optional=True),
        Column("", "SM clock", "Mean SM clock of the calls, measured on the device.", units.CLOCK,
               lambda c: issue.clock_hz if (issue := ceiling_of(c.ceilings, "issue_rate")) else None, optional=True),
        Column("", "Evidence", "The evidence for the limiter.", units.TEXT, lambda c: describe_limiter_reason(c.limiter),
               width="large"),
        Column("", "DRAM traffic", "Bytes between L2 and device memory that ncu counted in one call.", units.TRAFFIC,
               lambda c: _dram_bytes(c), View.WIDE, optional=True),
        Column("", "Traffic / least", "The counted bytes divided by the fewest bytes that the problem has to move. Below 1: a "
               "part stayed in the L2.", units.FACTOR, lambda c: c.traffic_ratio, View.WIDE | View.TERMINAL, optional=True),
        Column("", "Precision", "Number format and arithmetic.", units.TEXT, lambda c: c.problem.precision, View.WIDE),
        Column("", "Run", "", units.TEXT, lambda c: c.run_name, of_runs),
        Column("", "Device", "", units.TEXT, lambda c: c.device, of_runs),
        Column("", "Quality", "How far the time can be relied on, with the worst reason. A click on the row shows all parts.",
               units.TEXT, lambda c: format_badge(c.quality), View.WIDE, width="medium"),
    ]  # fmt: skip
    return select(columns, cases, view)


def _share(case: Placed, kind: CeilingKind) -> float | None:
    ceiling = ceiling_of(case.ceilings, kind)
    return None if ceiling is None else ceiling.share_fraction


def _dram_bytes(case: Placed) -> int | None:
    call = call_counters(case.counters)
    return None if call is None else call.dram_bytes


def _if_stable(case: Placed, value: float | None) -> float | None:
    """A time with two levels is no number, and nothing follows from it: the quality says both."""
    return None if case.levels.unstable else value
