"""Two ways to show somebody a run: the link to it, where this address reaches them, and its document."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal
from urllib.parse import quote, urlencode, urlsplit

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core.run import Run
from kernelviz.ui.bench.link import VIEW
from kernelviz.ui.server.routes import base_path
from kernelviz.ui.shared import download_button, site, snapshot

Reach = Literal["this machine", "this network", "everywhere"]


def link(url: str, base: str, run_id: str, view: Mapping[str, str] | None = None) -> str:
    """The address of a run on the server whose page has that URL. `view`: filters of the page, as its address has them.

    >>> link("http://gpu.lab:8501/kv/history?q=x", "/kv", "20261121-1")
    'http://gpu.lab:8501/kv/?run=20261121-1'
    >>> link("http://gpu.lab:8501", "", "1", {"l2": "warm", "at": "4096x2 x"})
    'http://gpu.lab:8501/?run=1&l2=warm&at=4096x2%20x'
    """
    parts = urlsplit(url)
    params = {"run": run_id, **(view or {})}
    return f"{parts.scheme}://{parts.netloc}{base}/?{urlencode(params, quote_via=quote)}"


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


def button(bench: Bench, run_id: str, key: str, *, run: Run | None = None, variants: Sequence[str] = ()) -> None:
    """A button that opens the link and offers the run as a file.

    `run`: the one that the page shows, with the variants shown: its link keeps the view, and a part of it can be saved.
    """
    # What is inside is made when it is opened: by then every widget has written its choice into the address.
    popover = st.popover("Share", icon=":material/share:", key=f"{key}_popover", on_change="rerun")
    if not popover.open:
        return
    with popover:
        url = str(st.context.url or "")
        if url:
            _link(url, run_id, snapshot.query(VIEW) if run is not None else None)
        site.compare_link(run_id)
        if run is not None:
            snapshot.save(bench, run, variants)
            return
        st.markdown("**A file** of it: documents and Parquet hold everything and can be uploaded on any History page.")
        _as_file(bench, run_id, key=f"{key}_download")


def download(bench: Bench, run_id: str, key: str) -> None:
    """The run as a file in a format of one's choice; what is inside is made when it is opened."""
    popover = st.popover("Download", icon=":material/download:", key=f"{key}_popover", on_change="rerun")
    if popover.open:
        with popover:
            _as_file(bench, run_id, key)


@st.fragment
def _as_file(bench: Bench, run_id: str, key: str) -> None:
    to = snapshot.format_box(f"{key}_format")
    download_button.button(
        partial(bench.history.document, run_id, to.name),
        f"kernelviz-{run_id}{to.suffix}",
        to.media_type,
        choice=(run_id, to.name),
        key=key,
        icon=":material/download:",
    )


def _link(url: str, run_id: str, view: Mapping[str, str] | None) -> None:
    shown = "the run as it is shown here" if view else "the run"
    st.markdown(f"**The link** opens {shown} in any browser that reaches this server.")
    st.code(link(url, base_path(), run_id, view), language=None, wrap_lines=True)
    match reach(url):
        case "this machine":
            st.warning(
                "This address opens on this machine only. Send a file instead, or serve kernelviz where others "
                "reach it (behind a login: `docs/deploy.md`).",
                icon=":material/link_off:",
            )
        case "this network":
            st.caption("This address opens inside this network only.")
        case "everywhere":
            pass
