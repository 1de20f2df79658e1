"""What all charts share: the frame, the axes, the hover text, and the empty chart."""

import math
import textwrap
from collections.abc import Sequence
from html import escape
from itertools import chain
from typing import Any

import plotly.graph_objects as go
from msgspec.structs import replace

from kernelviz.core import Problem, Roof, Run, units
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.rows import Row, rows
from kernelviz.metrics.sweep import companion_axes, varying_axes
from kernelviz.plots.variant_styles import NEUTRAL, Style, styles_of
from kernelviz.text import (
    describe_quality_of,
    format_failure,
    format_size,
    format_sizes,
    format_time,
    format_variant,
    format_verdict,
)
from kernelviz.text.above_roof import describe_above_roof

GRID = "rgba(124,135,132,0.22)"
Runs = Run | Sequence[Run]
Props = dict[str, Any]
"""Properties of a trace, an axis or a layout, with their names in Plotly's JSON."""
MOST_SVG_POINTS = 1000
_MOST_TICKS, _TICK_LETTERS = 9, 52
"""The maximum number of ticks at sizes, and of the letters of their labels: the plot of a phone is about 290 px wide."""


def listed(runs: Runs) -> tuple[Run, ...]:
    return (runs,) if isinstance(runs, Run) else tuple(runs)


def roofs_of(run: Run, roofs: Sequence[Roof] | None) -> tuple[Roof, ...]:
    """`roofs`, or if None, the roofs that were known when the run was measured."""
    return tuple(run.environment.roofs if roofs is None else roofs)


def only(run: Run, problem: Problem | None) -> Run:
    """The run with the results of one problem only, because each row of a table takes time to compute."""
    return replace(run, results=tuple(r for r in run.results if r.problem == problem))


def table_of(run: Run, roofs: Sequence[Roof] | None, headline: Headline = "cold") -> tuple[Row, ...]:
    return rows(run, roofs_of(run, roofs), headline)


def framed(figure: go.Figure, *, height: int, x_title: str = "", y_title: str = "") -> go.Figure:
    """Give a figure the common frame. Text takes the colour of the page, so no text colour is set here."""
    figure.update_layout(**_frame(height))
    figure.update_xaxes(**_axis(x_title))
    figure.update_yaxes(**_axis(y_title))
    return figure


def _frame(height: int) -> Props:
    return {
        "height": height,
        "margin": {"l": 8, "r": 12, "t": 24, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hovermode": "closest",
        "hoverlabel": {"align": "left"},
        "legend": {"orientation": "h", "x": 0, "y": -0.22, "yanchor": "top", "xanchor": "left", "title": {"text": ""}},
        "bargap": 0.3,
        "dragmode": False,
        "uirevision": "kept",
    }


def _axis(title: str) -> Props:
    look = {"gridcolor": GRID, "zeroline": False, "showline": False, "automargin": True}
    return {**look, "title": {"standoff": 8, "text": title}}


LEGEND_SHARE, LEGEND_GROWTH_PX = 0.3, 130
"""Of a chart's height, the legend has at most the share, and the chart grows by so much for a longer one: the names of 22
variants would otherwise leave a third to the lines, or be half hidden."""
_LEGEND_ROW_PX, _LEGEND_WIDTH_PX, _LEGEND_LETTER_PX, _LEGEND_SIGN_PX = 29, 490, 5.8, 40
"""Of a legend below a chart that has half of a page of 1,440 pixels: about the height of a row, the width, and what a letter and
the sign before a name need."""


def _legend_rows(names: Sequence[str]) -> int:
    """About how many rows the names need, side by side as far as they fit.

    >>> _legend_rows(["torch eager", "triton block"]), _legend_rows(["cuda wgmma two warpgroups"] * 6)
    (1, 3)
    """
    rows, left_px = 0, 0.0
    for name in names:
        needed_px = _LEGEND_SIGN_PX + _LEGEND_LETTER_PX * len(name)
        if needed_px > left_px:
            rows, left_px = rows + 1, _LEGEND_WIDTH_PX
        left_px -= needed_px
    return rows


class Draft:
    """A figure with one plot, as plain Plotly data that becomes a figure in one step.

    Plotly validates each change of a figure: the three charts of a page took 110 ms, and take 10 ms this way. The tests run
    every such chart through Plotly's validation (test_plots.py).
    """

    def __init__(self, height: int, *, x_title: str = "", y_title: str = "") -> None:
        self.traces: list[Props] = []
        self.x_axis, self.y_axis = _axis(x_title), _axis(y_title)
        self.layout = _frame(height)
        self._notes: list[Props] = []
        self._shapes: list[Props] = []

    def note(self, text: str, **where: Any) -> None:
        """Add text to the plot, without an arrow by default."""
        self._notes.append({"showarrow": False, "text": text, **where})

    def line(self, **ends: Any) -> None:
        """Add a straight line in the units of the axes."""
        self._shapes.append({"type": "line", "xref": "x", "yref": "y", **ends})

    def line_at(self, x: float, line: Props) -> None:
        """Add a vertical line over the whole height of the plot."""
        self.line(x0=x, x1=x, y0=0, y1=1, yref="y domain", line=line)

    def fit_legend(self) -> None:
        """Make the chart, whose traces are complete, higher for a long legend, by at most LEGEND_GROWTH_PX. Beyond that, and on
        a phone, the legend scrolls."""
        names = [str(t["name"]) for t in self.traces if t.get("name") and t.get("showlegend") is not False]
        height = self.layout["height"]
        least_px = LEGEND_SHARE * height
        legend_px = min(_legend_rows(names) * _LEGEND_ROW_PX, least_px + LEGEND_GROWTH_PX)
        self.layout["height"] = round(height + max(0.0, legend_px - least_px))
        self.layout["legend"] |= {"maxheight": max(legend_px, least_px) / self.layout["height"]}

    def figure(self) -> go.Figure:
        layout = {"annotations": self._notes, "shapes": self._shapes, **self.layout}
        return go.Figure(
            data=self.traces, layout={**layout, "xaxis": self.x_axis, "yaxis": self.y_axis}, _validate=False
        )


def nothing(sentence: str, *, height: int) -> go.Figure:
    """An empty frame with a sentence that says what is missing and what to do."""
    draft = Draft(height)
    draft.x_axis["visible"] = draft.y_axis["visible"] = False
    draft.note(escape(sentence), x=0.5, y=0.5, xref="paper", yref="paper")
    return draft.figure()


def size_ticks(sizes: Sequence[int]) -> tuple[list[int], list[str]]:
    """As many of the sizes as ticks as fit side by side on a phone, evenly spaced and always with the last one.

    >>> size_ticks([1024, 4096])
    ([1024, 4096], ['1,024', '4,096'])
    >>> size_ticks([2**e for e in range(10, 27)])[1]
    ['2,048', '65,536', '2,097,152', '67,108,864']
    """
    ordered = sorted(set(sizes))
    most = max(2, _TICK_LETTERS // (len(format_size(ordered[-1])) + 1)) if ordered else 1
    ticks = evenly_spaced(ordered, min(most, _MOST_TICKS))
    return ticks, [format_size(s) for s in ticks]


def companions(problems: Sequence[Problem], axis: str) -> str:
    """The sizes of the axes that vary together with the shown one, from its smallest size to its largest; else empty.

    >>> shrinking = [Problem(op="conv2d", sizes={"h": 512 // c, "c": c}, dtype="bf16") for c in (8, 16)]
    >>> companions(shrinking, "c"), companions(shrinking[:1], "c")
    ('h from 64 to 32', '')
    """
    ordered = sorted((p for p in problems if axis in p.sizes), key=lambda p: p.sizes[axis])
    alike: dict[tuple[int, ...], list[str]] = {}
    for name in companion_axes(ordered, axis):
        alike.setdefault(tuple(p.sizes[name] for p in ordered), []).append(name)
    return ", ".join(f"{' = '.join(a)} from {format_size(s[0])} to {format_size(s[-1])}" for s, a in alike.items())


def evenly_spaced(values: Sequence[int], most: int) -> list[int]:
    """At most that many of the values, evenly spaced and always with the last one.

    >>> evenly_spaced([1, 2, 4, 8, 16, 32, 64, 128], 6), evenly_spaced([], 6)
    ([2, 8, 32, 128], [])
    """
    step = max(1, math.ceil(len(values) / most))
    return list(values[::-step][::-1])


def hover(run: Run, row: Row, headline: Headline = "cold") -> str:
    """Hover text of a point: variant, problem, time, rates, verdict and measurement quality. Names are escaped."""
    result, problem = row.result, row.result.problem
    direction = f" · {problem.direction}" if problem.direction == "backward" else ""
    lines = [
        f"<b>{escape(format_variant(result.variant))}</b>",
        escape(f"{format_sizes(problem)} · {problem.dtype}{direction} · {run.environment.device.name}"),
    ]
    if row.failure is not None:
        lines.append(f"✕ {escape(str(format_failure(row.failure, most=90)))}")
    figure = row.figure or row.wrong_figure
    if figure is not None:
        lines.append(f"{format_time(figure)}{' (the result is wrong)' if row.figure is None else ''}")
    if row.bandwidth_bytes_per_s is not None:
        share = "" if row.efficiency is None else f" · {units.percent(row.efficiency)} of the measured roof"
        digits = units.digits_of(row.half_width)
        rate = f" · {units.rate(row.rate_flop_per_s, 'FLOP/s', digits)}" if row.rate_flop_per_s else ""
        lines.append(f"{units.gigabytes_per_s(row.bandwidth_bytes_per_s, digits)}{rate}{share}")
    if row.above_roof is not None:
        lines += folded(describe_above_roof(row.above_roof), 78)
    if row.verdict is not None:
        lines.append(escape(str(format_verdict(row.verdict))))
    if figure is not None:
        lines += folded(str(describe_quality_of(result, headline, run.method.clock)), 78)
    return "<br>".join(lines)


def folded(text: str, width: int = 64) -> list[str]:
    """Lines of text, escaped and wrapped, because hover text wider than a phone would be cut off."""
    if 0 < len(text) <= width and text.isprintable() and text == text.strip():  # as most are: wrapping takes 0.1 ms
        return [escape(text)]
    return [escape(line) for line in textwrap.wrap(text, width, break_long_words=False)]


def shorten(text: str, most: int) -> str:
    """The text, or its beginning and an ellipsis if it has more than `most` characters. A word is cut only if it is long.

    >>> shorten("softmax bf16, m=256 n=2048", 24), shorten("a" * 9, 6)
    ('softmax bf16, m=256…', 'aaaaa…')
    """
    if len(text) <= most:
        return text
    beginning = text[:most].rpartition(" ")[0]
    return (beginning if len(beginning) >= most // 2 else text[: most - 1]).rstrip(" ,·") + "…"


def trace_name(run: Run, variant: str, runs: Sequence[Run]) -> str:
    """The variant, and with several runs also the run, see `format_run`."""
    return escape(format_variant(variant)) + run_suffix(run, runs)


def style_in(runs: Sequence[Run], op: str, variant: str, beside: Sequence[str] = ()) -> Style:
    """The style of a variant, different from those of all other variants of the op in these runs.

    `beside`: the variants of the first run, where the runs here have only some of them, see `styles_of`.
    """
    of_runs = [run.plan.variants for run in runs if run.plan.op == op]
    first = beside or (of_runs[0] if of_runs else ())
    return styles_of(op, (variant, *chain.from_iterable(of_runs)), first)[variant]


_LONG_TITLE = 32
"""Letters of a title that fit beside a variant in a legend, and before a bar."""


def run_suffix(run: Run, runs: Sequence[Run]) -> str:
    """The run after the name of a trace, if there are several runs."""
    return f" · {escape(format_run(run, runs))}" if len(runs) > 1 else ""


def format_run(run: Run, runs: Sequence[Run]) -> str:
    """The name of a run among several: its device if the devices differ, else its title if the titles differ, else its id.

    Instead of titles that are too long for a legend, or equal, the sizes that distinguish the runs, if there are such.
    """
    ids, titles = [r.id for r in runs], [r.title for r in runs]
    devices = [r.environment.device.name for r in runs]
    long = max(map(len, titles)) > _LONG_TITLE
    # Sizes are looked at last, because every trace has a name and a run has many problems.
    for names in (devices, [] if long else titles):
        if _distinct(names):
            return names[ids.index(run.id)]
    names = _telling_sizes(runs)
    if not _distinct(names):
        names = titles
    return names[ids.index(run.id)] if _distinct(names) else run.id


def _distinct(names: Sequence[str]) -> bool:
    return len(names) > 0 and all(names) and len(set(names)) == len(names)


def _telling_sizes(runs: Sequence[Run]) -> list[str]:
    """For each run of one op, the sizes that are the same in all its problems and differ from those of another run."""
    if not all(r.plan.problems for r in runs) or len({r.plan.op for r in runs}) > 1:
        return [""] * len(runs)
    first = [r.plan.problems[0] for r in runs]
    varied = {axis for r in runs for axis in varying_axes(r.plan.problems)}
    axes = [a for a in first[0].sizes if a not in varied and len({p.sizes.get(a) for p in first}) > 1]
    return [format_sizes(p, axes) if axes else "" for p in first]


def problems_of(runs: Sequence[Run]) -> list[Problem]:
    """Every problem that has a result, once, in the order of the plans."""
    entries = {r.problem.key: r.problem for run in runs for r in run.results}
    planned = [p for run in runs for p in run.plan.problems if p.key in entries]
    return list({p.key: p for p in (*planned, *entries.values())}.values())


def scatter_type(points: int) -> str:
    """The trace type for this number of points. Above MOST_SVG_POINTS, WebGL draws faster than SVG."""
    return "scattergl" if points > MOST_SVG_POINTS else "scatter"


def intervals(
    middles: Sequence[float | None],
    ends: Sequence[tuple[float | None, float | None]],
    colour: str,
    *,
    scale: float = 1.0,
    width: int = 3,
) -> Props:
    """Error bars from the lower to the upper end of each interval; none where a value is unknown."""

    def length(upper: float | None, lower: float | None) -> float:
        return 0.0 if upper is None or lower is None else max(upper - lower, 0.0) / scale

    return {
        "type": "data",
        "symmetric": False,
        "array": [length(high, middle) for middle, (_, high) in zip(middles, ends, strict=True)],
        "arrayminus": [length(middle, low) for middle, (low, _) in zip(middles, ends, strict=True)],
        "thickness": 1.5,
        "width": width,
        "color": colour,
    }


def end_of_axis(highest: float, space: float, ends: Sequence[float | None]) -> float:
    """The end of an axis that begins at zero: the highest value times `space`, and whole intervals up to one and a half times
    that value. A wider one is cut, so that one noisy value does not flatten all others. `ends`: the upper ends of intervals.

    >>> end_of_axis(10.0, 1.1, [10.2, None]), round(end_of_axis(10.0, 1.1, [14.0]), 1), round(end_of_axis(10.0, 1.1, [90.0]), 1)
    (11.0, 14.3, 15.3)
    """
    widest = max((end for end in ends if end is not None), default=0.0)
    return max(highest * space, min(widest, 1.5 * highest) * 1.02)


def neutral_line(dash: str = "dash", width: float = 1.5) -> Props:
    return {"color": NEUTRAL, "dash": dash, "width": width}


def log_axis(low: float, high: float, scale: float = 1.0) -> Props:
    """A logarithmic axis between two values, with the ticks of `decade_ticks`, or even ones if these would be less than three."""
    ticks, labels = decade_ticks(low, high, scale)
    if len(ticks) < 3:
        ticks, labels = even_ticks(low, high, scale)
    return {"type": "log", "range": [math.log10(low), math.log10(high)], "tickvals": ticks, "ticktext": labels}


def even_ticks(low: float, high: float, scale: float) -> tuple[list[float], list[str]]:
    """About five evenly spaced ticks at round numbers between two values, in units of `scale`.

    >>> even_ticks(1.1e-6, 1.9e-6, 1e-6)[1]
    ['1.2', '1.4', '1.6', '1.8']
    """
    width = (high - low) / scale
    unit = 10.0 ** math.floor(math.log10(width / 5))
    step = next(unit * s for s in (1, 2, 5, 10) if width / (unit * s) <= 6)
    numbers = range(math.ceil(low / scale / step), math.floor(high / scale / step) + 1)
    return [n * step * scale for n in numbers], [f"{n * step:g}" for n in numbers]


def decade_ticks(low: float, high: float, scale: float) -> tuple[list[float], list[str]]:
    """Ticks at 1, 2 and 5 of each decade between two values (1 alone over more than three decades), in units of `scale`.

    >>> decade_ticks(0.4e12, 6e12, 1e12)
    ([500000000000.0, 1000000000000.0, 2000000000000.0, 5000000000000.0], ['0.5', '1', '2', '5'])
    """
    steps = (1, 2, 5) if high / low < 1e3 else (1,)
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    entries = [step * 10.0**e for e in exponents for step in steps if low <= step * 10.0**e <= high]
    return entries, [f"{value / scale:g}" for value in entries]
