"""The chart of a workload: bars by variant, lines by an axis, or a timeline of two lanes, as its declaration says."""

from collections.abc import Sequence
from html import escape
from math import log10

import plotly.graph_objects as go

from kernelviz.core import units
from kernelviz.core.workload import FigureUnit, Lane, Timeline, WorkloadFigure, WorkloadRun
from kernelviz.metrics.workloads import WorkloadRow, interval_of, number, points, rows
from kernelviz.plots.frame import Draft, Props, decade_ticks, end_of_axis, evenly_spaced, intervals, nothing
from kernelviz.plots.variant_styles import COLOURS, MARKERS, NEUTRAL
from kernelviz.text.failures import format_stage
from kernelviz.text.workload_gains import format_gain_beside_values
from kernelviz.text.workloads import describe_notes, format_axis_value, format_estimate, format_value

HEIGHT = 380
_ROW_PX, _FRAME_PX = 34, 96
_LABELS_FROM = 0.74
_MOST_TICKS = 6
_MOST_SPANS = 2000
_DASHES = ("solid", "dash", "dot")
LANES: dict[Lane, str] = {"compute": "compute", "communication": "communication"}
_LANE_COLOURS: dict[Lane, str] = {"compute": COLOURS[0], "communication": COLOURS[1]}
_HIDDEN = "No case of this run has this figure yet. Measure the workload."


def style_of_variant(run: WorkloadRun, variant: str) -> tuple[str, str]:
    """The colour and marker of a variant: by its position in the declaration, so that they are the same in every run."""
    names = [one.name for one in run.declared.variants]
    place = names.index(variant) if variant in names else len(names)
    return COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]


def scale_of(values: Sequence[float], unit: FigureUnit) -> tuple[float, str]:
    """The factor and the name of a unit that suits these values.

    >>> scale_of([2e-3], "s"), scale_of([3 * 2**30], "B"), scale_of([2e11], "B/s"), scale_of([0.2], "fraction")
    ((0.001, 'ms'), (1073741824, 'GiB'), (1000000000.0, 'GB/s'), (0.01, '%'))
    """
    most = max((abs(v) for v in values), default=0.0)
    match unit:
        case "s":
            return units.time_unit(most) if most else (1.0, "s")
        case "B":
            binary = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
            return next(((scale, name) for scale, name in binary if most >= scale), (1, "B"))
        case "B/s":
            decimal = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"))
            return next(((scale, name) for scale, name in decimal if most >= scale), (1.0, "B/s"))
        case "fraction":
            return (0.01, "%") if most >= 1e-3 else (1.0, "")
        case "1/s":
            return 1.0, "/s"
        case "x":
            return 1.0, "×"
        case "count" | "number":
            return 1.0, ""


def value_by_variant(run: WorkloadRun, point: str | None = None, figure: str | None = None) -> go.Figure:
    """A bar for each variant at a point (None: the last one), with its interval, its value and its gain. A case without a value
    has a label with the reason only."""
    chosen = run.declared.figure_named(figure or "") or run.declared.headline
    at = point if point is not None else next(reversed(points(run)), None)
    listed = [row for row in rows(run, point=at) if row.result is not None]
    if not listed:
        return nothing(_HIDDEN, height=_FRAME_PX + 2 * _ROW_PX)
    values = [number(row.value(chosen.name)) for row in listed]
    known = [v for v in values if v is not None]
    scale, unit = scale_of(known, chosen.unit)
    draft = Draft(_FRAME_PX + _ROW_PX * len(listed), x_title=f"{chosen.title}{f', {unit}' if unit else ''}")
    for row, value in zip(listed, values, strict=True):
        draft.traces.append(_bar(run, row, value, chosen, scale))
        draft.note(
            _label(row, chosen), x=_LABELS_FROM, xref="paper", xanchor="left", y=_name(row), yref="y", font={"size": 12}
        )
    ends = [end / scale for row in listed if (end := interval_of(row.value(chosen.name))[1]) is not None]
    least = min([0.0, *known]) / scale
    draft.x_axis |= {
        "domain": [0, _LABELS_FROM - 0.02],
        "range": [least * 1.1, end_of_axis((max(known, default=0.0) or scale) / scale, 1.1, ends)],
        "visible": bool(known),
    }
    draft.y_axis |= {"autorange": "reversed", "showgrid": False, "type": "category"}
    draft.layout["showlegend"] = False
    return draft.figure()


def _name(row: WorkloadRow) -> str:
    return escape(f"{row.case.variant} *" if row.is_baseline else row.case.variant)


def _bar(run: WorkloadRun, row: WorkloadRow, value: float | None, figure: WorkloadFigure, scale: float) -> Props:
    return {
        "type": "bar",
        "orientation": "h",
        "x": [0 if value is None else value / scale],
        "y": [_name(row)],
        "name": _name(row),
        "width": 0.62,
        "marker": {"color": style_of_variant(run, row.case.variant)[0]},
        "error_x": intervals([value], [interval_of(row.value(figure.name))], NEUTRAL, scale=scale, width=4),
        "customdata": [row.case.variant],
        "hovertext": [_hover(row, figure)],
        "hoverinfo": "text",
    }


def _label(row: WorkloadRow, figure: WorkloadFigure) -> str:
    value = row.value(figure.name)
    if value is None:
        failure = row.result.failure if row.result is not None else None
        return escape(f"✕ {format_stage(failure)}" if failure is not None else "not measured")
    gain = row.gains.get(figure.name)
    ratio = None if gain is None else gain.ratio
    more = "" if ratio is None else f" · {units.factor(ratio.estimate, ratio.low, ratio.high)} ×"
    return escape(f"{format_estimate(value, figure.unit)}{more}")


def _hover(row: WorkloadRow, figure: WorkloadFigure) -> str:
    gain = row.gains.get(figure.name)
    lines = [
        f"<b>{escape(row.case.variant)}</b>",
        escape(f"{figure.title}: {format_value(row.value(figure.name), figure.unit)}"),
        *([escape(f"gain over the baseline: {format_gain_beside_values(gain)}")] if gain is not None else []),
        *([escape(str(describe_notes(row))[:200])] if row.result is not None and row.result.notes else []),
    ]
    return "<br>".join(lines)


def values_by_axis(run: WorkloadRun, axis: str, figures: Sequence[str] = (), at: str | None = None) -> go.Figure:
    """A line for each variant and figure by an axis. The figures have one unit; the second one is dashed. `at`: a point whose
    other axes are kept; None: the last one."""
    declared = next((one for one in run.declared.axes if one.name == axis), None)
    listed = [f for name in figures if (f := run.declared.figure_named(name)) is not None] or [run.declared.headline]
    listed = [f for f in listed if f.unit == listed[0].unit]
    of = _line_rows(run, axis, at)
    known = [v for row in of for f in listed if (v := number(row.value(f.name))) is not None]
    if declared is None or not known:
        return nothing(_HIDDEN, height=HEIGHT)
    scale, unit = scale_of(known, listed[0].unit)
    draft = Draft(HEIGHT, x_title=declared.title, y_title=f"{_title(listed)}{f', {unit}' if unit else ''}")
    for variant in dict.fromkeys(row.case.variant for row in of):
        for number_of, figure in enumerate(listed):
            if not any(row.value(figure.name) for row in of if row.case.variant == variant):
                continue  # a figure that is stated with one variant only
            draft.traces.append(
                _line(run, [r for r in of if r.case.variant == variant], axis, figure, scale, number_of, len(listed))
            )
    ticks = list(dict.fromkeys(row.case.values[axis] for row in of))
    whole = [t for t in ticks if isinstance(t, int)]
    if len(whole) == len(ticks) and whole:
        labelled = evenly_spaced(sorted(whole), _MOST_TICKS)
        labels = [str(format_axis_value(t, declared)) for t in labelled]
        # With 0 on it (no workers, say), an axis cannot be logarithmic.
        wide = min(whole) > 0 and max(whole) >= 16 * min(whole)
        draft.x_axis |= {"tickvals": labelled, "ticktext": labels} | ({"type": "log"} if wide else {})
    positive = [v for v in known if v > 0]
    if len(positive) == len(known) and max(positive) > 20 * min(positive):
        low, high = min(positive) / scale / 1.3, max(positive) / scale * 1.3
        at_ticks, texts = decade_ticks(low, high, 1.0)
        draft.y_axis |= {"type": "log", "range": [log10(low), log10(high)], "tickvals": at_ticks, "ticktext": texts}
    else:
        draft.y_axis |= {"rangemode": "tozero"}
    return draft.figure()


def _title(figures: Sequence[WorkloadFigure]) -> str:
    return " and ".join(figure.title for figure in figures)


def _line_rows(run: WorkloadRun, axis: str, at: str | None) -> list[WorkloadRow]:
    """The cases at all values of the axis, with the other axes as at a point."""
    by_key = points(run)
    fixed = by_key.get(at or "") or next(reversed(by_key.values()), {})
    same = {name: value for name, value in fixed.items() if name != axis}
    return [row for row in rows(run) if {k: v for k, v in row.case.values.items() if k != axis} == same]


def _line(
    run: WorkloadRun, of: Sequence[WorkloadRow], axis: str, figure: WorkloadFigure, scale: float, place: int, count: int
) -> Props:
    with_value = [row for row in of if row.value(figure.name) is not None]
    colour, marker = style_of_variant(run, of[0].case.variant)
    values = [number(row.value(figure.name)) for row in with_value]
    name = escape(of[0].case.variant) + (f", {escape(figure.title.lower())}" if count > 1 else "")
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [row.case.values[axis] for row in with_value],
        "y": [None if value is None else value / scale for value in values],
        "name": name,
        "line": {"color": colour, "width": 2, "dash": _DASHES[place % len(_DASHES)]},
        "marker": {"color": colour, "symbol": marker, "size": 8},
        "error_y": intervals(values, [interval_of(row.value(figure.name)) for row in with_value], colour, scale=scale),
        "customdata": [row.case.point for row in with_value],
        "hovertext": [f"{_hover(row, figure)}<br>{escape(str(row.case.values[axis]))}" for row in with_value],
        "hoverinfo": "text",
    }


def lanes_by_time(timeline: Timeline | None, title: str = "") -> go.Figure:
    """What a device computed and communicated during one step, a lane each, by the device's own stamps."""
    if timeline is None or not timeline.spans:
        return nothing("No timeline was recorded for this case.", height=220)
    longest = sorted(timeline.spans, key=lambda span: span.start_s - span.end_s)[:_MOST_SPANS]
    spans = sorted(longest, key=lambda span: span.start_s)
    end_s = max(span.end_s for span in timeline.spans)
    scale, unit = units.time_unit(end_s or 1.0)
    draft = Draft(220, x_title=f"time, {unit}" + (f" ({title})" if title else ""))
    for lane, label in LANES.items():
        of = [span for span in spans if span.lane == lane]
        draft.traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "base": [span.start_s / scale for span in of],
                "x": [(span.end_s - span.start_s) / scale for span in of],
                "y": [label] * len(of),
                "name": label,
                "width": 0.6,
                "marker": {"color": _LANE_COLOURS[lane], "line": {"width": 0}},
                "hovertext": [
                    f"<b>{label}</b><br>{escape(span.name[:80])}<br>{units.seconds(span.end_s - span.start_s)}, starts at "
                    f"{units.seconds(span.start_s)}"
                    for span in of
                ],
                "hoverinfo": "text",
            }
        )
    draft.x_axis |= {"range": [0, end_s / scale * 1.01]}
    draft.y_axis |= {"type": "category", "autorange": "reversed", "showgrid": False, "tickvals": list(LANES.values())}
    draft.layout |= {"showlegend": False, "barmode": "overlay"}
    return draft.figure()


def chart_of(
    run: WorkloadRun, *, point: str | None = None, variant: str | None = None, figure: str | None = None
) -> go.Figure:
    """The chart that the workload declares. `variant`: of a timeline, whose it is; None: the first one that has one. `figure`: of
    bars or lines; None, or the first one that the chart declares: all that it declares."""
    chart = run.declared.chart
    figures = chart.figures or (run.declared.headline.name,)
    if figure is not None and figure != figures[0]:
        figures = (figure,)
    match chart.kind:
        case "bars" | "memory":
            return value_by_variant(run, point, figures[0])
        case "lines" | "workers":
            axis = chart.axis or (run.declared.axes[0].name if run.declared.axes else "")
            return values_by_axis(run, axis, figures, point)
        case "lanes":
            row = row_with_timeline(run, point, variant)
            if row is None or row.result is None:
                return lanes_by_time(None)
            return lanes_by_time(row.result.timeline, row.case.variant)


def row_with_timeline(run: WorkloadRun, point: str | None = None, variant: str | None = None) -> WorkloadRow | None:
    """The case whose timeline is drawn; None if none has one."""
    listed = [row for row in rows(run, point=point) if row.result is not None and row.result.timeline is not None]
    return next((row for row in listed if row.case.variant == variant), listed[0] if listed else None)
