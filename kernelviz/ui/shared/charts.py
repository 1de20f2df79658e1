"""The one place that draws charts on pages: a component that redraws a chart in place by our own bundle of Plotly.

The chart can be used by mouse, touch and keyboard, follows the theme, and is saved as a picture (formats/browser/chart.js).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeAlias

import msgspec
import plotly.graph_objects as go
import plotly.io as pio
import streamlit as st

from kernelviz.core import Run
from kernelviz.core.run_cache import RunCache
from kernelviz.formats.browser import bundle, figure_json
from kernelviz.text import Text
from kernelviz.ui.server import assets

Chart: TypeAlias = go.Figure | partial[go.Figure]
"""A figure, or better `partial(plot, runs, …)`, a function of kernelviz.plots with its arguments: it is drawn once for all
sessions, because the function and the arguments are everything that it depends on."""
_encoded_charts: RunCache[tuple[str, int]] = RunCache(most=64 * 2**20, size=lambda encoded: len(encoded[0]))
"""Figures as they are sent to browsers, JSON. The three of the page Bench have 0.2 MB."""

# The pages draw without Plotly's default template, and copying it took a fifth of the time of a redraw (0.04 of 0.18 s).
pio.templates.default = None

_COLOURS = """
.chart-box { --chart-ink: var(--st-text-color); --chart-paper: var(--st-background-color); --chart-line: var(--st-border-color);
  --chart-soft: light-dark(#434A47, #CDD4D0); --chart-main: var(--st-primary-color); --chart-font: var(--st-font); }
"""
_NO_NAME = re.compile(r"[^a-z0-9]+")
_MOST_LETTERS = 80
_chart = st.components.v2.component(
    "kernelviz_chart", html='<div class="chart-box"></div>', css=_COLOURS + bundle.chart_style(), js=assets.LOADER,
    isolate_styles=False,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Picture:
    """What a saved picture of a chart says besides the chart. The link in it is the address of the page."""

    title: str
    facts: str
    """Device and date."""
    file: str
    """The name of the file, without its suffix."""


def picture(title: str | Text, device: str, date: str) -> Picture:
    """A picture of a chart of one device. `date`: when it was measured, as ISO 8601; its day is shown.

    >>> picture("add: time by size", "NVIDIA H200", "2026-11-21T10:42:00+00:00")
    Picture(title='add: time by size', facts='NVIDIA H200 · measured on 2026-11-21', file='kernelviz-add-time-by-size')
    """
    facts = f"{device} · measured on {date[:10]}"
    return Picture(str(title), facts, f"kernelviz-{_NO_NAME.sub('-', str(title).lower()).strip('-')[:_MOST_LETTERS]}")


def picture_of(runs: Sequence[Run], title: str | Text) -> Picture:
    """A picture of a chart of some runs."""
    names = " and ".join(dict.fromkeys(run.title or run.plan.op for run in runs))
    facts = [f"{run.environment.device.name} · measured on {run.created_at[:10]}" for run in runs]
    one = picture(f"{names}: {title}", "", "")
    return Picture(one.title, "; ".join(dict.fromkeys(facts)), one.file)


def draw(figure: Chart, *, key: str, alt: str | Text, picture: Picture, zoom: bool = False) -> None:
    """Draw a chart. `alt`: what it shows, for screen readers. `zoom`: with buttons that zoom."""
    _draw(figure, key, alt, picture, zoom=zoom, clickable=False, selected=None)


def draw_clickable(
    figure: Chart,
    *,
    key: str,
    alt: str | Text,
    picture: Picture,
    select: Callable[[str | None], None],
    current: str | None,
    name: Callable[[str], str] = str,
    zoom: bool = False,
) -> None:
    """Draw a chart whose points can be selected; the selection stays until the point is clicked again or Escape is pressed.

    `select` is called before the next redraw with the customdata of the selected points, or None if the selection ended.
    `current`: the customdata of what the page shows. If it is no longer the selected one, because a box was changed, nothing is
    selected. `name`: what points of several runs have in common, for example their size; another run keeps it selected.
    """
    selected = st.session_state.get(_selection(key))
    is_selected = current is not None and selected == name(current)
    _draw(
        figure, key, alt, picture, zoom=zoom, clickable=True, selected=current if is_selected else None,
        on_clicked_change=partial(_clicked, key, select, name),
    )  # fmt: skip


def _draw(
    figure: Chart,
    key: str,
    alt: str | Text,
    picture: Picture,
    *,
    zoom: bool,
    clickable: bool,
    selected: str | None,
    **callbacks: Any,
) -> None:
    content, height = _content(figure)
    _chart(
        key=key,
        height=height,
        data={
            "module": assets.path(assets.CHART),
            "library": assets.path(assets.PLOTLY),
            "figure": content,
            "height": height,
            "alt": str(alt),
            "name": key,
            "about": asdict(picture),
            "clickable": clickable,
            "selected": selected,
            "zoom": zoom,
        },
        **callbacks,
    )


def _content(figure: Chart) -> tuple[str, int]:
    """The figure as JSON, and its height."""
    if isinstance(figure, partial):
        parts = (figure.func, figure.args, figure.keywords)
        return _encoded_charts.get(parts, lambda: _encoded(figure()))
    return _encoded(figure)


def _encoded(figure: go.Figure) -> tuple[str, int]:
    content = figure_json.drawable(figure)
    return msgspec.json.encode(content).decode(), int(content["layout"]["height"])


def _selection(key: str) -> str:
    return f"{key}_selection"


def _clicked(key: str, select: Callable[[str | None], None], name: Callable[[str], str]) -> None:
    click = st.session_state[key]["clicked"]
    chosen = None if click is None or click["key"] is None else str(click["key"])
    st.session_state[_selection(key)] = None if chosen is None else name(chosen)
    select(chosen)
