"""Charts on a page: without a toolbar, with a text for screen readers, and with points that can be clicked."""

from typing import Any

import streamlit as st

NO_TOOLBAR = {"displayModeBar": False, "scrollZoom": False}
"""Plotly's configuration: no toolbar over the chart, and the mouse wheel scrolls the page."""


def draw(figure: Any, *, key: str, alt: str) -> None:
    """Draw a chart. `alt`: what it shows, for screen readers."""
    st.plotly_chart(figure, key=key, alt=alt, config=NO_TOOLBAR)


def draw_clickable(figure: Any, *, key: str, alt: str, config: dict[str, Any] = NO_TOOLBAR) -> str | None:
    """Draw a chart; returns the key of the case whose point was clicked last, None without one."""
    event: Any = st.plotly_chart(figure, key=key, alt=alt, config=config, on_select="rerun", selection_mode="points")
    points = event.selection.points if event is not None else []
    return str(points[-1].get("customdata")) if points else None
