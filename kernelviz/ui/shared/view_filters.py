"""Filters of the view: chosen by widgets, repeated in the address unless they are at their default, no part of the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from kernelviz.core.errors import nearest
from kernelviz.ui.shared import callbacks
from kernelviz.ui.shared.text import plain

CHART = {"displayModeBar": False, "scrollZoom": False}
"""How Plotly behaves on every page: no bar of tools over a chart, and the wheel scrolls the page."""


def seed(key: str, options: Sequence[str], default: str) -> None:
    """Before the widget `key` exists: take the address's value, else the default; say so when the value is none of them.

    Until somebody chooses, the widget follows its default, which changes while a run goes."""
    held, followed = st.session_state.get(key), f"{key}_followed"
    if held is not None and held != st.session_state.get(followed) and not callbacks.is_stale(key, held):
        st.session_state.pop(followed, None)
    if held in options and (held == default or followed not in st.session_state):
        return
    if held is not None:
        callbacks.replaced(key, held)
    asked = st.query_params.get(key) if held is None else None
    used = asked if asked in options else default
    if asked is not None and asked not in options:
        used = nearest(asked, options) or default
        st.caption(
            f":orange[{plain(key)} {plain(repr(asked))} is not among {plain(', '.join(options))}: showing {plain(used)}]"
        )
    if used == default:
        st.session_state[followed] = default
    st.session_state[key] = used


def keep(key: str, value: str | None, default: str) -> None:
    """After the widget: write its value into the address, or nothing when it is the default."""
    if value is None or value == default:
        st.query_params.pop(key, None)
    elif st.query_params.get(key) != value:
        st.query_params[key] = value


def follow(clicks: Mapping[str, str | None], pending: str) -> None:
    """Show the case that was clicked since the last redraw. `clicks`: what is chosen now in each chart or table, by the name
    under which it is remembered; the redraw finds the case in the session's state under `pending`."""
    for name, now in clicks.items():
        if st.session_state.get(name) == now:
            continue
        st.session_state[name] = now
        if now is not None and now != st.session_state.get("case"):
            st.session_state[pending] = now
            st.rerun()
