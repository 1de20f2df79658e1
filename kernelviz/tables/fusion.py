"""The columns of what fusing saves: one row for each composition at each problem."""

from collections.abc import Sequence

from kernelviz.core import units
from kernelviz.metrics.fusion import FusionRow
from kernelviz.metrics.fusion_reasons import MOST_FACTOR
from kernelviz.tables.column import Column, View, select
from kernelviz.text import Text, format_problem, format_sizes, format_variant
from kernelviz.text.fusion import (
    FAMILIES,
    METHOD_A,
    METHOD_B,
    count_launches,
    describe_missing,
    format_error,
    format_measured,
    format_speed_up,
    format_steps,
    join_reasons,
)
from kernelviz.text.times import format_time

_ERROR_HELP = (
    "By how much the predicted speed-up is above (+) or below (−) the measured one. Where they differ by a factor of more than "
    f"{MOST_FACTOR:.2f}, a reason is given."
)
_PREDICTED = View.WIDE | View.TERMINAL


def fusion_columns(rows: Sequence[FusionRow], view: View) -> list[Column[FusionRow]]:
    """The columns; device and family only if there are several."""
    devices = len({row.device for row in rows}) > 1
    families = len({row.family for row in rows}) > 1
    narrow = View.TERMINAL
    columns: list[Column[FusionRow]] = [
        Column("", "Family", "", units.OWN_TEXT, lambda r: FAMILIES[r.family], View.WIDE if families else View(0)),
        Column("", "Device", "", units.TEXT, lambda r: r.device, View.EVERYWHERE if devices else View(0)),
        Column("", "Case", "", units.TEXT, lambda r: format_problem(r.problem), narrow),
        Column("", "Sizes", "", units.TEXT, lambda r: format_sizes(r.problem), View.WIDE, width="medium"),
        Column("", "Verdict", "Whether the fused variant is faster than the steps, beyond the noise floor.", units.OWN_TEXT,
               lambda r: r.verdict.kind if r.verdict else None, _PREDICTED),
        Column("", "Measured", "Time of the steps divided by the time of the fused variant, in shared rounds or by those of each "
               "with the baseline, with its 95 % interval. The two times of the row are over all rounds; their ratio is given "
               "where it is outside of the interval.", units.OWN_NUMBER, format_measured, View.WIDE),
        Column("", "Measured", "", units.OWN_NUMBER, lambda r: format_speed_up(r.speed_up), narrow),
        Column("", "Not fused", "The variant that launches the steps one after the other.", units.TEXT,
               lambda r: format_variant(r.unfused.variant), View.WIDE),
        Column("", "Not fused", "", units.TEXT, lambda r: r.unfused.variant, narrow),
        Column("", "Fused", "The fastest fused variant with a correct result.", units.TEXT,
               lambda r: format_variant(r.fused.variant) if r.fused else "none is correct", View.WIDE),
        Column("", "Fused", "", units.TEXT, lambda r: r.fused.variant if r.fused else "none is correct", narrow),
        Column("", "Prediction B", METHOD_B, units.OWN_NUMBER, lambda r: _predicted(r.predicted_b, r.b), _PREDICTED),
        Column("", "Error B", _ERROR_HELP, units.OWN_NUMBER, lambda r: format_error(r.error_b), _PREDICTED),
        Column("", "Prediction A", METHOD_A, units.OWN_NUMBER, lambda r: _predicted(r.predicted_a, r.a), _PREDICTED),
        Column("", "Error A", _ERROR_HELP, units.OWN_NUMBER, lambda r: format_error(r.error_a), _PREDICTED),
        Column("", "Not fused time", "Device time of the steps with cold caches, with its 95 % interval.", units.OWN_NUMBER,
               lambda r: format_time(r.unfused_figure), View.WIDE),
        Column("", "Fused time", "Its device time with cold caches, with its 95 % interval.", units.OWN_NUMBER,
               lambda r: format_time(r.fused_figure), View.WIDE),
        Column("", "Intermediate", "The smallest tensor between two steps.", units.TRAFFIC, lambda r: r.intermediate_bytes,
               View.WIDE),
        Column("", "Of cache", "That tensor divided by the last-level cache. From 4 on, it passes through memory whole.",
               units.FACTOR, lambda r: r.intermediate_bytes / r.cache_bytes if r.cache_bytes else None, View.WIDE),
        Column("", "Saved bytes", "Bytes that one kernel neither writes nor reads again.", units.TRAFFIC,
               lambda r: r.saved.moved_bytes, View.WIDE),
        Column("", "Saved launches", "Kernels, and memsets of the driver, that one kernel saves.", units.OWN_NUMBER,
               lambda r: count_launches(r.saved.launches, r.saved.memsets), View.WIDE),
        Column("", "Why B fails", "Facts that prediction B does not contain.", units.OWN_TEXT,
               lambda r: join_reasons(r.reasons_b), View.WIDE, width="large"),
        Column("", "Why A fails", "Facts that prediction A does not contain.", units.OWN_TEXT,
               lambda r: join_reasons(r.reasons_a), View.WIDE, width="large"),
        Column("", "Steps", "What its kernels compute, in order.", units.OWN_TEXT, lambda r: format_steps(r.steps), View.WIDE,
               width="medium"),
    ]  # fmt: skip
    return select(columns, rows, view)


def _predicted(value: float | None, prediction: object) -> Text:
    if value is not None:
        return Text(f"{units.factor(value)} ×")
    return describe_missing(prediction)  # type: ignore[arg-type]
