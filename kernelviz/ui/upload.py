"""The head of the History page, with the place for documents from elsewhere."""

from __future__ import annotations

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core.errors import KernelvizError
from kernelviz.formats import MAX_BYTES
from kernelviz.ui import site
from kernelviz.ui.text import plain

_ROUND, _SAID = "uploads", "upload_said"


def heading(bench: Bench) -> None:
    """Title, and an upload that says what became of each file."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="history_heading"):
        st.markdown("#### History", width="stretch")
        with st.popover("Upload", icon=":material/upload:", key="upload_popover"):
            _upload(bench)
    for taken_in, name, words in st.session_state.pop(_SAID, []):
        if taken_in:
            with st.container(border=True, horizontal=True, vertical_alignment="center", key=f"uploaded_{words}"):
                st.markdown(f":green[:material/check_circle:] {plain(name)} is here now.", width="content")
                site.run_link("Open it", words)
        else:
            st.error(f"{plain(name)} was not taken in: {plain(words)}", icon=":material/error:")


def _upload(bench: Bench) -> None:
    st.markdown(
        "A run from another machine: the document that its **Download** or `kernelviz run … --save` wrote. "
        "It is checked before anything is kept."
    )
    turn = st.session_state.setdefault(_ROUND, 0)
    files = st.file_uploader(
        "Documents",
        type=["json"],
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
            said.append((True, file.name, bench.history.take_in(file.getvalue())))
        except KernelvizError as error:
            said.append((False, file.name, str(error)))
    # A new key empties the uploader: the same file can be given again, and a rerun takes nothing in twice.
    st.session_state[_ROUND] = turn + 1
    st.session_state[_SAID] = said
    st.rerun()
