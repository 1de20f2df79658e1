"""The transfer matrix of a variant: how the configuration of each shape does at every other shape."""

from html import escape

import plotly.graph_objects as go

from kernelviz.core.configuration import configuration_text
from kernelviz.metrics.transfer import Cell, Transfer
from kernelviz.plots.frame import Draft, folded, nothing, shorten
from kernelviz.text import format_sizes
from kernelviz.text.transfer import describe_cell, format_cell

_ROW_PX, _FRAME_PX = 44, 120
_WORST = 2.0
"""The colour of a configuration that takes this many times as long, and of every worse one."""
_LETTERS = 22
_COLOURS = [[0.0, "rgba(61,154,91,0.35)"], [0.25, "rgba(217,160,13,0.35)"], [1.0, "rgba(220,74,74,0.5)"]]
"""Faint, so that the number in a cell can be read in the colour of the page's text, light or dark."""


def ratio_by_shape(matrix: Transfer) -> go.Figure:
    """A cell for each pair of shapes: the time of the configuration that is best for the row's shape, at the column's shape,
    over the time of the column's own. The number is in the cell; a pair that nobody measured is empty and says so."""
    count = len(matrix.tunings)
    if count < 2:
        return nothing(
            "One shape of this variant is tuned. Tune another one to see how the choice transfers.", height=180
        )
    varying = [
        axis for axis in matrix.tunings[0].problem.sizes if len({t.problem.sizes[axis] for t in matrix.tunings}) > 1
    ]
    names = [escape(shorten(str(format_sizes(t.problem, varying)), _LETTERS)) for t in matrix.tunings]
    draft = Draft(_FRAME_PX + _ROW_PX * count, x_title="measured at", y_title="tuned for")
    draft.traces = [
        {
            "type": "heatmap",
            "x": list(range(count)),
            "y": list(range(count)),
            "z": [[_ratio(cell) for cell in row] for row in matrix.cells],
            "zmin": 1.0,
            "zmax": _WORST,
            "colorscale": _COLOURS,
            "showscale": False,
            "xgap": 2,
            "ygap": 2,
            "hovertext": [[_hover(matrix, a, b) for b in range(count)] for a in range(count)],
            "hoverinfo": "text",
        }
    ]
    for a, row in enumerate(matrix.cells):
        for b, cell in enumerate(row):
            draft.note(escape(str(format_cell(cell))), x=b, y=a, font={"size": 12})
    labels = {"tickvals": list(range(count)), "ticktext": names, "showgrid": False}
    draft.x_axis |= {**labels, "side": "top"}
    draft.y_axis |= {**labels, "autorange": "reversed"}
    draft.layout["meta"] = {"x": {"labels": names}, "y": {"labels": names}}
    return draft.figure()


def _ratio(cell: Cell) -> float | None:
    return cell.ratio.estimate if cell.ratio is not None else None


def _hover(matrix: Transfer, a: int, b: int) -> str:
    of, at = matrix.tunings[a], matrix.tunings[b]
    lines = [
        f"<b>{escape(str(format_sizes(at.problem)))}</b>",
        *folded(f"with the configuration for {format_sizes(of.problem)}: {configuration_text(of.configuration)}", 70),
        *folded(f"its own: {configuration_text(at.configuration)}", 70),
        *folded(str(describe_cell(matrix.cells[a][b])), 70),
    ]
    return "<br>".join(lines)
