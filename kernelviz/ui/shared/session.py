"""What one browser session holds: its name in the queue, and the way to the bench."""

from __future__ import annotations

import uuid

import streamlit as st

import kernelviz.bench
from kernelviz.bench import Bench


def bench() -> Bench:
    """The process's bench; tests put another in its place through `kernelviz.bench.current`."""
    return kernelviz.bench.current()


def owner() -> str:
    """Who waits, for fair turns at the device: this browser session."""
    return str(st.session_state.setdefault("owner", f"browser {uuid.uuid4().hex[:8]}"))
