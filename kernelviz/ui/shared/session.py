"""The bench of the process, and the name of this browser in the queue."""

import uuid

import streamlit as st

import kernelviz.bench
from kernelviz.bench import Bench
from kernelviz.ui.server.browser_cookie import named_by


def bench() -> Bench:
    """The bench of the process; tests replace it through `kernelviz.bench.current`."""
    return kernelviz.bench.current()


def owner() -> str:
    """The name of this browser, by which the queue alternates between users; of this session if the browser keeps no cookies."""
    if "owner" not in st.session_state:
        st.session_state["owner"] = named_by(st.context.cookies.to_dict()) or f"browser {uuid.uuid4().hex[:8]}"
    return str(st.session_state["owner"])
