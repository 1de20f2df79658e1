"""The runs of workloads on the page History: find, open, name, annotate, download, delete, restore."""

from functools import partial

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.workload_history import NOTE_CHARACTERS, RESTORABLE_DAYS, TITLE_CHARACTERS, WorkloadSummary
from kernelviz.core import LIVING, units
from kernelviz.formats import workload_exports
from kernelviz.text.workloads import MECHANICS_LABEL
from kernelviz.ui.history import one_run
from kernelviz.ui.history.runs import badge_of
from kernelviz.ui.shared import callbacks, download_button, site
from kernelviz.ui.shared.text import plain, when

MOST_LISTED = 100
"""At most so many of the newest runs are listed; the search finds older ones."""


def workload_list(bench: Bench, search: str) -> None:
    """The runs that match, the newest first. The chosen run shows its actions."""
    count = bench.workloads.count(search)
    if count == 0:
        _empty_state(search)
    else:
        more = f", the newest {MOST_LISTED} of them listed" if count > MOST_LISTED else ""
        matching = f" matching “{plain(search)}”" if search else ""
        st.caption(f"{units.counted(count, 'run')}{matching}, newest first{more}")
        with st.container(gap="small", key="workload_runs"):
            for run in bench.workloads.find(search, limit=MOST_LISTED):
                _row(bench, run)
    _shipped(bench)
    _deleted(bench)


def _empty_state(search: str) -> None:
    if search:
        st.info(f"No run of a workload matches “{plain(search)}”. Try fewer words.")
        return
    with st.container(border=True, key="no_workload_runs"):
        st.markdown(
            "**No run of a workload is stored on this server yet.** Measure one on the page Workloads or with "
            "`kernelviz workloads run`, or upload a file."
        )
        st.page_link(site.page("workloads"), label="Workloads", icon=":material/hub:")


def _row(bench: Bench, run: WorkloadSummary) -> None:
    chosen = st.query_params.get("run") == run.id
    with st.container(border=True, gap="xsmall", key=f"run_{run.id}"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            _name(run)
            if run.status == "finished" and run.failed:
                st.badge(f"{run.failed} failed", color="orange", icon=":material/error:")
            else:
                color, icon = badge_of(run.status)
                st.badge(run.status, color=color, icon=icon)
            one_run.manage_button(run.id, chosen=chosen)
        if chosen:
            _actions(bench, run)
        elif run.note:
            st.caption(plain(run.note if len(run.note) <= 200 else f"{run.note[:199]}…"))


def _name(run: WorkloadSummary) -> None:
    with st.container(gap=None, width="stretch"):
        site.workload_link(f"**{plain(run.name)}**", run.id)
        label = f" · {MECHANICS_LABEL}" if run.mechanics_only else ""
        st.caption(plain(f"{run.workload} · {run.device}{label} · {when(run.created_at)} · {run.case_counts}"))


def _actions(bench: Bench, run: WorkloadSummary) -> None:
    with st.form(f"words_{run.id}", border=False):
        title = st.text_input("Title", value=run.title, max_chars=TITLE_CHARACTERS, key=f"title_{run.id}")
        note = st.text_area("Note", value=run.note, max_chars=NOTE_CHARACTERS, key=f"note_{run.id}", height=80)
        if st.form_submit_button("Save", icon=":material/save:"):
            bench.workloads.rename(run.id, title)
            bench.workloads.annotate(run.id, note)
            st.rerun()
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        site.workload_link("Open", run.id)
        download(bench, run)
        if run.status not in LIVING:
            callbacks.button(
                "Delete", partial(bench.workloads.delete, run.id), key=f"delete_{run.id}", about=run.id,
                icon=":material/delete:", help=f"It can be restored below for {RESTORABLE_DAYS} days.",
            )  # fmt: skip


def download(bench: Bench, run: WorkloadSummary) -> None:
    """A button with the run as a file in the chosen format."""
    popover = st.popover("Download", icon=":material/download:", key=f"download_{run.id}_popover", on_change="rerun")
    if popover.open:
        with popover:
            to = st.selectbox("Format", list(workload_exports.MEDIA_TYPES), key=f"download_{run.id}_format")
            download_button.button(
                lambda: workload_exports.encode(bench.workloads.load(run.id), to),
                f"kernelviz-{run.id}.{to}",
                workload_exports.MEDIA_TYPES[to],
                choice=(run.id, to, run.title, run.note, run.done),
                key=f"download_{run.id}",
                icon=":material/download:",
            )


def _shipped(bench: Bench) -> None:
    runs = bench.workloads.shipped()
    if not runs:
        return
    st.markdown("##### Recorded runs that came with kernelviz")
    for run in runs:
        with st.container(horizontal=True, vertical_alignment="center", gap="small", border=True):
            _name(run)
            download(bench, run)


def _deleted(bench: Bench) -> None:
    runs = bench.workloads.deleted()
    if not runs:
        return
    with st.expander(f"Deleted ({len(runs)})", key="deleted_workloads", icon=":material/delete:"):
        for run in runs:
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                about = f"{run.workload} · {run.device} · deleted {when(run.deleted_at)}"
                st.markdown(f"{plain(run.name)} :gray[{plain(about)}]", width="stretch")
                if st.button("Restore", key=f"restore_{run.id}", icon=":material/undo:"):
                    bench.workloads.restore(run.id)
                    st.rerun()
