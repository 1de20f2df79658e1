"""The climb of a ladder: what each rung reaches, with the libraries and the roof as lines."""

from collections.abc import Iterator, Sequence
from html import escape, unescape

import plotly.graph_objects as go

from kernelviz.core import units
from kernelviz.metrics.ladder import BackendLadder, Ladder, Metric, Step
from kernelviz.metrics.ladder_summary import roof_value, value_of, wrong_value_of
from kernelviz.metrics.statistics import Interval
from kernelviz.plots.frame import Draft, Props, end_of_axis, folded, intervals, log_axis, nothing
from kernelviz.plots.variant_styles import BAD, NEUTRAL, Style, styles_of
from kernelviz.text.ladder import (
    METRICS,
    describe_gain,
    describe_library,
    format_backend,
    format_gain_short,
    format_roof,
    format_value,
)
from kernelviz.text.quality import format_badge_of
from kernelviz.text.results import format_variant
from kernelviz.text.times import format_time
from kernelviz.text.verdicts import format_verdict

_ROW_PX, _FRAME_PX, _LEGEND_PX, _AXIS_PX = 30, 96, 22, 50
_LETTER_PX, _LABELS_SHIFT_PX = 6, 8
"""The width of a letter of the labels, which have a margin of their own on the right, so that a phone does not cut them."""
_LOG_FROM, _LOG_SPACE = 20.0, 1.5
"""From this ratio of the largest to the smallest value on, the axis is logarithmic."""
_MOST_OF_AXIS = 1e6
_HOVER_LETTERS = 66
_DASHES = ("dash", "dot", "dashdot", "longdash", "longdashdot")
_MOST_LIBRARIES = len(_DASHES)
_RATES = ((1e12, "T"), (1e9, "G"), (1e6, "M"))
_NAMES: dict[Metric, str] = {"bandwidth": "B/s", "rate": "FLOP/s"}


def value_by_step(
    ladder: Ladder, backend: str | None = None, metric: Metric | None = None, *, chosen: str | None = None
) -> go.Figure:
    """A row for each rung of a backend's ladder (by default the longest), from the first at the top to the last: its value as a
    marker with its interval, joined by a line, and its gain over the rung before it. Vertical lines are the libraries and the
    roof. A wrong result is a cross that no line reaches; a rung without a result has a label only. `chosen`: the variant that
    the page describes. The axis is logarithmic, and says so, where the values differ by a factor of 20.
    """
    of = ladder.main if backend is None else ladder.of(backend)
    by = metric or ladder.metric
    if of is None or not of.steps:
        return nothing("This op has no ladder at this size.", height=_FRAME_PX + 2 * _ROW_PX)
    values = {step.variant: value_of(step.row, by) for step in of.steps if step.correct}
    wrong = {
        step.variant: value_of(step.row, by) or wrong_value_of(step.row, by) for step in of.steps if not step.correct
    }
    lines = _lines(ladder, by)
    every = [v.estimate for v in (*values.values(), *wrong.values()) if v is not None] + [
        value for _, value, *_ in lines
    ]
    if not any(values.values()) and not any(wrong.values()):
        return nothing("No rung of this ladder has a correct time yet.", height=_FRAME_PX + 2 * _ROW_PX)
    scale, unit = _scale(by, every)
    logarithmic = max(every) > _LOG_FROM * min(every)
    title = f"{METRICS[by]}, {unit}{', logarithmic axis' if logarithmic else ''}"
    draft = Draft(_FRAME_PX + _ROW_PX * len(of.steps) + _LEGEND_PX * len(lines), x_title=title)
    styles = styles_of(ladder.problem.op, (step.variant for step in of.steps), ladder.run.plan.variants)
    draft.traces = [_climb(of, values, scale)]
    draft.traces += [_reference(line, len(of.steps), scale) for line in lines]
    draft.traces += [
        _marker(ladder, step, values.get(step.variant) or wrong.get(step.variant), styles[step.variant], scale)
        for step in of.steps
        if values.get(step.variant) or wrong.get(step.variant)
    ]
    labels = [_label(step, values.get(step.variant), by, scale) for step in of.steps]
    for place, label in enumerate(labels):
        draft.note(
            label, x=1, xref="paper", xanchor="left", xshift=_LABELS_SHIFT_PX, y=place, yref="y", font={"size": 12}, align="left",
        )  # fmt: skip
    right = 2 * _LABELS_SHIFT_PX + _LETTER_PX * max(len(unescape(label)) for label in labels)
    draft.layout["margin"] = {**draft.layout["margin"], "r": right}
    _axes(draft, of, every, values, scale, logarithmic=logarithmic, chosen=chosen)
    return draft.figure()


def _scale(metric: Metric, values: Sequence[float]) -> tuple[float, str]:
    """The unit of the axis, as its value in the base unit and its name: the largest that is not larger than the largest value."""
    if metric == "time":
        return units.time_unit(max(values))
    scale, prefix = next((one for one in _RATES if max(values) >= one[0]), _RATES[-1])
    return scale, f"{prefix}{_NAMES[metric]}"


def _axes(
    draft: Draft,
    of: BackendLadder,
    every: Sequence[float],
    values: dict[str, Interval | None],
    scale: float,
    *,
    logarithmic: bool,
    chosen: str | None,
) -> None:
    if logarithmic:
        low = max(min(every) / _LOG_SPACE, max(every) / _MOST_OF_AXIS)
        draft.x_axis |= log_axis(low / scale, max(every) / scale * _LOG_SPACE)
    else:
        ends = [value.high / scale for value in values.values() if value is not None and value.high is not None]
        draft.x_axis["range"] = [0, end_of_axis(max(every) / scale, 1.06, ends)]
    draft.y_axis |= {
        "range": [len(of.steps) - 0.5, -0.5],
        "tickvals": list(range(len(of.steps))),
        "ticktext": [_name(step, chosen) for step in of.steps],
        "showgrid": False,
    }
    draft.layout["showlegend"] = True
    # Below the title of the axis, in parts of the plot's height.
    draft.layout["legend"] = {**draft.layout["legend"], "y": -_AXIS_PX / (_ROW_PX * len(of.steps)), "orientation": "v"}


def _name(step: Step, chosen: str | None) -> str:
    name = f"{step.number} {escape(format_variant(step.variant))}"
    return f"<b>{name}</b>" if step.variant == chosen else name


def _climb(of: BackendLadder, values: dict[str, Interval | None], scale: float) -> Props:
    """The line through all correct rungs, in order."""
    points = [(place, values[s.variant]) for place, s in enumerate(of.steps) if s.variant in values]
    known = [(place, value) for place, value in points if value is not None]
    return {
        "type": "scatter",
        "x": [value.estimate / scale for _, value in known],
        "y": [place for place, _ in known],
        "mode": "lines",
        "line": {"color": NEUTRAL, "width": 2},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _lines(ladder: Ladder, metric: Metric) -> list[tuple[str, float, str, str]]:
    """The libraries, the fastest first, and the roof: text of the legend, value, dash and hover text."""
    lines = []
    for number, row in enumerate(ladder.libraries[:_MOST_LIBRARIES]):
        value = value_of(row, metric)
        if value is not None:
            name = f"{format_variant(row.result.variant)}, library: {format_value(value, metric)}"
            lines.append((name, value.estimate, _DASHES[number], str(describe_library(row, metric))))
    roof, named = roof_value(ladder, metric), format_roof(ladder, metric)
    if roof is not None and named is not None:
        lines.append((named, roof, "solid", named))
    return lines


def _reference(line: tuple[str, float, str, str], rows: int, scale: float) -> Props:
    name, value, dash, text = line
    return {
        "type": "scatter",
        "x": [value / scale] * 2,
        "y": [-0.5, rows - 0.5],
        "name": escape(name),
        "mode": "lines",
        "line": {"color": NEUTRAL, "dash": dash, "width": 1.5},
        "hovertext": [escape(text)] * 2,
        "hoverinfo": "text",
        "legendrank": 1 if dash != "solid" else 2,
    }


def _marker(ladder: Ladder, step: Step, value: Interval | None, style: Style, scale: float) -> Props:
    assert value is not None
    place = step.number - 1
    correct = step.correct
    marker: Props = {"color": style.colour, "symbol": style.marker, "size": 11}
    if not correct:
        marker = {"color": BAD, "symbol": "x-thin", "size": 11, "line": {"color": BAD, "width": 2}}
    return {
        "type": "scatter",
        "x": [value.estimate / scale],
        "y": [place],
        "name": escape(format_variant(step.variant)),
        "mode": "markers",
        "marker": marker,
        "error_x": intervals([value.estimate], [(value.low, value.high)], NEUTRAL, scale=scale, width=4),
        "customdata": [step.variant],
        "hovertext": ["<br>".join(_hover(ladder, step))],
        "hoverinfo": "text",
        "showlegend": False,
    }


def _hover(ladder: Ladder, step: Step) -> Iterator[str]:
    """A few lines, because a larger box hides the chart; the list of rungs and the page Bench have the rest."""
    yield f"<b>{escape(format_variant(step.variant))}</b>"
    row = step.row
    if row is None:
        yield from folded(str(describe_gain(step)), _HOVER_LETTERS)
        return
    time, digits = row.figure or row.wrong_figure, units.digits_of(row.half_width)
    known = (
        "" if time is None else str(format_time(time)),
        "" if row.rate_flop_per_s is None else units.rate(row.rate_flop_per_s, "FLOP/s", digits),
        "" if row.efficiency is None else f"{units.percent(row.efficiency)} of the measured roof",
        "the result is wrong" if time is not None and row.figure is None else "",
    )
    yield from folded(" · ".join(filter(None, known)), _HOVER_LETTERS)
    yield from folded(str(describe_gain(step)), _HOVER_LETTERS)
    if row.verdict is not None:
        baseline = format_variant(ladder.run.plan.baseline)
        yield from folded(f"Against {baseline}: {format_verdict(row.verdict)}", _HOVER_LETTERS)
    if time is not None:
        yield escape(str(format_badge_of(row.result, ladder.headline, ladder.run.method.clock)))


def _label(step: Step, value: Interval | None, metric: Metric, scale: float) -> str:
    """The value and the gain."""
    said = escape(str(format_gain_short(step)))
    if value is None:
        return said
    number = units.seconds(value.estimate, 3) if metric == "time" else units.significant(value.estimate / scale, 3)
    return f"{escape(number)} · {said}" if step.gain is not None else escape(number)


def title_of(of: BackendLadder, metric: Metric) -> str:
    """The title of the chart.

    >>> title_of(BackendLadder("cuda", ()), "rate")
    'Ladder of CUDA C++: arithmetic rate by rung'
    """
    return f"Ladder of {format_backend(of.backend)}: {METRICS[metric]} by rung"
