"""A figure as the plain JSON that the bundle of Plotly draws: no template, six digits, SVG traces only."""

import math
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go

from kernelviz.metrics.statistics import Floats
from kernelviz.plots.frame import MOST_SVG_POINTS

_DIGITS = 6


def plain(figure: go.Figure) -> dict[str, Any]:
    """The figure as plain JSON, without a template and with six digits.

    Traces for WebGL become traces for SVG, because Plotly's WebGL code compiles text to code at run time, and a content
    security policy forbids that.
    """
    content: dict[str, Any] = _plain(figure.to_plotly_json())
    content["layout"].pop("template", None)
    for trace in content["data"]:
        if trace.get("type") == "scattergl":
            trace["type"] = "scatter"
    return content


def drawable(figure: go.Figure) -> dict[str, Any]:
    """The figure as `plain`, with at most MOST_SVG_POINTS points in each trace: SVG is slow with more."""
    content = plain(figure)
    return {**content, "data": [with_extremes(trace, MOST_SVG_POINTS) for trace in content["data"]]}


def evenly(trace: dict[str, Any], most: int) -> dict[str, Any]:
    """Keep at most `most` evenly spaced points, including the first and the last. All points that have their own hover text are
    kept."""
    count = len(trace.get("x") or ())
    if count <= most or not most or "hovertext" in trace or "customdata" in trace:
        return trace
    return _at(trace, count, np.unique(np.linspace(0, count - 1, most).round().astype(int)))


def with_extremes(trace: dict[str, Any], most: int) -> dict[str, Any]:
    """Keep at most `most` points of a scatter trace: the least and the greatest value of each of `most` / 2 equal parts, so that
    no outlier disappears.

    >>> thinned = with_extremes({"type": "scatter", "x": list(range(100)), "y": [0.0] * 41 + [9.0] + [0.0] * 58}, 10)
    >>> len(thinned["x"]) <= 10, 41 in thinned["x"]
    (True, True)
    """
    count = len(trace.get("x") or ())
    if count <= most or trace.get("type") != "scatter" or len(trace.get("y") or ()) != count:
        return trace
    values = np.array([math.nan if v is None or isinstance(v, str) else v for v in trace["y"]], dtype=np.float64)
    indices: set[int] = set()
    for part in np.array_split(np.arange(count), most // 2):
        inside = values[part]
        if np.isnan(inside).all():
            indices.add(int(part[0]))  # a gap of the line stays a gap
        else:
            indices |= {int(part[np.nanargmin(inside)]), int(part[np.nanargmax(inside)])}
    return _at(trace, count, np.array(sorted(indices)))


def _at(trace: Mapping[str, Any], count: int, indices: "np.ndarray[Any, np.dtype[np.int64]]") -> dict[str, Any]:
    """The trace with these points only: every list that has one value a point, nested ones (marker, error bars) included."""

    def chosen(value: Any) -> Any:
        match value:
            case list() if len(value) == count:
                return [value[i] for i in indices]
            case dict():
                return {k: chosen(v) for k, v in value.items()}
            case _:
                return value

    return {k: chosen(v) for k, v in trace.items()}


def _rounded(values: Floats) -> list[float | None]:
    """The values with six digits; None for a value that is not finite. The array is formatted at once, because it is large.

    >>> _rounded(np.array([1 / 3, -0.0, np.nan, 2e9, 123456789.0]))
    [0.333333, -0.0, None, 2000000000.0, 123457000.0]
    """
    texts = (f"%.{_DIGITS}g " * len(values)) % tuple(values.tolist())
    return [number if math.isfinite(number) else None for number in map(float, texts.split())]


def _plain(value: Any) -> Any:
    match value:
        case {"dtype": str(dtype), "bdata": str(packed), **more}:  # how Plotly writes an array of numpy's
            array = np.frombuffer(b64decode(packed), dtype=dtype)
            shape = str(more.get("shape", len(array)))
            return _plain(array.reshape([int(length) for length in shape.split(",")]))
        case dict():
            return {str(k): _plain(v) for k, v in value.items()}
        case np.ndarray() if value.dtype.kind == "f" and value.ndim == 1:
            return _rounded(value)
        case np.ndarray() | list() | tuple():
            return [_plain(v) for v in value]
        case bool() | int() | str() | None:
            return value
        case float():
            return float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None
        case np.generic():
            return _plain(value.item())
        case _:
            raise TypeError(f"{type(value).__name__} in a figure")
