"""The lists of the page History: stored runs, recorded runs that came with kernelviz, deleted runs."""

from typing import Literal

import streamlit as st

from kernelviz.bench import Bench, RunSummary
from kernelviz.bench.history import RESTORABLE_DAYS
from kernelviz.bench.roofline import unknown
from kernelviz.core import LIVING, Status, units
from kernelviz.text.events import describe_waiting
from kernelviz.text.text import Text, join
from kernelviz.ui.history import one_run
from kernelviz.ui.shared import live_progress, missing_run, share, site, view_filters
from kernelviz.ui.shared.text import plain, when

PER_PAGE = 20
_BADGES: dict[Status, tuple[Literal["green", "orange", "blue"], str]] = {
    "finished": ("green", ":material/check_circle:"),
    "running": ("blue", ":material/progress_activity:"),
    "queued": ("blue", ":material/progress_activity:"),
    "cancelled": ("orange", ":material/pause_circle:"),
    "interrupted": ("orange", ":material/pause_circle:"),
}
"""Colour and icon of each status of a run."""


def badge_of(status: Status) -> tuple[Literal["green", "orange", "blue"], str]:
    """Colour and icon of the badge of a status."""
    return _BADGES[status]


def search_box(what: str = "op") -> str:
    """The search words, which the address repeats as `q`. `what`: what a run of the list is of."""
    text: str = st.text_input(
        "Search",
        key="q",
        bind="query-params",
        placeholder=f"Search in title, note, {what}, device, status and id",
        label_visibility="collapsed",
        icon=":material/search:",
    )
    return text.strip()


def say_missing(bench: Bench) -> None:
    """Name the run of the address if it is not here."""
    wanted = st.query_params.get("run", "")
    if wanted and unknown(bench, [wanted]):
        missing_run.say(wanted, on_history=True)


def run_list(bench: Bench, search: str) -> None:
    """The runs that match, newest first, PER_PAGE at a time. The chosen run shows its actions."""
    count = bench.history.count(search)
    if count == 0:
        if not (search and bench.history.shipped(search)):
            _empty_state(search)
        return
    matching = f" matching “{plain(search)}”" if search else ""
    st.caption(f"{units.counted(count, 'run')}{matching}, newest first")
    listing = st.container(gap="small", key="runs")
    pages = -(-count // PER_PAGE)
    page = _page(pages, search) if pages > 1 else 1
    with listing:
        for run in bench.history.find(search, limit=PER_PAGE, offset=(page - 1) * PER_PAGE):
            _row(bench, run)


def _page(pages: int, search: str) -> int:
    """The page of the list, which the address repeats as `page`. Each search has its own key, so it starts on its first page."""
    key, first = f"page_{search}", 1
    if key in st.session_state:
        first = min(int(st.session_state[key]), pages)
    elif not any(str(k).startswith("page_") for k in st.session_state):
        first = _page_of_address(st.query_params.get("page", ""), pages)
    # As default, because Streamlit warns about a widget with both a default and a state. For a widget that exists already,
    # the default only replaces a page that no longer exists.
    page: int = st.pagination(pages, default=first, key=key)
    view_filters.keep("page", str(page), "1")
    return page


def _page_of_address(param: str, pages: int) -> int:
    """The page that the address names, at most the last one.

    >>> [_page_of_address(text, 4) for text in ("3", "9", "9" * 5000, "0", "²", "-1", "")]
    [3, 4, 4, 1, 1, 1, 1]
    """
    if not (param.isascii() and param.isdigit()):
        return 1
    return min(max(int(param), 1), pages) if len(param) < 10 else pages


def _empty_state(search: str) -> None:
    if search:
        st.info(
            f"No run matches “{plain(search)}”. A run matches if each word occurs in its title, note, op, device, status or "
            "id. Try fewer words."
        )
        return
    with st.container(border=True, key="no_runs"):
        st.markdown(
            "**No run is stored on this server yet.** Start one on the page Bench or with `kernelviz run`, or upload a file: "
            "it appears here at once."
        )
        st.page_link(site.page("bench"), label="Measure a run", icon=":material/play_arrow:")


def _row(bench: Bench, run: RunSummary) -> None:
    chosen = st.query_params.get("run") == run.id
    with st.container(border=True, gap="xsmall", key=f"run_{run.id}"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            _name_and_facts(run, _waiting(bench, run))
            if run.status == "finished" and run.broken:
                st.badge(f"{run.broken} failed", color="orange", icon=":material/error:")
            elif run.status == "finished" and run.done and run.unavailable == run.done:
                st.badge("nothing measured", color="orange", icon=":material/error:")
            else:
                color, icon = _BADGES[run.status]
                st.badge(run.status, color=color, icon=icon)
            what = "Change its title or note; measure it again, share, download or delete it."
            one_run.manage_button(run.id, chosen=chosen, help=what)
        if chosen:
            one_run.run_actions(bench, run)
        elif run.note:
            st.caption(plain(run.note if len(run.note) <= 200 else f"{run.note[:199]}…"))


def _waiting(bench: Bench, run: RunSummary) -> Text:
    """How long a run that is not over still takes, or its position in the queue."""
    progress = live_progress.progress_of(bench, run.id) if run.status in LIVING else None
    if progress is None:
        return Text("")
    return describe_waiting(progress.status, progress.ahead, progress.remaining_s)


def _name_and_facts(run: RunSummary, more: Text) -> None:
    with st.container(gap=None, width="stretch"):
        site.run_link(f"**{plain(run.name)}**", run.id)
        st.caption(str(join(" · ", (_facts(run), plain(more)))))


def _facts(run: RunSummary) -> str:
    return plain(f"{run.op} · {run.device} · {when(run.created_at)} · {run.case_counts}")


def shipped_runs(bench: Bench, search: str) -> None:
    """The recorded runs that came with kernelviz and match."""
    runs = bench.history.shipped(search)
    if not runs:
        return
    st.markdown("##### Recorded runs that came with kernelviz")
    if search:
        st.caption(f"{units.counted(len(runs), 'run')} matching “{plain(search)}”")
    with st.container(gap="xsmall", key="shipped"):
        for run in runs:
            with st.container(horizontal=True, vertical_alignment="center", gap="small", border=True):
                _name_and_facts(run, Text(""))
                share.download(bench, run.id, key=f"download_{run.id}")


def deleted_runs(bench: Bench) -> None:
    """Deleted runs, which can be restored."""
    runs = bench.history.deleted()
    if not runs:
        return
    with st.expander(f"Deleted ({len(runs)})", key="deleted", icon=":material/delete:"):
        st.caption(
            f"A deleted run can be restored for {RESTORABLE_DAYS} days. After that, the next start of the server removes it."
        )
        for run in runs:
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.markdown(f"{plain(run.name)} :gray[{_facts(run)} · deleted {when(run.deleted_at)}]", width="stretch")
                if st.button("Restore", key=f"restore_{run.id}", icon=":material/undo:"):
                    bench.history.restore(run.id)
                    st.rerun()
