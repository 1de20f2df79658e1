"""Charts on a page: without a toolbar, with a text for screen readers, and with points that can be clicked."""

from typing import Any

import streamlit as st

from kernelviz.text import Text

NO_TOOLBAR = {"displayModeBar": False, "scrollZoom": False}
"""Plotly's configuration: no toolbar over the chart, and the mouse wheel scrolls the page."""


def draw(figure: Any, *, key: str, alt: str | Text) -> None:
    """Draw a chart. `alt`: what it shows, for screen readers."""
    st.plotly_chart(figure, key=key, alt=str(alt), config=NO_TOOLBAR)


def draw_clickable(figure: Any, *, key: str, alt: str | Text, config: dict[str, Any] = NO_TOOLBAR) -> str | None:
    """Draw a chart; returns the key of the case whose point was clicked last, None without one."""
    event: Any = st.plotly_chart(
        figure, key=key, alt=str(alt), config=config, on_select="rerun", selection_mode="points"
    )
    points = event.selection.points if event is not None else []
    return str(points[-1].get("customdata")) if points else None
