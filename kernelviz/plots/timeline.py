"""Timing diagram of one measurement: a bar for each activity of the device on one time axis."""

from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from kernelviz.core import Mark, MarkKind, Timeline, units
from kernelviz.plots.frame import framed, nothing
from kernelviz.plots.variant_styles import COLOURS, NEUTRAL

HEIGHT = 250
ITERATIONS = 2
"""The number of iterations that are drawn. A flush takes ten times as long as a short call, so with a third iteration the call
would be two pixels wide on a phone."""
LANES: dict[MarkKind, str] = {
    "poison": "fill output",
    "restore": "restore input",
    "flush": "flush L2",
    "call": "call",
    "marker": "end marker",
}
"""The label of each kind, in the order of an iteration."""
_COUNTED = COLOURS[0]
_LEAST_WIDTH = 0.006
"""Minimum width of a bar as a fraction of the axis, so that a marker of 1 µs is visible beside a flush of 45 µs."""


def marks_by_time(timeline: Timeline | None, iterations: int = ITERATIONS) -> go.Figure:
    """The first `iterations` of a timeline in µs. The sample is shaded, with its duration above it."""
    marks = _first(timeline, iterations) if timeline is not None else ()
    if timeline is None or not marks:
        return nothing("No timing diagram was recorded yet. The selftest records one.", height=HEIGHT)
    end_s = max(m.end_s for m in marks)
    counted = [c for c in timeline.counted[:iterations] if c[0] < end_s]
    lanes = [kind for kind in LANES if any(m.kind == kind for m in marks)]
    figure = go.Figure([_lane(kind, [m for m in marks if m.kind == kind], end_s) for kind in lanes])
    for number, (begin_s, stop_s) in enumerate(counted):
        _add_counted(figure, begin_s, stop_s, end_s, first=number == 0)
    framed(figure, height=HEIGHT - (len(LANES) - len(lanes)) * 26, x_title="time, µs")
    figure.update_xaxes(range=[-0.01 * end_s * 1e6, end_s * 1e6 * 1.01])
    figure.update_yaxes(
        autorange="reversed", showgrid=False, title_text="", type="category", tickvals=[LANES[k] for k in lanes]
    )
    figure.update_layout(showlegend=False, bargap=0.25, barmode="overlay", margin={"t": 44})
    return figure


def _first(timeline: Timeline, iterations: int) -> tuple[Mark, ...]:
    """The marks of the first iterations; an end marker closes each iteration."""
    ends = sorted(m.end_s for m in timeline.marks if m.kind == "marker")
    if len(ends) <= iterations:
        return timeline.marks
    return tuple(m for m in timeline.marks if m.end_s <= ends[iterations - 1])


def _lane(kind: MarkKind, marks: Sequence[Mark], end_s: float) -> go.Bar:
    is_call = kind == "call"
    return go.Bar(
        base=[m.start_s * 1e6 for m in marks],
        x=[max(m.end_s - m.start_s, _LEAST_WIDTH * end_s) * 1e6 for m in marks],
        y=[LANES[kind]] * len(marks),
        orientation="h",
        name=LANES[kind],
        marker={"color": _COUNTED if is_call else NEUTRAL, "line": {"width": 0}},
        opacity=1.0 if is_call else 0.75,
        hovertext=[_hover(m) for m in marks],
        hoverinfo="text",
    )


def _hover(mark: Mark) -> str:
    begin, length = units.seconds(mark.start_s), units.seconds(mark.end_s - mark.start_s)
    return f"<b>{LANES[mark.kind]}</b><br>{escape(mark.name[:80])}<br>{length}, starts at {begin}"


def _add_counted(figure: go.Figure, begin_s: float, stop_s: float, end_s: float, *, first: bool) -> None:
    """Add a band over all rows with a brace and the duration above it. Only the first has a name, because of space on a phone."""
    begin, stop = begin_s * 1e6, stop_s * 1e6
    figure.add_vrect(x0=begin, x1=stop, fillcolor=_COUNTED, opacity=0.18, line_width=0, layer="below")
    brace = {"type": "line", "xref": "x", "yref": "paper", "line": {"color": _COUNTED, "width": 2}}
    figure.add_shape(**brace, x0=begin, x1=stop, y0=1.03, y1=1.03)
    for x in (begin, stop):
        figure.add_shape(**brace, x0=x, x1=x, y0=0.99, y1=1.03)
    at_the_edge = stop_s > 0.8 * end_s
    figure.add_annotation(
        x=stop if at_the_edge else (begin + stop) / 2,
        y=1.05,
        yref="paper",
        yanchor="bottom",
        xanchor="right" if at_the_edge else "center",
        showarrow=False,
        text=f"{'counted: ' if first else ''}{units.seconds(stop_s - begin_s, 3)}",
        font={"size": 12},
    )


def describe_timeline(timeline: Timeline) -> str:
    """Alternative text of the diagram. A part of an iteration begins with its first kernel and ends with its last one.

    >>> mark = Mark(kind="call", name="k", start_s=3e-5, end_s=3.4e-5)
    >>> describe_timeline(Timeline(case="add", timer="cupti", marks=(mark,), counted=((3e-5, 3.4e-5),)))
    'Timing diagram of add by cupti: call 4.00 µs. Counted: 4.00 µs.'
    """
    first = _first(timeline, 1)
    lengths = [
        f"{name} {units.seconds(max(m.end_s for m in marks) - min(m.start_s for m in marks), 3)}"
        for kind, name in LANES.items()
        if (marks := [m for m in first if m.kind == kind])
    ]
    counted = ", ".join(units.seconds(stop - begin, 3) for begin, stop in timeline.counted[:ITERATIONS])
    return (
        f"Timing diagram of {timeline.case} by {timeline.timer}: {', '.join(lengths)}. Counted: {counted or 'nothing'}."
    )
