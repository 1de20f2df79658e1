"""The columns of workloads: the ladder of a run (a row per case), and the pairs of a comparison."""

from collections.abc import Iterable, Sequence

from kernelviz.core import units
from kernelviz.core.workload import Measured, WorkloadFigure, WorkloadResult, WorkloadRun, WorkloadValue
from kernelviz.metrics.workload_quality import WorkloadQuality, workload_quality
from kernelviz.metrics.workloads import WorkloadPair, WorkloadRow, interval_of, number, varying_axes
from kernelviz.tables.column import Column, Value, View, select
from kernelviz.text.quality import format_level
from kernelviz.text.text import Text
from kernelviz.text.verdicts import describe_verdict_reason
from kernelviz.text.workload_gains import (
    describe_verdict,
    describe_workload_quality,
    format_floor,
    format_gain,
    format_gain_beside_values,
    format_gain_by_medians,
    format_outcome,
    format_verdict,
)
from kernelviz.text.workloads import (
    MECHANICS_LABEL,
    MECHANICS_ONLY,
    SMALL_FRACTION,
    describe_method,
    describe_notes,
    describe_pair,
    figure_heading,
    format_axis_value,
    format_value,
)

GAIN_HELP = (
    "How many times better than the baseline at the same point, with its 95 % interval: the median of the ratios within rounds, "
    "where both have rounds in common. Above 1 is better. By the medians: the ratio of the two values of the table, where that "
    "is another number."
)
FLOOR_HELP = "By how much the baseline differs from itself, measured twice in the same rounds. A gain must clear it."
QUALITY_HELP = (
    "How far the headline can be trusted: the width of its interval, the noise floor, levels in time, and other processes on the "
    "GPU."
)
_VISIBLE = View.WIDE | View.TERMINAL | View.MARKDOWN
_LEADING = _VISIBLE | View.TIMES_NARROW
"""Of the columns that say which case a row is; the second table of the terminal repeats them."""


def ladder_columns(run: WorkloadRun, rows: Sequence[WorkloadRow], view: View) -> list[Column[WorkloadRow]]:
    """The columns of the ladder: the variant, the axes that vary, each figure, the gain and verdict of the headline, the gains of
    the other figures, and notes."""
    headline = run.declared.headline
    # A terminal is too narrow for all figures beside each other, so its second table has the others.
    other_figures = [figure for figure in run.declared.figures if figure.name != headline.name]
    columns: list[Column[WorkloadRow]] = [
        Column("variant", "Variant", "The way in which the work is done. The baseline has a star.", units.TEXT, _name, _LEADING),
        *(_axis_column(run, axis) for axis in varying_axes(run)),
        # The verdict comes first, because a phone has room for few columns.
        Column("verdict", "Verdict", f"Whether {headline.title} is better than the baseline's beyond the noise floor.",
               units.OWN_TEXT, lambda r: format_outcome(r, headline.name), _VISIBLE),
        Column("gain", "Gain", GAIN_HELP, units.OWN_NUMBER, lambda r: _gain(r, headline), View.WIDE | View.MARKDOWN, subject=""),
        Column("gain", "Gain", "", units.OWN_NUMBER, lambda r: _gain(r, headline, alone=True), View.TERMINAL, subject=""),
        _figure_column(headline, rows),
        Column("", "Noise floor", FLOOR_HELP, units.OWN_NUMBER, lambda r: format_floor(r.floor), _VISIBLE, optional=True),
        Column("", "Quality", QUALITY_HELP, units.OWN_TEXT, lambda r: _level(workload_quality(r, headline)), _VISIBLE,
               optional=True),
    ]  # fmt: skip
    columns.append(_gain_by_medians(headline))
    for figure in other_figures:
        columns.append(_figure_column(figure, rows))
        if any(figure.name in row.gains for row in rows):
            columns += [*_other_gain(figure), _gain_by_medians(figure)]
    columns += [
        Column("", "Reason", "Why the verdict is so.", units.TEXT, lambda r: _reason(r, headline), View.WIDE | View.MARKDOWN,
               width="large", optional=True),
        Column("", "Quality, why", "What stands behind the quality, if it is not good.", units.TEXT,
               lambda r: _why(workload_quality(r, headline)), View.WIDE | View.MARKDOWN, width="large", optional=True),
        Column("", "Notes", "What was observed while measuring, or why there is no value.", units.TEXT,
               lambda r: describe_notes(r) if _has_notes(r) else None, View.WIDE, width="large", optional=True),
        Column("", "Notes", "", units.TEXT, lambda r: describe_notes(r) if _has_notes(r) else None,
               View.MARKDOWN, optional=True),
        Column("", "Method", "What the headline was read from, and how many samples it has.", units.OWN_TEXT,
               lambda r: describe_method(r, headline.name) if r.value(headline.name) else None, View.WIDE, optional=True),
        Column("", "Restriction", str(MECHANICS_ONLY), units.OWN_TEXT,
               lambda r: MECHANICS_LABEL if r.result is not None and r.result.mechanics_only else None, View.WIDE | View.MARKDOWN,
               optional=True),
        Column("", "What it is", "", units.TEXT, lambda r: r.caption, View.WIDE, width="large"),
    ]  # fmt: skip
    return select(columns, rows, view)


def _name(row: WorkloadRow) -> str:
    return f"{row.case.variant} *" if row.is_baseline else row.case.variant


def _axis_column(run: WorkloadRun, name: str) -> Column[WorkloadRow]:
    axis = next(axis for axis in run.declared.axes if axis.name == name)
    return Column(
        name, "", axis.help, units.TEXT, lambda r: format_axis_value(r.case.values[name], axis), _LEADING,
        subject=axis.title, order=lambda r: _order(r, name),
    )  # fmt: skip


def _order(row: WorkloadRow, axis: str) -> float | None:
    value = row.case.values[axis]
    return float(value) if isinstance(value, int) else None


def _figure_column(figure: WorkloadFigure, rows: Sequence[WorkloadRow]) -> Column[WorkloadRow]:
    """The value with its interval, in one notation for all rows."""
    scientific = _is_scientific(figure, [row.value(figure.name) for row in rows])

    def whole(row: WorkloadRow) -> Text | None:
        value = row.value(figure.name)
        return None if value is None else format_value(value, figure.unit, scientific=scientific)

    view = _VISIBLE if figure.headline else View.WIDE | View.MARKDOWN | View.TIMES_NARROW
    return Column(
        figure.name, "", str(figure_heading(figure)), units.OWN_NUMBER, whole, view, subject=figure.title,
        optional=not figure.headline,
    )  # fmt: skip


def _is_scientific(figure: WorkloadFigure, values: Iterable[WorkloadValue | None]) -> bool:
    """Whether counted values are written in powers of ten because one of them is too small for a percentage."""
    return figure.origin == "counted" and any(0 < abs(number(value) or 0.0) < SMALL_FRACTION for value in values)


def _other_gain(figure: WorkloadFigure) -> list[Column[WorkloadRow]]:
    """The gain of a figure that is no headline; in a narrow table without the ratio of the medians."""
    return [
        Column("", "Gain,", GAIN_HELP, units.OWN_NUMBER, lambda r: _gain(r, figure), View.WIDE | View.MARKDOWN,
               subject=figure.title, optional=True),
        Column("", "Gain,", "", units.OWN_NUMBER, lambda r: _gain(r, figure, alone=True), View.TIMES_NARROW,
               subject=figure.title, optional=True),
    ]  # fmt: skip


def _gain_by_medians(figure: WorkloadFigure) -> Column[WorkloadRow]:
    """The ratio of the medians in a narrow table, where it is another number than a gain."""
    return Column(
        "", "By the medians,", "", units.OWN_NUMBER, lambda r: format_gain_by_medians(r.gains.get(figure.name)),
        View.TIMES_NARROW, subject=figure.title, optional=True,
    )  # fmt: skip


def _gain(row: WorkloadRow, figure: WorkloadFigure, *, alone: bool = False) -> Text | None:
    """The gain with the ratio of the medians, or `alone`, where a table is too narrow for both."""
    if row.is_baseline and row.value(figure.name) is not None:
        return Text("1 (baseline)")
    gain = row.gains.get(figure.name)
    if gain is None:
        return None
    return format_gain(gain) if alone else format_gain_beside_values(gain)


def _level(quality: WorkloadQuality | None) -> Text | None:
    return None if quality is None else format_level(quality.level)


def _why(quality: WorkloadQuality | None) -> Text | None:
    return None if quality is None or not quality.reasons else describe_workload_quality(quality)


def _reason(row: WorkloadRow, headline: WorkloadFigure) -> Text | None:
    gain = row.gains.get(headline.name)
    return None if gain is None or gain.verdict is None else describe_verdict_reason(gain.verdict.reason)


def _has_notes(row: WorkloadRow) -> bool:
    return bool(str(describe_notes(row)))


def record(run: WorkloadRun, row: WorkloadRow) -> dict[str, Value]:
    """A case as plain values in SI base units, for data frames, CSV and JSON."""
    one: dict[str, Value] = {
        "run": run.id,
        "workload": run.plan.workload,
        "variant": row.case.variant,
        "baseline": row.is_baseline,
        **row.case.values,
    }
    for figure in run.declared.figures:
        value = row.value(figure.name)
        low, high = interval_of(value)
        one[figure.name] = number(value)
        if figure.origin == "measured":
            one[f"{figure.name}_low"], one[f"{figure.name}_high"] = low, high
            one[f"{figure.name}_samples"] = value.n if isinstance(value, Measured) else None
        if figure.better != "neither":
            gain = row.gains.get(figure.name)
            one[f"{figure.name}_gain"] = None if gain is None else gain.ratio.estimate
    headline = row.gains.get(run.declared.headline.name)
    one["verdict"] = str(format_verdict(headline)) or None
    one["verdict_reason"] = str(describe_verdict(headline)) or None
    one["noise_floor"] = row.floor
    one["gain_of_medians"] = None if headline is None else headline.of_values
    quality = workload_quality(row, run.declared.headline)
    one["quality"] = None if quality is None else quality.level
    one["quality_reason"] = str(describe_workload_quality(quality)) or None
    one["mechanics_only"] = row.result.mechanics_only if row.result is not None else None
    one["failure"] = row.result.failure.stage if row.result is not None and row.result.failure is not None else None
    one["notes"] = str(describe_notes(row))
    return one


def pair_columns(pairs: Sequence[WorkloadPair], run: WorkloadRun, view: View) -> list[Column[WorkloadPair]]:
    """The columns of a comparison: the case, the figure, both values, the gain of B over A, and the verdict with its reason."""
    kinds = {axis.name: axis for axis in run.declared.axes}
    varying = [
        axis for axis in kinds if len({str(pair.values.get(axis)) for pair in pairs}) > 1
    ]  # fmt: skip
    same = all(pair.variant_a == pair.variant_b for pair in pairs)
    columns: list[Column[WorkloadPair]] = [
        Column("variant", "Variant", "", units.TEXT,
               lambda p: p.variant_b if same else f"{p.variant_a} → {p.variant_b}", _VISIBLE),
        *(
            Column(axis, "", kinds[axis].help, units.TEXT,
                   lambda p, a=axis: format_axis_value(p.values[a], kinds[a]), _VISIBLE, subject=kinds[axis].title)  # type: ignore[misc]
            for axis in varying
        ),
        Column("figure", "Figure", "", units.TEXT, lambda p: p.figure.title, _VISIBLE),
        Column("a", "A", "The value in A, with its 95 % interval.", units.OWN_NUMBER,
               lambda p: _side(p, p.a), _VISIBLE),
        Column("b", "B", "The value in B, with its 95 % interval.", units.OWN_NUMBER,
               lambda p: _side(p, p.b), _VISIBLE),
        Column("gain", "Gain", "How many times better B is than A, with its 95 % interval. Above 1 is better.",
               units.OWN_NUMBER, lambda p: format_gain(p.gain) if p.gain else None, _VISIBLE),
        Column("ratio", "B / A", "The value in B divided by the value in A.", units.RATIO, lambda p: p.ratio, _VISIBLE),
        Column("verdict", "Verdict", "By the intervals of both; runs of different times are compared by their own noise.",
               units.OWN_TEXT, lambda p: format_verdict(p.gain) if p.gain and p.gain.verdict else None, _VISIBLE),
        Column("", "Noise floor", FLOOR_HELP, units.OWN_NUMBER,
               lambda p: format_floor(p.gain.verdict.floor) if p.gain and p.gain.verdict else None, _VISIBLE, optional=True),
        Column("reason", "Reason", "", units.TEXT, describe_pair, View.WIDE, width="large"),
    ]  # fmt: skip
    return select(columns, pairs, view)


def _side(pair: WorkloadPair, of: WorkloadResult) -> Text:
    """A value of a pair, in one notation for both."""
    name = pair.figure.name
    scientific = _is_scientific(pair.figure, [pair.a.values.get(name), pair.b.values.get(name)])
    return format_value(of.values.get(name), pair.figure.unit, scientific=scientific)


def pair_record(pair: WorkloadPair) -> dict[str, Value]:
    """A pair as plain values in SI base units."""
    judged = pair.gain.verdict if pair.gain is not None else None
    return {
        **pair.values,
        "variant_a": pair.variant_a,
        "variant_b": pair.variant_b,
        "figure": pair.figure.name,
        "a": number(pair.a.values.get(pair.figure.name)),
        "b": number(pair.b.values.get(pair.figure.name)),
        "ratio": pair.ratio,
        "gain": None if pair.gain is None else pair.gain.ratio.estimate,
        "gain_low": None if pair.gain is None else pair.gain.ratio.low,
        "gain_high": None if pair.gain is None else pair.gain.ratio.high,
        "verdict": None if judged is None else str(format_verdict(pair.gain)),
        "noise_floor": None if judged is None else judged.floor,
        "reason": str(describe_pair(pair)),
    }
