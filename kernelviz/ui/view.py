"""Filters of the view: chosen by widgets, repeated in the address unless they are at their default, no part of the plan."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from kernelviz.core.errors import nearest
from kernelviz.ui.text import plain


def seed(key: str, options: Sequence[str], default: str) -> None:
    """Before the widget `key` exists: take the address's value, else the default; say so when the value is none of them."""
    held = st.session_state.get(key)
    if held in options:
        return
    asked = st.query_params.get(key) if held is None else None
    used = asked if asked in options else default
    if asked is not None and asked not in options:
        used = nearest(asked, options) or default
        st.caption(
            f":orange[{plain(key)} {plain(repr(asked))} is not among {plain(', '.join(options))}: showing {plain(used)}]"
        )
    st.session_state[key] = used


def keep(key: str, value: str | None, default: str) -> None:
    """After the widget: write its value into the address, or nothing when it is the default."""
    if value is None or value == default:
        st.query_params.pop(key, None)
    elif st.query_params.get(key) != value:
        st.query_params[key] = value
