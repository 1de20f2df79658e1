"""The lists of the History page: runs of this store, runs that came with the package, deleted ones."""

from __future__ import annotations

from typing import Literal, assert_never

import streamlit as st

from kernelviz.bench import Bench, RunSummary
from kernelviz.bench.history import KEPT_DAYS
from kernelviz.ui.history import one_run
from kernelviz.ui.shared import share, site, view_filters
from kernelviz.ui.shared.text import plain, when

PER_PAGE = 20
Color = Literal["green", "orange", "blue", "red", "gray"]


def search_box() -> str:
    """Words to search for, kept in the address as `q`."""
    text: str = st.text_input(
        "Search",
        key="q",
        bind="query-params",
        placeholder="Search title, note, op, device, status, id",
        label_visibility="collapsed",
        icon=":material/search:",
    )
    return text.strip()


def show(bench: Bench, search: str) -> None:
    """The newest runs that match, a page of them at a time; the chosen one with what can be done with it."""
    count = bench.history.count(search)
    if count == 0:
        _nothing(search)
        return
    matching = f" matching “{plain(search)}”" if search else ""
    st.caption(f"{count} run{'s' if count != 1 else ''}{matching}, the newest first")
    listing = st.container(gap="small", key="runs")
    pages = -(-count // PER_PAGE)
    page = _page(pages, search) if pages > 1 else 1
    with listing:
        for run in bench.history.find(search, limit=PER_PAGE, offset=(page - 1) * PER_PAGE):
            _row(bench, run)


def _page(pages: int, search: str) -> int:
    """The page of the list, kept in the address as `page`. A key for each search: another one begins on its first page."""
    key, asked = f"page_{search}", st.query_params.get("page", "")
    if key in st.session_state:
        first = min(int(st.session_state[key]), pages)
    else:
        fresh = not any(str(k).startswith("page_") for k in st.session_state)
        first = _asked_page(asked, pages) if fresh else 1
    # As its default, since a widget whose state is also set warns in the log; of one that is drawn again only a page that is
    # gone is replaced by it.
    page: int = st.pagination(pages, default=first, key=key)
    view_filters.keep("page", str(page), "1")
    return page


def _asked_page(asked: str, pages: int) -> int:
    """The page that an address names, the last one where there are not so many.

    >>> [_asked_page(text, 4) for text in ("3", "9", "9" * 5000, "0", "²", "-1", "")]
    [3, 4, 4, 1, 1, 1, 1]
    """
    if not (asked.isascii() and asked.isdigit()):
        return 1
    return min(max(int(asked), 1), pages) if len(asked) < 10 else pages


def _nothing(search: str) -> None:
    if search:
        st.info(f"No run matches “{plain(search)}”. Every word must occur in title, note, op, device, status or id.")
        return
    with st.container(border=True, key="no_runs"):
        st.markdown(
            "**No run is kept here yet.** Runs appear as soon as they are started, on this page or by `kernelviz run`."
        )
        st.page_link(site.page("bench"), label="Measure something", icon=":material/play_arrow:")


def _row(bench: Bench, run: RunSummary) -> None:
    chosen = one_run.chosen() == run.id
    with st.container(border=True, gap="xsmall", key=f"run_{run.id}"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            with st.container(gap=None, width="stretch"):
                site.run_link(f"**{plain(run.name)}**", run.id)
                st.caption(_facts(run))
            _badge(run)
            if st.button(
                "Close" if chosen else "Manage",
                key=f"manage_{run.id}",
                type="tertiary",
                icon=":material/expand_less:" if chosen else ":material/tune:",
                help="Name, note, share, resume, delete",
            ):
                one_run.choose(None if chosen else run.id)
                st.rerun()
        if run.note and not chosen:
            st.caption(plain(run.note if len(run.note) <= 200 else f"{run.note[:199]}…"))
        if chosen:
            one_run.panel(bench, run)


def _facts(run: RunSummary) -> str:
    return plain(f"{run.op} · {run.device} · {when(run.created_at)} · {run.cases_words}")


def badge(run: RunSummary) -> tuple[str, Color, str]:
    """How the run stands: word, colour, symbol."""
    match run.status:
        case "finished" if run.failed == 0:
            return "finished", "green", ":material/check_circle:"
        case "finished":
            return f"{run.failed} failed", "orange", ":material/error:"
        case "running" | "queued":
            return run.status, "blue", ":material/progress_activity:"
        case "cancelled" | "interrupted":
            return run.status, "orange", ":material/pause_circle:"
        case _:
            assert_never(run.status)


def _badge(run: RunSummary) -> None:
    words, color, icon = badge(run)
    st.badge(words, color=color, icon=icon)


def shipped(bench: Bench) -> None:
    """The runs that came with the package."""
    found = bench.history.shipped()
    if not found:
        return
    st.markdown("##### Came with kernelviz")
    with st.container(gap="xsmall", key="shipped"):
        for run in found:
            with st.container(horizontal=True, vertical_alignment="center", gap="small", border=True):
                with st.container(gap=None, width="stretch"):
                    site.run_link(f"**{plain(run.name)}**", run.id)
                    st.caption(_facts(run))
                share.download(bench, run.id, key=f"download_{run.id}")


def deleted(bench: Bench) -> None:
    """Deleted runs, each of which can be brought back."""
    found = bench.history.deleted()
    if not found:
        return
    with st.expander(f"Deleted ({len(found)})", key="deleted", icon=":material/delete:"):
        st.caption(f"Removed for good {KEPT_DAYS} days after they were deleted, when a server starts.")
        for run in found:
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.markdown(f"{plain(run.name)} :gray[{_facts(run)} · deleted {when(run.deleted_at)}]", width="stretch")
                if st.button("Restore", key=f"restore_{run.id}", icon=":material/undo:"):
                    bench.history.restore(run.id)
                    st.rerun()
