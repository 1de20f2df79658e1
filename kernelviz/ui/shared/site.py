"""The pages of the app. A page is one file in pages/ and one line here."""

from pathlib import Path

import streamlit as st
from streamlit.navigation.page import StreamlitPage

import kernelviz
from kernelviz.bench import Bench
from kernelviz.core import UnknownRun

_PACKAGE = Path(kernelviz.__file__).parent

_PAGES = {
    "bench": ("Bench", ":material/speed:"),
    "gallery": ("Gallery", ":material/grid_view:"),
    "roofline": ("Roofline", ":material/stacked_line_chart:"),
    "code": ("Code", ":material/code:"),
    "ladder": ("Ladder", ":material/stairs:"),
    "autotune": ("Autotune", ":material/tune:"),
    "fusion": ("Fusion", ":material/merge:"),
    "model": ("Model", ":material/layers:"),
    "libraries": ("Libraries", ":material/balance:"),
    "compare": ("Compare", ":material/compare_arrows:"),
    "claims": ("Claims", ":material/fact_check:"),
    "workloads": ("Workloads", ":material/hub:"),
    "device": ("Device", ":material/memory:"),
    "history": ("History", ":material/history:"),
    "method": ("Method", ":material/straighten:"),
}
"""By file name: title and icon, in the order of the navigation."""
DEFAULT = "bench"
"""The page at the root."""


def pages_folder() -> Path:
    """The folder of the pages: beside the package in a checkout, inside it in a wheel."""
    installed = _PACKAGE / "_site" / "pages"
    return installed if installed.is_dir() else _PACKAGE.parent / "pages"


def page(name: str) -> StreamlitPage:
    """A page, as a target of links."""
    title, icon = _PAGES[name]
    return st.Page(pages_folder() / f"{name}.py", title=title, icon=icon, default=name == DEFAULT)


def run_link(label: str, run_id: str) -> None:
    """A link that opens a run. `label` is Markdown."""
    st.page_link(page("bench"), label=label, query_params={"run": run_id}, icon=":material/monitoring:")


def workload_link(label: str, run_id: str) -> None:
    """A link that opens a run of a workload. `label` is Markdown."""
    st.page_link(page("workloads"), label=label, query_params={"of_run": run_id}, icon=":material/hub:")


def autotune_link(run_id: str) -> None:
    """A link that opens a tuning on the page Autotune."""
    st.page_link(
        page("autotune"), label="Open on Autotune", query_params={"run": run_id}, icon=":material/tune:",
        help="What each parameter is worth, failures by reason, and how the choice does at other shapes.",
    )  # fmt: skip


def history_link() -> None:
    """A link to the runs of this server, and the upload of files."""
    st.page_link(page("history"), label="Runs on this server, and upload", icon=":material/history:")


_RUN_AS = {"roofline": "runs", "compare": "b", "workloads": "of_run"}
"""By page whose address has another parameter for runs: its name."""


def open_run_of_address(present: StreamlitPage, bench: Bench) -> None:
    """Open the run that the address names as `run` on a page whose address has another parameter for runs, or none.

    Roofline and Compare draw that run, and Workloads shows one unless it is of Bench. Other pages open it on Bench:
    Streamlit writes a link to the first page as `?run=…`, which a browser without `start.js` resolves against the present page
    when the link is copied or opened in a new tab.
    """
    run_id = st.query_params.get("run")
    parameter = _RUN_AS.get(present.url_path)
    if run_id and parameter is not None and not (present.url_path == "workloads" and _is_of_bench(bench, run_id)):
        del st.query_params["run"]
        if parameter not in st.query_params:
            st.query_params[parameter] = run_id
    elif run_id and present.url_path not in ("", "autotune", "code", "fusion", "history", "ladder"):
        st.switch_page(page("bench"), query_params={"run": run_id})


def _is_of_bench(bench: Bench, run_id: str) -> bool:
    try:
        bench.history.summary(run_id)
    except UnknownRun:
        return False
    return True


def compare_link(run_id: str) -> None:
    """A link that compares a run with another one; the page proposes the previous run of the same op."""
    st.page_link(page("compare"), label="Compare with…", query_params={"b": run_id}, icon=":material/compare_arrows:")


def compare_variants_link(run_id: str, first: str, second: str) -> None:
    """A link that compares two variants of a run."""
    st.page_link(
        page("compare"), label="Compare two variants", icon=":material/compare_arrows:",
        query_params={"a": run_id, "b": run_id, "variant_a": first, "variant_b": second},
    )  # fmt: skip


def code_link(
    label: str,
    run_id: str,
    variant: str,
    problem: str,
    *,
    other: tuple[str, str, str] | None = None,
    kind: str | None = None,
) -> None:
    """A link to the code of a case. `label` is Markdown. `other`: run, variant and problem of a case to compare it with. `kind`:
    the text that is shown first."""
    sides = {"run": run_id, "variant": variant, "problem": problem}
    if other is not None:
        sides |= dict(zip(("run_b", "variant_b", "problem_b"), other, strict=True))
    st.page_link(
        page("code"), label=label, query_params=sides | ({"kind": kind} if kind else {}), icon=":material/code:"
    )


def pages() -> list[StreamlitPage]:
    """All pages in the order of the navigation."""
    return [page(name) for name in _PAGES]
