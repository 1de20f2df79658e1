"""Parallel coordinates of a tuning: a line for each configuration over an axis for each parameter and an axis of time."""

import math
from collections.abc import Callable, Sequence
from html import escape

import plotly.graph_objects as go

from kernelviz.core import Run, units
from kernelviz.core.configuration import format_value
from kernelviz.metrics.configurations import Configuration, ConfigurationSpace
from kernelviz.plots.configurations import (
    BEST,
    DEFAULT,
    HEIGHT,
    NO_TIME,
    NO_TUNING,
    POINT,
    hover_of_configuration,
    name_of_best,
    space_of,
)
from kernelviz.plots.frame import Draft, Props, neutral_line, nothing, shorten
from kernelviz.plots.variant_styles import NEUTRAL

_MOST_LINES = 60
"""Of each kind: more lines hide each other."""
_MOST_TICKS = 8
"""Values that are named on an axis."""
_VALUE_BACK = "#59636B"
"""Behind the white text of a value, on light and dark pages."""


def time_by_all_parameters(run: Run) -> go.Figure:
    """Parallel coordinates: a line for each configuration over an axis for each parameter with several values, and an axis of
    time, fast at the bottom. Of many configurations, the best ones and some of the slower ones are drawn, evenly spaced by their
    time."""
    space = space_of(run)
    if space is None:
        return nothing(NO_TUNING, height=HEIGHT)
    ranked = sorted(space.timed, key=lambda c: c.time_s or 0.0)
    axes = space.varying
    if not ranked or not axes:
        return nothing(NO_TIME if axes else "The configurations have one value of each parameter.", height=HEIGHT)
    draft = Draft(HEIGHT)
    best = [c for c in ranked if c.is_best]
    default = [c for c in ranked if c.is_default and not c.is_best]
    rest = [c for c in ranked if not (c.is_best or c.is_default)]
    tenth = max(1, len(rest) // 10)
    fast, slower = rest[: min(tenth, _MOST_LINES)], _spaced(rest[tenth:], _MOST_LINES)
    times = [c.time_s or 0.0 for c in ranked]
    height = _time_height(min(times), max(times))
    groups = (
        (slower, f"others (a sample, {len(slower)} of {len(rest) - tenth})" if len(slower) < len(rest) - tenth else "others",
         {"color": NEUTRAL, "width": 1}, 0.35),
        (fast, f"fastest tenth ({len(fast)})", {"color": POINT, "width": 1.5}, 0.8),
        (default, "default", {"color": DEFAULT, "width": 2.5, "dash": "dash"}, 1.0),
        (best, name_of_best(space), {"color": BEST, "width": 3.5}, 1.0),
    )  # fmt: skip
    draft.traces = [
        _lines(some, space, axes, name, line, opacity, height) for some, name, line, opacity in groups if some
    ]
    for place, axis in enumerate(axes):
        draft.line(x0=place, x1=place, y0=0, y1=1, line=neutral_line("solid", 1))
        _name_values(draft, space, axis, place)
    last = len(axes)
    draft.line(x0=last, x1=last, y0=0, y1=1, line=neutral_line("solid", 1))
    for time_s in (min(times), math.sqrt(min(times) * max(times)), max(times)):
        draft.note(units.seconds(time_s, 2), x=last, y=height(time_s), xanchor="left", xshift=4, font={"size": 10})
    draft.x_axis |= {
        "tickvals": list(range(last + 1)),
        "ticktext": [*(escape(shorten(axis, 14)) for axis in axes), "time"],
        "range": [-0.4, last + 0.5],
        "showgrid": False,
    }
    draft.y_axis |= {"visible": False, "range": [-0.06, 1.06]}
    draft.layout["hovermode"] = "closest"
    return draft.figure()


def _spaced(some: Sequence[Configuration], most: int) -> list[Configuration]:
    """At most so many, evenly spaced."""
    if len(some) <= most:
        return list(some)
    return [some[round(place * (len(some) - 1) / (most - 1))] for place in range(most)]


def _time_height(low: float, high: float) -> Callable[[float], float]:
    """The height of a time on its axis, 0 to 1, logarithmic."""
    if high <= low:
        return lambda _: 0.5
    return lambda time_s: math.log(max(time_s, low) / low) / math.log(high / low)


def _height_of_value(space: ConfigurationSpace, axis: str) -> dict[str, float]:
    values = space.parameters[axis]
    return {repr(value): place / max(1, len(values) - 1) for place, value in enumerate(values)}


def _lines(
    some: Sequence[Configuration],
    space: ConfigurationSpace,
    axes: Sequence[str],
    name: str,
    line: Props,
    opacity: float,
    height: Callable[[float], float],
) -> Props:
    heights = {axis: _height_of_value(space, axis) for axis in axes}
    xs: list[float | None] = []
    ys: list[float | None] = []
    hover: list[str] = []
    for configuration in some:
        text = hover_of_configuration(configuration)
        for place, axis in enumerate(axes):
            xs.append(place)
            ys.append(heights[axis].get(repr(configuration.values.get(axis))))
            hover.append(text)
        xs += [len(axes), None]
        ys += [height(configuration.time_s or 0.0), None]
        hover += [text, ""]
    return {
        "type": "scatter", "mode": "lines", "x": xs, "y": ys, "name": escape(name), "line": line, "opacity": opacity,
        "hovertext": hover, "hoverinfo": "text", "meta": {"table": False},
    }  # fmt: skip


def _name_values(draft: Draft, space: ConfigurationSpace, axis: str, place: int) -> None:
    """The values on an axis, each on a background of its own, because lines run through it. Of many, some that are
    evenly spaced, with the first and the last one."""
    heights = list(_height_of_value(space, axis).values())
    values = space.parameters[axis]
    count = min(len(values), _MOST_TICKS)
    chosen = sorted({round(n * (len(values) - 1) / max(1, count - 1)) for n in range(count)})
    for number in chosen:
        draft.note(
            f'<span style="color:#FFFFFF">{escape(shorten(format_value(values[number]), 8))}</span>', x=place,
            y=heights[number], xanchor="center", yanchor="middle", font={"size": 10}, bgcolor=_VALUE_BACK, borderpad=1,
        )  # fmt: skip
