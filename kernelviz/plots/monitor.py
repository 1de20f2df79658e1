"""Charts of the monitor: the device's reports of the last minutes in one panel per unit, and kernel times of recent runs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise

import plotly.graph_objects as go

from kernelviz.core import RunTimes, Sample, units
from kernelviz.plots.frame import GRID, decade_ticks, framed, neutral_line, nothing, shorten
from kernelviz.plots.variant_styles import COLOURS, NEUTRAL, styles_of
from kernelviz.text import format_variant

MOST_POINTS = 300
"""Longer lines are averaged: 3,600 samples of nine lines would be 600 KB every two seconds."""
_PANEL_PX = 96
_GAP_S = 5.0
"""A longer gap between samples breaks the line: sampling was off because no page was open."""
_CORES_APART = 16
"""Up to this many cores have a line each; with more, only the least and the most loaded core."""
_DASHES = (("solid", "—"), ("dot", "···"), ("dash", "- -"), ("dashdot", "-·-"))
"""Dashes of the lines of a panel, and the sign of each in the label of the panel."""
Value = Callable[[Sample], float | None]


@dataclass(frozen=True, slots=True)
class Line:
    """A quantity of a panel: its name, and its value in the panel's unit."""

    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Panel:
    """Quantities with the same unit. `top` is their natural maximum, if there is one; the axis then ends there."""

    unit: str
    lines: tuple[Line, ...]
    top: float | None = None


def _of(name: str, scale: float = 1.0) -> Value:
    """The value of a field of a sample, times `scale`."""
    return lambda sample: None if getattr(sample, name) is None else getattr(sample, name) * scale


def _core(number: int) -> Value:
    return lambda s: s.cores_fraction[number] * 100 if number < len(s.cores_fraction) else None


_GPU = (
    Panel(
        "%",
        (Line("SMs busy", _of("busy_fraction", 100)), Line("memory busy", _of("memory_busy_fraction", 100))),
        top=100,
    ),
    Panel("GiB", (Line("memory in use", _of("used_bytes", 2.0**-30)),)),
    Panel(
        "GB/s",
        (
            Line("PCIe to the device", _of("to_device_bytes_per_s", 1e-9)),
            Line("PCIe from the device", _of("from_device_bytes_per_s", 1e-9)),
        ),
    ),
    Panel("MHz", (Line("SM clock", _of("sm_clock_hz", 1e-6)), Line("memory clock", _of("memory_clock_hz", 1e-6)))),
    Panel("W", (Line("power", _of("power_w")),)),
    Panel("°C", (Line("temperature", _of("temperature_c")),)),
)


def _cpu(cores: int) -> tuple[Panel, ...]:
    mean = Line("mean load", _of("busy_fraction", 100))
    if cores <= _CORES_APART:
        each = tuple(Line(f"core {n}", _core(n)) for n in range(cores))
    else:
        each = (
            Line("least loaded core", lambda s: min(s.cores_fraction) * 100 if s.cores_fraction else None),
            Line("most loaded core", lambda s: max(s.cores_fraction) * 100 if s.cores_fraction else None),
        )
    return (
        Panel("%", (mean, *each), top=100),
        Panel("GiB", (Line("memory in use", _of("used_bytes", 2.0**-30)),)),
        Panel("MHz", (Line("clock", _of("sm_clock_hz", 1e-6)),)),
        Panel("°C", (Line("temperature", _of("temperature_c")),)),
    )


def panels(samples: Sequence[Sample], *, gpu: bool) -> tuple[tuple[Panel, ...], tuple[str, ...]]:
    """The panels with data, and the names of the quantities that the device does not report."""
    every = _GPU if gpu else _cpu(max((len(s.cores_fraction) for s in samples), default=0))
    known = {line for panel in every for line in panel.lines if any(line.value(s) is not None for s in samples)}
    visible = (replace(panel, lines=tuple(line for line in panel.lines if line in known)) for panel in every)
    unknown = tuple(line.name for panel in every for line in panel.lines if line not in known)
    return tuple(panel for panel in visible if panel.lines), unknown


def reports_by_time(samples: Sequence[Sample], *, gpu: bool, window_s: float = 300.0) -> go.Figure:
    """The samples of the last `window_s` seconds. Periods in which a measurement was running are shaded."""
    end_s = samples[-1].at_s if samples else 0.0
    recent = [s for s in samples if s.at_s > end_s - window_s]
    visible, _ = panels(recent, gpu=gpu)
    if not visible:
        return nothing("Waiting for the first sample, which takes about two seconds.", height=_PANEL_PX * 3)
    step = math.ceil(len(recent) / MOST_POINTS)
    # In the first minutes the axis is shorter, because a line of ten seconds would be invisible in five empty minutes.
    span_s = min(window_s, max(60.0, end_s - recent[0].at_s))
    times = [(s.at_s - end_s) / 60 for s in recent]
    traces = [
        _line(times, [line.value(s) for s in recent], line, panel, row, number, step)
        for row, panel in enumerate(visible, 1)
        for number, line in enumerate(panel.lines)
    ]
    # All panels in one step: adding them one by one, as make_subplots does, took 0.12 s per redraw.
    figure = framed(go.Figure(traces), height=_PANEL_PX * len(visible) + 46, x_title="minutes before now")
    figure.update_layout(
        showlegend=False,
        hovermode="x unified",
        margin={"t": 22},
        xaxis={"range": [-span_s / 60, 0.0], "anchor": _axis("y", len(visible))},
        annotations=[_label(row, len(visible), panel) for row, panel in enumerate(visible, 1)],
        shapes=[_shade(begin_s - end_s, stop_s - end_s) for begin_s, stop_s in measured_spans(recent)],
        **{_axis("yaxis", row): _y_axis(row, len(visible), panel) for row, panel in enumerate(visible, 1)},
    )
    return figure


def _axis(name: str, row: int) -> str:
    """The Plotly name of an axis: y, y2, y3."""
    return name if row == 1 else f"{name}{row}"


def _domain(row: int, rows: int) -> list[float]:
    """The part of the height that a panel has, counted from the top, with space for its label above it."""
    height = 1 / rows
    return [1 - row * height + 0.03 * height, 1 - (row - 1) * height - 0.22 * height]


def _y_axis(row: int, rows: int, panel: Panel) -> dict[str, object]:
    return {
        "domain": _domain(row, rows),
        "nticks": 4,
        "rangemode": "tozero",
        "gridcolor": GRID,
        "zeroline": False,
        "automargin": True,
        **({} if panel.top is None else {"range": [0, panel.top * 1.04]}),
    }


def _line(
    times: Sequence[float], values: Sequence[float | None], line: Line, panel: Panel, row: int, number: int, step: int
) -> dict[str, object]:
    x, y = thinned(times, values, step)
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "name": line.name,
        "yaxis": _axis("y", row),
        "line": {
            "color": COLOURS[number % len(COLOURS)],
            "width": 2 if number == 0 else 1.3,
            "dash": _DASHES[number % len(_DASHES)][0],
        },
        "hovertemplate": f"%{{y:.4g}} {panel.unit}",
    }


def thinned(
    times: Sequence[float], values: Sequence[float | None], step: int
) -> tuple[list[float], list[float | None]]:
    """Means of `step` neighbours, at the time of the last of them; a gap in time or an unknown value breaks the line.

    >>> thinned([0.0, 0.01, 0.02, 0.03], [1.0, 3.0, 5.0, None], 2)
    ([0.01, 0.03], [2.0, 5.0])
    """
    x: list[float] = []
    y: list[float | None] = []
    for begin in range(0, len(times), step):
        known = [v for v in values[begin : begin + step] if v is not None]
        end = min(begin + step, len(times)) - 1
        if x and (times[end] - x[-1]) * 60 > _GAP_S + step:
            x.append(x[-1])
            y.append(None)
        x.append(times[end])
        y.append(sum(known) / len(known) if known else None)
    return x, y


def _label(row: int, rows: int, panel: Panel) -> dict[str, object]:
    """The names of the lines of a panel with their dash patterns, so that colour is not needed to identify them."""
    few = panel.lines if len(panel.lines) <= 3 else panel.lines[:1]
    rest = "" if len(few) == len(panel.lines) else f"   ··· - - each of {len(panel.lines) - 1} cores"
    label = "   ".join(f"{sign} {escape(line.name)}" for (_, sign), line in zip(_DASHES, few, strict=False)) + rest
    return {
        "text": f"{label}, {panel.unit}",
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": _domain(row, rows)[1],
        "yref": "paper",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12},
    }


def _shade(begin_s: float, stop_s: float) -> dict[str, object]:
    return {
        "type": "rect",
        "xref": "x",
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "layer": "below",
        "line": {"width": 0},
        "x0": begin_s / 60,
        "x1": stop_s / 60,
        "fillcolor": NEUTRAL,
        "opacity": 0.18,
    }


def measured_spans(samples: Sequence[Sample]) -> list[tuple[float, float]]:
    """The spans of `at_s` in which a measurement was running.

    >>> measured_spans([Sample(at_s=1.0), Sample(at_s=2.0, running=True), Sample(at_s=3.0, running=True)])
    [(2.0, 3.0)]
    """
    spans: list[tuple[float, float]] = []
    for before, sample in pairwise((None, *samples)):
        if sample is not None and sample.running:
            continues = before is not None and before.running and sample.at_s - before.at_s <= _GAP_S
            begin_s = spans.pop()[0] if continues else sample.at_s
            spans.append((begin_s, sample.at_s))
    return spans


def times_by_run(runs: Sequence[RunTimes]) -> go.Figure:
    """A row for each run, newest at the top: a point for the time of each kernel in the style of its variant, and a bar over the
    middle half of the times."""
    visible = [r for r in runs if r.times_s]
    if not visible:
        return nothing("No kernel was timed on this device yet. Start a run on the page Bench.", height=120)
    scale_s, unit = units.common_time_unit([time_s for run in visible for _, time_s in run.times_s])
    figure = go.Figure()
    # Invisible characters make equal titles different categories.
    labels = [escape(shorten(run.title or run.op, 26)) + "\u200b" * number for number, run in enumerate(visible)]
    for label, run in zip(labels, visible, strict=True):
        ordered = sorted(time for _, time in run.times_s)
        low, high = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
        figure.add_trace(
            go.Scatter(x=[low / scale_s, high / scale_s], y=[label, label], mode="lines", hoverinfo="skip", opacity=0.45,
                       line={**neutral_line("solid"), "width": 9})
        )  # fmt: skip
        of_run = styles_of(run.op, (variant for variant, _ in run.times_s), run.variants)
        styles = [of_run[variant] for variant, _ in run.times_s]
        figure.add_trace(
            go.Scatter(
                x=[time / scale_s for _, time in run.times_s],
                y=[label] * len(run.times_s),
                mode="markers",
                marker={"color": [s.colour for s in styles], "symbol": [s.marker for s in styles], "size": 7},
                opacity=0.8,
                hovertext=[f"{escape(format_variant(v))}: {units.seconds(time)}" for v, time in run.times_s],
                hoverinfo="text",
            )
        )
    every = [time / scale_s for run in visible for _, time in run.times_s]
    framed(figure, height=64 + 34 * len(visible), x_title=f"kernel time, {unit}")
    values, names = decade_ticks(min(every) * 0.8, max(every) * 1.25, 1.0)
    # For a narrow range, Plotly chooses better ticks.
    figure.update_xaxes(type="log", **({"tickvals": values, "ticktext": names} if len(values) > 1 else {}))
    figure.update_yaxes(autorange="reversed", type="category", showgrid=False)
    figure.update_layout(showlegend=False, margin={"t": 8})
    return figure
