"""The actions of one run on the page History: title, note, open, resume, measure again, compare, share, delete with undo."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from kernelviz.bench import Bench, RunSummary
from kernelviz.bench.history import NOTE_CHARACTERS, RESTORABLE_DAYS, TITLE_CHARACTERS
from kernelviz.bench.regression import again
from kernelviz.core import LIVING, KernelvizError, units
from kernelviz.ui.shared import session, share, site, view_filters
from kernelviz.ui.shared.text import plain

_CONFIRMING, _UNDO = "history_confirming", "history_deleted"


def choose(run_id: str | None) -> None:
    """Show the actions of a run, or of none."""
    st.session_state.pop(_CONFIRMING, None)
    view_filters.keep("run", run_id, "")


def manage_button(run_id: str, *, chosen: bool, help: str | None = None) -> None:
    """The button of a row that shows the actions of its run, or hides them if it is `chosen`."""
    if st.button(
        "Close" if chosen else "Manage", key=f"manage_{run_id}", type="tertiary",
        icon=":material/expand_less:" if chosen else ":material/tune:", help=None if chosen else help,
    ):  # fmt: skip
        choose(None if chosen else run_id)
        st.rerun()


def undo_bar(bench: Bench) -> None:
    """After a deletion: which run was deleted, and a button that restores it."""
    deleted = st.session_state.get(_UNDO)
    if deleted is None:
        return
    run_id, title = deleted
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="undo_bar"):
        st.markdown(f"Deleted **{plain(title)}**. It can be restored for {RESTORABLE_DAYS} days.", width="stretch")
        if st.button("Undo", key="undo", icon=":material/undo:", type="primary"):
            bench.history.restore(run_id)
            del st.session_state[_UNDO]
            st.rerun()


def run_actions(bench: Bench, run: RunSummary) -> None:
    """Title and note of the run, and the buttons of its actions."""
    with st.form(f"words_{run.id}", border=False):
        title = st.text_input("Title", value=run.title, max_chars=TITLE_CHARACTERS, key=f"title_{run.id}")
        note = st.text_area("Note", value=run.note, max_chars=NOTE_CHARACTERS, key=f"note_{run.id}", height=80)
        if st.form_submit_button("Save", icon=":material/save:"):
            bench.history.rename(run.id, title)
            bench.history.annotate(run.id, note)
            st.toast("Saved", icon=":material/check:")
            st.rerun()
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        site.run_link("Open", run.id)
        if run.status in ("cancelled", "interrupted"):
            _measure(
                run, "Resume", partial(bench.resume, run.id, owner=session.owner()), key=f"resume_{run.id}",
                icon=":material/play_arrow:", help="Measures the cases that have no result yet.",
            )  # fmt: skip
        if run.status not in LIVING:
            _measure(
                run, "Measure again", partial(again, bench, run.id, owner=session.owner()), key=f"again_{run.id}",
                icon=":material/replay:",
                help="Measures the same plan with the same method on this machine. Compare both runs on the page Compare.",
            )  # fmt: skip
        site.compare_link(run.id)
        share.fill(share.button(f"share_{run.id}"), bench, run.id)
        share.download(bench, run.id, key=f"download_{run.id}")
        if run.status not in LIVING and st.button("Delete", key=f"delete_{run.id}", icon=":material/delete:"):
            st.session_state[_CONFIRMING] = run.id
    if st.session_state.get(_CONFIRMING) == run.id:
        with st.container(border=True, horizontal=True, vertical_alignment="center", key="confirm"):
            st.markdown(
                f"Delete this run with {units.counted(run.done, 'result')}? It can be restored for {RESTORABLE_DAYS} days.",
                width="stretch",
            )
            if st.button("Delete run", key="confirm_delete_yes", type="primary", icon=":material/delete:"):
                bench.history.delete(run.id)
                st.session_state[_UNDO] = (run.id, run.name)
                choose(None)
                st.rerun()
            if st.button("Keep", key="confirm_delete_no"):
                st.session_state.pop(_CONFIRMING, None)
                st.rerun()
    st.caption(f"id {plain(run.id)}")


def _measure(run: RunSummary, label: str, start: Callable[[], str | None], *, key: str, icon: str, help: str) -> None:
    """A button that resumes the run, or starts a new one whose id `start` returns, and opens it on the page Bench."""
    if st.button(label, key=key, icon=icon, help=help):
        try:
            new = start()
        except KernelvizError as error:
            st.error(plain(error), icon=":material/error:")
        else:
            st.switch_page(site.page("bench"), query_params={"run": new or run.id})
