"""Two ways to show somebody a run: the link to it, where this address reaches them, and its document."""

from __future__ import annotations

import ipaddress
from functools import partial
from typing import Literal
from urllib.parse import quote, urlsplit

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.ui.routes import base_path

Reach = Literal["this machine", "this network", "everywhere"]


def link(url: str, base: str, run_id: str) -> str:
    """The address of a run on the server whose page has that URL.

    >>> link("http://gpu.lab:8501/kv/history?q=x", "/kv", "20261121-1")
    'http://gpu.lab:8501/kv/?run=20261121-1'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{base}/?run={quote(run_id)}"


def reach(url: str) -> Reach:
    """From where an address can be opened, as far as it tells by itself.

    >>> reach("http://localhost:8501"), reach("http://10.0.0.3/x"), reach("https://kernels.example.org")
    ('this machine', 'this network', 'everywhere')
    """
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return "this machine"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "everywhere" if "." in host else "this network"
    if address.is_loopback or address.is_unspecified:
        return "this machine"
    return "this network" if address.is_private or address.is_link_local else "everywhere"


def button(bench: Bench, run_id: str, key: str) -> None:
    """A button that opens the link and offers the document."""
    with st.popover("Share", icon=":material/share:", key=f"{key}_popover"):
        url = str(st.context.url or "")
        if url:
            _link(url, run_id)
        st.markdown(
            "**The document** holds everything: plan, samples, machine. Anybody can upload it on their History page."
        )
        download(bench, run_id, key=f"{key}_download")


def download(bench: Bench, run_id: str, key: str) -> None:
    """The run as a file; it is made when somebody asks for it."""
    st.download_button(
        "Download document",
        data=partial(bench.history.document, run_id),
        file_name=f"kernelviz-{run_id}.json",
        mime="application/json",
        key=key,
        icon=":material/download:",
        on_click="ignore",
    )


def _link(url: str, run_id: str) -> None:
    st.markdown("**The link** opens the run in any browser that reaches this server.")
    st.code(link(url, base_path(), run_id), language=None, wrap_lines=True)
    match reach(url):
        case "this machine":
            st.warning(
                "This address opens on this machine only. Send the document instead, or serve kernelviz where others "
                "reach it (behind a login: `docs/deploy.md`).",
                icon=":material/link_off:",
            )
        case "this network":
            st.caption("This address opens inside this network only.")
        case "everywhere":
            pass
