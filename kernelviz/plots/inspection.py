"""Charts of an inspection: where an output is wrong, how large the errors are, and which values a tensor has."""

import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go

from kernelviz.core import OCTAVES, OutputErrors, TensorFacts
from kernelviz.metrics.statistics import Floats
from kernelviz.plots.frame import framed, nothing
from kernelviz.plots.variant_styles import BAD, COLOURS, NEUTRAL
from kernelviz.text import describe_block, describe_octave, format_power_of_two
from kernelviz.text.inspection import number

HEIGHT = 400
_FRAME_PX = 110
_DECADES = 3
"""The colour scale spans this many powers of ten on either side of the allowed error."""
_RIGHT = COLOURS[0]
# From pale to full on either side of the allowed error, with another hue above it; transparent, for both themes.
_SCALE = (
    (0.0, "rgba(76,120,168,0.06)"),
    (0.5, "rgba(76,120,168,0.75)"),
    (0.5, "rgba(220,74,74,0.55)"),
    (1.0, "rgba(220,74,74,1)"),
)
_MARKS: tuple[tuple[str, str, Callable[[OutputErrors, int], bool]], ...] = (
    ("wrong", "x-thin", lambda errors, cell: errors.map.wrong[cell] > errors.map.unwritten[cell]),
    ("never written", "circle-open", lambda errors, cell: errors.map.unwritten[cell] > 0),
)
"""Signs on blocks: the name, the symbol, and the cells that have it."""


def share_by_element(errors: OutputErrors | None) -> go.Figure:
    """The largest |error| / allowed error in each block of an output (logarithmic colours), with signs on wrong blocks.

    The axes are the last two dimensions, with the first row at the top. A vector is laid out line by line, like text.
    """
    if errors is None or not errors.map.shares:
        return nothing("This output has no error map.", height=HEIGHT)
    grid = errors.map
    figure = go.Figure(
        go.Heatmap(
            z=np.log10(np.clip(_in_rows(errors, grid.shares), 10.0**-_DECADES, 10.0**_DECADES)),
            customdata=_hover_data(errors),
            hovertemplate=_hover(errors),
            name="",
            zmin=-_DECADES,
            zmax=_DECADES,
            colorscale=[list(stop) for stop in _SCALE],
            colorbar={
                "title": {"text": "error / allowed", "side": "right"},
                "tickvals": list(range(-_DECADES, _DECADES + 1)),
                "ticktext": ["≤ 0.001", "0.01", "0.1", "1", "10", "100", "≥ 1000"],
                "thickness": 12,
                "outlinewidth": 0,
                "len": 1.0,
            },
        )
    )
    for name, symbol, there in _MARKS:
        cells = [c for c in range(len(grid.wrong)) if there(errors, c)]
        if cells:
            figure.add_traces(_marks(cells, grid.columns, name, symbol))
    square = HEIGHT - _FRAME_PX
    plot_px = round(min(square, max(40, square * grid.rows / 32)))
    row_axis, column_axis = _axis_titles(errors)
    framed(figure, height=_FRAME_PX + plot_px, x_title=escape(column_axis), y_title=escape(row_axis))
    first_of_row = grid.block[1] * grid.columns if grid.wraps else grid.block[0]
    figure.update_xaxes(range=[-0.5, grid.columns - 0.5], **_cell_ticks(grid.columns, grid.block[1]))
    figure.update_yaxes(range=[grid.rows - 0.5, -0.5], **_cell_ticks(grid.rows, first_of_row))
    figure.update_layout(legend={"y": -70 / max(40, plot_px)})
    return figure


def _in_rows(errors: OutputErrors, cells: Sequence[float | None]) -> Floats:
    """A value for each cell, row by row; NaN (not drawn) after the end of a vector."""
    grid = errors.map
    placed = np.full(grid.rows * grid.columns, np.nan)
    placed[: len(cells)] = [np.inf if c is None else c for c in cells]
    return placed.reshape(grid.rows, grid.columns)


def _hover_data(errors: OutputErrors) -> Floats:
    """The values in the hover text of each cell: wrong, never written, share, then the first and the last index along each
    axis."""
    grid = errors.map
    values: list[Any] = [_in_rows(errors, cells) for cells in (grid.wrong, grid.unwritten, grid.shares)]
    rows, columns = np.indices((grid.rows, grid.columns))
    if grid.wraps:
        spans = [((rows * grid.columns + columns), grid.block[1], errors.elements)]
    else:
        spans = list(zip((rows, columns), grid.block, errors.shape[-2:], strict=True))
    for position, block, size in spans:
        values += [1.0 * position * block, np.minimum((position + 1.0) * block, size) - 1]
    return np.stack(values, axis=-1)


def _hover(errors: OutputErrors) -> str:
    axes = errors.axes[:1] if errors.map.wraps else errors.axes[-2:]
    where = [
        f"{escape(axis)} %{{customdata[{3 + 2 * i}]:d}} to %{{customdata[{4 + 2 * i}]:d}}"
        for i, axis in enumerate(axes)
    ]
    wrong = "%{customdata[0]:,d} wrong, %{customdata[1]:,d} of them never written"
    return f"{', '.join(where)}<br>{wrong}<br>largest error: %{{customdata[2]:.3g}}× the allowed error"


def _marks(cells: Sequence[int], columns: int, name: str, symbol: str) -> list[go.Scatter]:
    """A sign on each of the cells, and its entry in the legend."""
    marker = {
        "symbol": symbol,
        "size": 4 if columns > 32 else 7,
        "color": "#FFFFFF",
        "line": {"width": 1.2, "color": "#FFFFFF"},
    }
    in_legend = {"symbol": symbol, "size": 9, "color": BAD, "line": {"width": 1.5, "color": BAD}}
    return [
        go.Scatter(
            x=[c % columns for c in cells], y=[c // columns for c in cells], mode="markers", marker=marker,
            hoverinfo="skip", showlegend=False,
        ),
        go.Scatter(x=[None], y=[None], mode="markers", marker=in_legend, name=f"{name} elements in the block"),
    ]  # fmt: skip


def _axis_titles(errors: OutputErrors) -> tuple[str, str]:
    """The titles of the row axis and the column axis, with the size of a cell."""
    if errors.map.wraps:
        axis = errors.axes[0] if errors.axes else ""
        return f"{axis}, line by line", f"{axis} within the line ({describe_block(errors.map)})"
    folded = f", largest over {', '.join(errors.axes[:-2])}" if len(errors.axes) > 2 else ""
    return errors.axes[-2], f"{errors.axes[-1]} ({describe_block(errors.map)}{folded})"


def _cell_ticks(cells: int, block: int) -> dict[str, Any]:
    """At most nine cells are labelled with the index of their first element."""
    positions = list(range(0, cells, 1 << max(0, math.ceil(math.log2(cells / 8)))))
    return {"tickvals": positions, "ticktext": [str(p * block) for p in positions], "showgrid": False}


def elements_by_error(errors: OutputErrors | None) -> go.Figure:
    """Number of elements by |error| / allowed error, in powers of two. Elements outside the tolerance are hatched."""
    if errors is None:
        return nothing("This output has no error counts.", height=HEIGHT)
    counts = errors.counts
    known = [i for i, c in enumerate(counts.octaves) if c]
    first, last = min([*known, OCTAVES - 1]), max([*known, OCTAVES + 1])
    # Each bar is between two powers of two. Exact elements, and those beyond any tolerance, have a bar of their own.
    bars = [(i - OCTAVES - 0.5, str(describe_octave(i)), counts.octaves[i]) for i in range(first, last + 1)]
    left, right = first - OCTAVES - 2.5, last - OCTAVES + 1.5
    bars = [(left, "exact", counts.exact), *bars, (right, "beyond any tolerance", counts.beyond)]
    sides = [([bar for bar in bars if (bar[0] > 0) is wrong], wrong) for wrong in (False, True)]
    figure = go.Figure([_error_bars(visible, errors.elements, wrong=wrong) for visible, wrong in sides])
    framed(figure, height=HEIGHT, x_title="|error| / allowed error", y_title="elements")
    step = 1 if last - first < 9 else 2 if last - first < 18 else 4
    exponents = [e for e in range(first - OCTAVES, last - OCTAVES + 1) if e % step == 0]
    figure.update_xaxes(
        tickvals=[left, *exponents, right],
        ticktext=["0", *(format_power_of_two(e) for e in exponents), "∞"],
        tickangle=0,
        range=[left - 0.6, right + 0.6],
        showgrid=False,
    )
    figure.add_vline(x=0, line={"color": NEUTRAL, "dash": "dash", "width": 1.5})
    figure.update_layout(legend={"y": 1.02, "yanchor": "bottom"}, bargap=0.08, barmode="overlay", margin={"t": 40})
    _count_axis(figure, max(count for _, _, count in bars))
    return figure


def _error_bars(visible: Sequence[tuple[float, str, int]], elements: int, *, wrong: bool) -> go.Bar:
    pattern = {"shape": "/", "size": 6, "solidity": 0.4, "fgcolor": "#FFFFFF", "bgcolor": BAD} if wrong else {}
    return go.Bar(
        x=[position for position, _, _ in visible],
        y=[count or None for _, _, count in visible],
        width=0.92,
        name="outside the tolerance" if wrong else "within the tolerance",
        marker={"color": BAD if wrong else _RIGHT, "pattern": pattern, "line": {"width": 0}},
        hovertext=[f"{label}<br>{count:,} of {elements:,} elements" for _, label, count in visible],
        hoverinfo="text",
    )


def elements_by_value(tensor: TensorFacts | None) -> go.Figure:
    """Histogram of the finite values of a tensor."""
    histogram = tensor.histogram if tensor is not None else None
    if tensor is None or histogram is None:
        return nothing("This tensor has no finite value.", height=HEIGHT)
    bins = len(histogram.counts)
    width = (histogram.high - histogram.low) / bins or 1.0
    # A tensor with a single value has one bin, which gets a width of 1 around the value.
    start = histogram.low if histogram.high > histogram.low else histogram.low - 0.5
    edges = [start + i * width for i in range(bins + 1)]
    figure = go.Figure(
        go.Bar(
            x=[(a + b) / 2 for a, b in pairwise(edges)],
            y=[c or None for c in histogram.counts],
            width=width,
            marker={"color": _RIGHT, "line": {"width": 0}},
            hovertext=[
                f"{number(histogram.low if bins == 1 else a)}"
                + ("" if bins == 1 else f" to {number(b)}")
                + f"<br>{count:,} of {tensor.elements:,} elements"
                for (a, b), count in zip(pairwise(edges), histogram.counts, strict=True)
            ],
            hoverinfo="text",
            showlegend=False,
        )
    )
    framed(figure, height=HEIGHT, x_title=f"element value of {escape(tensor.name)}", y_title="elements")
    figure.update_layout(bargap=0)
    if tensor.mean is not None:
        figure.add_vline(x=tensor.mean, line={"color": NEUTRAL, "dash": "dash", "width": 1.5})
        figure.add_annotation(
            x=tensor.mean, y=1.0, yref="paper", yanchor="bottom", showarrow=False, text=f"mean {number(tensor.mean)}"
        )
    _count_axis(figure, max(histogram.counts))
    return figure


def _count_axis(figure: go.Figure, most: int) -> None:
    """A logarithmic axis that starts below 1, so that a single wrong element among millions is visible."""
    decades = range(0, math.ceil(math.log10(max(most, 2))) + 1)
    ticks = [10**d for d in decades][:: 1 if len(decades) <= 6 else 2]
    figure.update_yaxes(
        type="log", range=[-0.3, math.log10(max(most, 2)) + 0.15], tickvals=ticks, ticktext=[f"{t:,}" for t in ticks]
    )
