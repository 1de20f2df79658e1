"""Two ways to share a run: its link, and the run as a file."""

import ipaddress
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal
from urllib.parse import quote, urlencode, urlsplit

import streamlit as st
from streamlit.elements.lib.mutable_popover_container import PopoverContainer

from kernelviz.bench import Bench
from kernelviz.core import Run
from kernelviz.formats import describe_unreadable
from kernelviz.ui.bench.link import VIEW
from kernelviz.ui.server.assets import base_path
from kernelviz.ui.shared import card, download_button, site, snapshot


def link(url: str, base: str, run_id: str, view: Mapping[str, str] | None = None) -> str:
    """The address of a run on the server whose page has that URL. `view`: the view parameters of the page's address.

    >>> link("http://gpu.lab:8501/kv/history?q=x", "/kv", "20261121-1")
    'http://gpu.lab:8501/kv/?run=20261121-1'
    >>> link("http://gpu.lab:8501", "", "1", {"l2": "warm", "at": "4096x2 x"})
    'http://gpu.lab:8501/?run=1&l2=warm&at=4096x2%20x'
    """
    return page_link(url, base, "", {"run": run_id, **(view or {})})


def page_link(url: str, base: str, page: str, view: Mapping[str, str]) -> str:
    """The address of a page on the server whose page has that URL, with these parameters.

    >>> page_link("http://gpu.lab:8501/x", "", "workloads", {"of_run": "w-1"})
    'http://gpu.lab:8501/workloads?of_run=w-1'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{base}/{page}?{urlencode(view, quote_via=quote)}"


def reach(url: str) -> Literal["this machine", "this network", "everywhere"]:
    """From where an address can be opened, as far as the host name shows.

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


def button(key: str) -> PopoverContainer:
    """A button that opens an empty box, which `fill` fills."""
    return st.popover("Share", icon=":material/share:", key=f"{key}_popover", on_change="rerun")


def fill(
    popover: PopoverContainer, bench: Bench, run_id: str, *, run: Run | None = None, variants: Sequence[str] = ()
) -> None:
    """Show the link of a run and the run as a file, if the box is open.

    `run`: the run that the page shows, with the visible `variants`. Its link keeps the view, and a part of it can be saved. The
    view is read from the address, so fill the box after the last widget of the page has written its value there.
    """
    if not popover.open:
        return
    with popover:
        url = str(st.context.url or "")
        if url:
            _link(url, run_id, view_parameters(VIEW) if run is not None else None)
        site.compare_link(run_id)
        if run is not None:
            address = link(url, base_path(), run_id, view_parameters(VIEW)) if url else ""
            card.card_of_run(bench, run, variants, address if address and reach(url) != "this machine" else "")
            snapshot.save(bench, run, variants)
            return
        st.markdown(
            "**File**: the whole run. JSON and Parquet files can be uploaded again on the page History of any kernelviz server."
        )
        _as_file(bench, run_id, key=f"share_{run_id}_download")


def view_parameters(names: Sequence[str]) -> dict[str, str]:
    """The view parameters of the address."""
    return {name: st.query_params[name] for name in names if name in st.query_params}


def download(bench: Bench, run_id: str, key: str) -> None:
    """A button with the run as a file in the chosen format. Its content is drawn when it opens."""
    popover = st.popover("Download", icon=":material/download:", key=f"{key}_popover", on_change="rerun")
    if popover.open:
        with popover:
            _as_file(bench, run_id, key)


@st.fragment
def _as_file(bench: Bench, run_id: str, key: str) -> None:
    export = snapshot.format_box(f"{key}_format")
    download_button.button(
        partial(bench.history.document, run_id, export.name),
        f"kernelviz-{run_id}{export.suffix}",
        export.media_type,
        choice=(run_id, export.name),
        key=key,
        icon=":material/download:",
        warning=partial(describe_unreadable, export.name),
    )


def _link(url: str, run_id: str, view: Mapping[str, str] | None) -> None:
    st.markdown(
        f"**Link**: opens the run{' with the current view' if view else ''} in any browser that can reach this server."
    )
    st.code(link(url, base_path(), run_id, view), language=None, wrap_lines=True)
    distance = reach(url)
    if distance == "this machine":
        st.warning(
            "This link works on this machine only. Send a file instead, or run kernelviz on a server that others can "
            "reach (`docs/deploy.md` shows how, with a login).",
            icon=":material/link_off:",
        )
    elif distance == "this network":
        st.caption("This link works inside this network only.")
