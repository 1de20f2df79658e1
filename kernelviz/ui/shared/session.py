"""The bench of the process, and the name of this browser session in the queue."""

import uuid

import streamlit as st

import kernelviz.bench
from kernelviz.bench import Bench


def bench() -> Bench:
    """The bench of the process; tests replace it through `kernelviz.bench.current`."""
    return kernelviz.bench.current()


def owner() -> str:
    """The name of this browser session, by which the queue alternates between users."""
    return str(st.session_state.setdefault("owner", f"browser {uuid.uuid4().hex[:8]}"))
