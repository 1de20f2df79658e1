"""The configurations of a tuning: time by one parameter and by registers, the best so far, and failures by reason.

The best configuration is a star and the default a diamond, each with a line at its time and a label beside the plot, where no
point is. An open circle is the time of one block of a
configuration that was stopped early. What has no time is a cross above the times.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Literal

import plotly.graph_objects as go

from kernelviz.core import Run, units
from kernelviz.core.code_facts import CaseFacts
from kernelviz.core.configuration import configuration_text, format_value
from kernelviz.metrics.configurations import (
    Configuration,
    ConfigurationSpace,
    RunningBest,
    configuration_space,
    running_best,
    with_code_facts,
)
from kernelviz.metrics.parameter_effects import parameter_effects
from kernelviz.plots.frame import MOST_SVG_POINTS, Draft, Props, folded, log_axis, nothing, shorten
from kernelviz.plots.variant_styles import NEUTRAL
from kernelviz.text import format_failure
from kernelviz.text.configurations import LIMITS, describe_time, format_share

HEIGHT, LOW = 380, 260
POINT, BEST, DEFAULT, _FAILED = "#4C78A8", "#D9730D", "#8A6FD1", "#DC4A4A"
NO_TUNING = "This run is no tuning, so it has no configurations."
NO_TIME = "No configuration has a correct time yet."
_SPACE, _BELOW = 1.12, 1.18
"""Of the axis of times, above the longest and below the shortest."""
_JITTER = 0.3
"""Points with the same value of a parameter are spread over so much of the distance to the next value, on either side."""
_REASON_LETTERS = 34
"""Of a reason beside its bar, so that it fits on a phone."""
_LETTER_PX = 6.5
"""Of a name beside the plot."""
_FEW = 10
"""Up to so many failures, the axis has a tick at each whole number."""
Progress = Literal["configurations", "time"]
Side = Literal["above", "on", "below"]
_SIDES: Mapping[Side, Props] = {
    "above": {"yanchor": "bottom", "yshift": -6},
    "on": {"yanchor": "middle"},
    "below": {"yanchor": "top", "yshift": 6},
}
"""The place of a name beside a line."""


def time_by_parameter(run: Run, parameter: str | None = None) -> go.Figure:
    """Cold device time (of another tool's file: its time) by the value of one parameter, by default the one that explains most.

    Values are equally spaced, in their order, because most spaces are powers of two. The points of a value are spread sideways.
    """
    space = space_of(run)
    if space is None:
        return nothing(NO_TUNING, height=HEIGHT)
    name = parameter if parameter in space.parameters else _most_worth(space)
    if name is None or not (space.timed or space.untimed):
        return nothing(NO_TIME, height=HEIGHT)
    values = {repr(value): place for place, value in enumerate(space.parameters[name])}

    def x(configuration: Configuration) -> float | None:
        place = values.get(repr(configuration.values.get(name)))
        return None if place is None else place + _sideways(configuration.place)

    draft = _scatter(space, x, name)
    draft.x_axis |= {
        "tickvals": [*values.values()],
        "ticktext": [escape(shorten(format_value(v), 12)) for v in space.parameters[name]],
        "range": [-0.6, len(values) - 0.4],
        "showgrid": False,
    }
    draft.layout["meta"] = {"x": {"spread": True, "labels": [format_value(v) for v in space.parameters[name]]}}
    return draft.figure()


def time_by_registers(run: Run, facts: Sequence[CaseFacts] = ()) -> go.Figure:
    """Time by registers per thread. A triangle is a configuration whose code spills to local memory. `facts`: of the machine
    code; without them, registers are those that the driver allocated, and spills are known only where the tracer said so."""
    space = space_of(run)
    if space is None:
        return nothing(NO_TUNING, height=HEIGHT)
    space = with_code_facts(space, facts)
    known = [c for c in space.timed if c.registers is not None]
    if not known:
        return nothing("The registers of no configuration with a time are known.", height=HEIGHT)
    draft = _scatter(
        space,
        lambda c: None if c.registers is None else c.registers + _sideways(c.place),
        "registers per thread",
        split=lambda c: "uses local memory (spills)" if c.spilled else "",
    )
    least, most = (pick(c.registers or 0 for c in known) for pick in (min, max))
    draft.x_axis |= {"range": [least - 4, most + 4]}
    draft.layout["meta"] = {"x": {"spread": True}}
    return draft.figure()


def best_time_by_progress(run: Run, along: Progress = "configurations") -> go.Figure:
    """The shortest time so far against the number of configurations tried, or against the time of the search in seconds. Each
    configuration with a time is a point. The best one is chosen among those that were measured again at the end, so it need not
    be the one with the shortest time of the search."""
    space = space_of(run)
    if space is None:
        return nothing(NO_TUNING, height=LOW)
    steps = running_best(space)
    if not steps:
        return nothing(NO_TIME, height=LOW)
    if along == "time" and any(s.configuration.after_s is None for s in steps):
        return nothing("The file does not say when each configuration was measured.", height=LOW)
    title = "configurations tried" if along == "configurations" else "time since the start, s"

    def x(configuration: Configuration) -> float:
        return float(configuration.place if along == "configurations" else configuration.after_s or 0.0)

    times = [s.time_s for s in steps] + [c.time_s for c in space.timed if c.time_s]
    scale, unit = units.time_unit(min(times))
    draft = Draft(LOW, x_title=title, y_title=f"time, {unit}")
    draft.traces = [
        *_traces(space.timed, x, scale, name="each configuration", size=5, opacity=0.45),
        _steps(steps, x, scale),
    ]
    draft.y_axis |= log_axis(*_limits(times), scale)
    _unscaled(draft, scale)
    best = space.best
    if best is not None and best.time_s is not None:
        _mark(draft, best, x, scale, name=name_of_best(space), symbol="star", colour=BEST)
    return draft.figure()


def count_by_reason(run: Run) -> go.Figure:
    """How many configurations failed, by reason."""
    space = space_of(run)
    if space is None:
        return nothing(NO_TUNING, height=LOW)
    if not space.failures:
        return nothing("No configuration failed.", height=LOW)
    texts = [str(format_failure(reason.failure)) for reason in space.failures]
    labels = [
        f"{place}. {escape(shorten(text, _REASON_LETTERS))}"
        if len(texts) > 1
        else escape(shorten(text, _REASON_LETTERS))
        for place, text in enumerate(texts, 1)
    ]
    draft = Draft(max(140, 70 + 34 * len(texts)), x_title="configurations")
    draft.layout["bargap"] = 0.4
    draft.traces = [
        {
            "type": "bar",
            "orientation": "h",
            "x": [len(reason.variants) for reason in space.failures],
            "y": labels,
            "text": [str(len(reason.variants)) for reason in space.failures],
            "textposition": "auto",
            "marker": {"color": _FAILED},
            "hovertext": ["<br>".join(folded(text, 78)) for text in texts],
            "hoverinfo": "text",
        }
    ]
    draft.y_axis |= {"autorange": "reversed", "showgrid": False}
    few = max(len(reason.variants) for reason in space.failures) <= _FEW
    draft.x_axis |= {"rangemode": "tozero", **({"dtick": 1} if few else {})}
    draft.layout["showlegend"] = False
    return draft.figure()


def share_by_parameter(run: Run) -> go.Figure:
    """The share of the spread of log time that each parameter explains alone, and what is left (`parameter_effects`)."""
    space = space_of(run)
    if space is None:
        return nothing(NO_TUNING, height=LOW)
    effects = parameter_effects(space)
    known = [e for e in effects.parameters if e.share is not None]
    if not known:
        limits = [e.limit for e in effects.parameters if e.limit is not None]
        why = f": {LIMITS[limits[0]]}" if limits else ""
        return nothing(f"What a parameter is worth is not known{why}.", height=LOW)
    labels = [escape(shorten(e.name, 24)) for e in known]
    shares = [e.share or 0.0 for e in known]
    draft = Draft(max(160, 80 + 34 * (len(known) + 1)), x_title="share of the spread that it explains alone, %")
    hover = [
        f"<b>{escape(e.name)}</b><br>explains {format_share(e.share)}<br>means differ by up to {e.spread:.3g} ×"
        for e in known
    ]
    solid: Props = {"color": POINT}
    bars = [(labels, shares, hover, solid, "parameter")]
    if effects.rest is not None:
        pattern = {"shape": "/", "fgcolor": NEUTRAL, "size": 8}
        rest = [f"{format_share(effects.rest)}: what parameters do together, and noise"]
        bars.append((["together, noise"], [effects.rest], rest, {"color": "rgba(0,0,0,0)", "pattern": pattern}, "rest"))
    draft.traces = [
        {
            "type": "bar", "orientation": "h", "x": [100 * share for share in some], "y": names, "marker": marker, "name": name,
            "text": [str(format_share(share)) for share in some], "textposition": "outside", "cliponaxis": False,
            "hovertext": texts, "hoverinfo": "text",
        }
        for names, some, texts, marker, name in bars
    ]  # fmt: skip
    draft.y_axis |= {"autorange": "reversed", "showgrid": False}
    draft.x_axis |= {"range": [0, 112]}
    draft.layout["showlegend"] = False
    return draft.figure()


def space_of(run: Run) -> ConfigurationSpace | None:
    """The configurations of a tuning; None for a run that is none."""
    return None if run.plan.search is None or not run.plan.problems else configuration_space(run)


def name_of_best(space: ConfigurationSpace) -> str:
    """What the star is called. Nobody has checked the results of another tool."""
    return "fastest, not checked" if space.foreign else "best"


def _most_worth(space: ConfigurationSpace) -> str | None:
    """The parameter that explains most, of those with several values."""
    names = [effect.name for effect in parameter_effects(space).parameters]
    return next((name for name in names if name in space.varying), next(iter(names), None))


def _sideways(place: int) -> float:
    """A distance in -_JITTER to _JITTER that is the same whenever the configuration is drawn (golden ratio, so that neighbours
    in the search are apart)."""
    return (place * 0.618033988749895 % 1 - 0.5) * 2 * _JITTER


def _scatter(
    space: ConfigurationSpace,
    x: Callable[[Configuration], float | None],
    x_title: str,
    split: Callable[[Configuration], str] = lambda _: "",
) -> Draft:
    """Time by a quantity, with the best, the default and what has no time marked. `split`: the name of a group that is drawn as
    triangles; empty for all others."""
    times = [c.time_s for c in space.timed if c.time_s]
    scale, unit = units.time_unit(min(times)) if times else (1e-6, "µs")
    low, high = _limits(times) if times else (scale, 2 * scale)
    failed = [c for c in space.untimed if x(c) is not None]
    edge_s = high * (high / low) ** 0.06
    draft = Draft(HEIGHT, x_title=x_title, y_title=f"time, {unit}")
    plain = [c for c in space.timed if not (c.is_best or c.is_default) and x(c) is not None]
    whole, stopped = ([c for c in plain if (c.state == "stopped") is early] for early in (False, True))
    groups = list(dict.fromkeys(split(c) for c in whole))
    for group in groups:
        some = [c for c in whole if split(c) == group]
        name = group or ("time by another tool, not checked" if space.foreign else "correct")
        draft.traces += _traces(some, x, scale, name=name, symbol="triangle-up" if group else "circle")
    draft.traces += _traces(stopped, x, scale, name="stopped early (one block)", symbol="circle-open")
    draft.traces += _traces(failed, x, scale, name="no time", symbol="x", colour=_FAILED, at_s=edge_s)
    best_name = name_of_best(space)
    marks: tuple[tuple[Configuration | None, str, str, str], ...]
    if space.default is not None and space.default is space.best:  # one mark, so that no two labels cover each other
        marks = ((space.best, f"{best_name} = default", "star", BEST),)
    else:
        marks = ((space.default, "default", "diamond", DEFAULT), (space.best, best_name, "star", BEST))
    several = sum(one is not None and one.time_s is not None and x(one) is not None for one, *_ in marks) > 1
    for one, name, symbol, colour in marks:
        if one is not None and one.time_s is not None and x(one) is not None:
            side: Side = "on" if not several else "below" if one.is_best else "above"
            _mark(draft, one, x, scale, name=name, symbol=symbol, colour=colour, side=side)
    draft.y_axis |= log_axis(low, edge_s * _SPACE if failed else high, scale)
    _unscaled(draft, scale)
    if not times:
        draft.y_axis |= {"showticklabels": False, "showgrid": False}
    if failed:
        draft.note(
            "no time",
            x=0,
            xref="paper",
            y=math.log10(edge_s / scale),
            xanchor="left",
            yanchor="bottom",
            font={"size": 10},
        )
    return draft


def _limits(times: Sequence[float]) -> tuple[float, float]:
    """The ends of the logarithmic axis of times: with room for the mark of the shortest and the label above the longest."""
    ratio = max(times) / min(times)
    return min(times) / (_BELOW * ratio**0.04), max(times) * _SPACE * ratio**0.1


def _unscaled(draft: Draft, scale: float) -> None:
    """Move the axis of `log_axis` from seconds to the unit of the chart."""
    shift = math.log10(scale)
    draft.y_axis["range"] = [end - shift for end in draft.y_axis["range"]]
    draft.y_axis["tickvals"] = [value / scale for value in draft.y_axis["tickvals"]]


def _mark(
    draft: Draft,
    one: Configuration,
    x: Callable[[Configuration], float | None],
    scale: float,
    *,
    name: str,
    symbol: str,
    colour: str,
    side: Side = "on",
) -> None:
    """A configuration that stands out, with a line at its time that ends at its name. `side`: of the line where the name is, so
    that the names of two times that are close do not cover each other."""
    draft.traces += _traces([one], x, scale, name=name, symbol=symbol, colour=colour, size=15, opacity=1.0)
    at = (one.time_s or scale) / scale
    draft.line(x0=0, x1=1, xref="paper", y0=at, y1=at, line={"color": colour, "width": 1, "dash": "dot"})
    lines = name.split(", ")
    draft.note(
        ",<br>".join(map(escape, lines)), x=1, xref="paper", y=math.log10(at), xanchor="left", xshift=4, align="left",
        **_SIDES[side], font={"size": 11},
    )  # fmt: skip
    margin = draft.layout["margin"]
    draft.layout["margin"] = {**margin, "r": max(margin["r"], 10 + _LETTER_PX * max(map(len, lines)))}


def _traces(
    some: Sequence[Configuration],
    x: Callable[[Configuration], float | None],
    scale: float,
    *,
    name: str,
    symbol: str = "circle",
    colour: str = POINT,
    size: int = 8,
    opacity: float = 0.8,
    at_s: float | None = None,
) -> list[Props]:
    """Points, in as many traces as needed so that none of them is thinned. `at_s`: where those without a time are."""
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [x(c) for c in part],
            "y": [None if time_s is None else time_s / scale for time_s in (at_s or c.time_s for c in part)],
            "name": escape(name),
            "legendgroup": name,
            "showlegend": start == 0,
            "marker": {"symbol": symbol, "color": colour, "size": size, "opacity": opacity},
            "hovertext": [hover_of_configuration(c) for c in part],
            "hoverinfo": "text",
            "customdata": [c.variant for c in part],
        }
        for start in range(0, len(some), MOST_SVG_POINTS)
        for part in (some[start : start + MOST_SVG_POINTS],)
    ]


def hover_of_configuration(configuration: Configuration) -> str:
    """Hover text: the values, the time or why there is none, and the registers."""
    marks = [mark for mark, there in (("best", configuration.is_best), ("default", configuration.is_default)) if there]
    lines = [f"<b>{line}</b>" for line in folded(configuration_text(configuration.values) or configuration.variant, 60)]
    lines += [escape(", ".join(marks))] if marks else []
    lines += folded(str(describe_time(configuration)), 60)
    if configuration.registers is not None:
        spilled = "" if configuration.spills is None else f", {configuration.spills} spill instructions"
        lines.append(f"{configuration.registers} registers per thread{spilled}")
    return "<br>".join(lines)


def _steps(steps: Sequence[RunningBest], x: Callable[[Configuration], float], scale: float) -> Props:
    """The best time so far, as a line with steps. Only changes and the end are points, so the line is never thinned."""
    corners = [s for s in steps if s.improved]
    if steps[-1] is not corners[-1]:
        corners.append(steps[-1])
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [x(s.configuration) for s in corners],
        "y": [s.time_s / scale for s in corners],
        "name": "shortest so far",
        "line": {"color": BEST, "width": 2.5, "shape": "hv"},
        "marker": {"color": BEST, "symbol": "circle", "size": 6},
        "hovertext": [hover_of_configuration(s.configuration) if s.improved else "end of the search" for s in corners],
        "hoverinfo": "text",
    }
