"""View parameters: set by widgets, and repeated in the address unless they have their default value."""

from collections.abc import Mapping, Sequence

import streamlit as st

from kernelviz.core.errors import nearest
from kernelviz.ui.shared import callbacks
from kernelviz.ui.shared.text import plain

CHART = {"displayModeBar": False, "scrollZoom": False}
"""Plotly's configuration on every page: no toolbar over a chart, and the mouse wheel scrolls the page."""


def seed(key: str, options: Sequence[str], default: str) -> None:
    """Set the value of the widget `key` before it is drawn: the value of the address, else the default. An unknown value is
    reported, and the nearest option is used.

    Until the user chooses a value, the widget follows its default, which may change while a run is measured."""
    value, followed = st.session_state.get(key), f"{key}_followed"
    if value is not None and value != st.session_state.get(followed) and not callbacks.is_stale(key, value):
        st.session_state.pop(followed, None)
    if value in options and (value == default or followed not in st.session_state):
        return
    if value is not None:
        callbacks.replaced(key, value)
    param = st.query_params.get(key) if value is None else None
    used = param if param in options else default
    if param is not None and param not in options:
        used = nearest(param, options) or default
        st.caption(
            f":orange[{plain(key)} {plain(repr(param))} is not among {plain(', '.join(options))}: showing {plain(used)}]"
        )
    if used == default:
        st.session_state[followed] = default
    st.session_state[key] = used


def keep(key: str, value: str | None, default: str) -> None:
    """Write the value of the widget into the address; remove it if it is the default."""
    if value is None or value == default:
        st.query_params.pop(key, None)
    elif st.query_params.get(key) != value:
        st.query_params[key] = value


def follow(clicks: Mapping[str, str | None], pending: str) -> None:
    """Show the case that was clicked since the last redraw. `clicks`: the selection of each chart or table, by the key under
    which the session remembers it. The next redraw finds the clicked case in the session state under `pending`."""
    for name, selection in clicks.items():
        if st.session_state.get(name) == selection:
            continue
        st.session_state[name] = selection
        if selection is not None and selection != st.session_state.get("case"):
            st.session_state[pending] = selection
            st.rerun()
