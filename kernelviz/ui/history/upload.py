"""The head of the History page, with the place for documents from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core.errors import KernelvizError
from kernelviz.formats import MAX_BYTES
from kernelviz.formats.integrity import WORDS, sealed
from kernelviz.ui.shared import site
from kernelviz.ui.shared.text import plain

_ROUND, _SAID, _SEALS = "uploads", "upload_said", "upload_seals"
_LISTED = 12
"""So many runs of one file get a link of their own."""


def heading(bench: Bench) -> None:
    """Title, and an upload that says what became of each file."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="history_heading"):
        st.markdown("#### History", width="stretch")
        with st.popover("Upload", icon=":material/upload:", key="upload_popover"):
            _upload(bench)
    for taken_in, name, words in st.session_state.pop(_SAID, []):
        if taken_in:
            _taken_in(bench, name, words)
        else:
            st.error(f"{plain(name)} was not taken in: {plain(words[0])}", icon=":material/error:")


def _taken_in(bench: Bench, name: str, ids: Sequence[str]) -> None:
    """A file that is here now, with a link to each of its runs."""
    seal = st.session_state.get(_SEALS, {}).get(ids[0])
    sign = ":orange[:material/warning:]" if seal == "changed" else ":green[:material/check_circle:]"
    checked = f", {plain(WORDS[seal])}" if seal else ""
    many = f", as {len(ids)} runs" if len(ids) > 1 else ""
    with st.container(border=True, key=f"uploaded_{ids[0]}", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"{sign} {plain(name)} is here now{many}{checked}.", width="content")
            if len(ids) == 1:
                site.run_link("Open it", ids[0])
        for run_id in ids[:_LISTED] if len(ids) > 1 else ():
            site.run_link(plain(bench.history.summary(run_id).name), run_id)
        if len(ids) > _LISTED:
            st.caption(f"and {len(ids) - _LISTED} more, in the list below")


def _upload(bench: Bench) -> None:
    st.markdown(
        "Runs of another machine (kernelviz documents or Parquet) or of another tool (nvbench or google-benchmark JSON). What a "
        "file is, its content tells. It is checked before anything of it is kept."
    )
    turn = st.session_state.setdefault(_ROUND, 0)
    files = st.file_uploader(
        "Documents",
        type=["json", "parquet"],
        accept_multiple_files=True,
        max_upload_size=MAX_BYTES // 2**20,
        key=f"upload_{turn}",
        label_visibility="collapsed",
    )
    if not files:
        return
    said = []
    for file in files:
        try:
            data = file.getvalue()
            taken, seal = bench.history.take_in_all(data), sealed(data)
            said.append((True, file.name, taken))
            if seal is not None:
                st.session_state.setdefault(_SEALS, {})[taken[0]] = seal
        except KernelvizError as error:
            said.append((False, file.name, (str(error),)))
    # A new key empties the uploader: the same file can be given again, and a rerun takes nothing in twice.
    st.session_state[_ROUND] = turn + 1
    st.session_state[_SAID] = said
    st.rerun()
