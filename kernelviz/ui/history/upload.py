"""The upload on the page History: files of other machines and of other tools."""

from collections.abc import Sequence

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import KernelvizError
from kernelviz.formats import MAX_BYTES, workload_document
from kernelviz.formats.integrity import DESCRIPTIONS, Seal, sealed
from kernelviz.ui.shared import site
from kernelviz.ui.shared.text import plain

_NUMBER, _OUTCOMES = "uploads", "upload_said"
_LISTED = 12
"""At most this many runs of one file get their own link."""


def title_and_upload(bench: Bench) -> None:
    """Title and upload button, and the outcome of each uploaded file."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="history_heading"):
        st.markdown("#### History", width="stretch")
        # A new key after each upload closes the popover, which would cover the outcomes.
        number = st.session_state.setdefault(_NUMBER, 0)
        with st.popover("Upload", icon=":material/upload:", key=f"upload_popover_{number}"):
            _upload(bench, number)
    outcomes = st.session_state.pop(_OUTCOMES, [])
    if not outcomes:
        return
    with st.container(key="upload_outcomes", gap="xsmall"):
        refused = sum(bool(error) for _, _, _, error in outcomes)
        if len(outcomes) > 1:
            st.markdown(f"**{len(outcomes)} files: {len(outcomes) - refused} imported, {refused} refused**")
        for position, (name, ids, seal, error) in enumerate(outcomes):
            if error:
                st.error(f"**{plain(name)}** could not be imported: {plain(error)}.", icon=":material/error:")
            else:
                # Not by the run, because two files may hold the same run.
                with st.container(border=True, key=f"uploaded_{position}", gap="xsmall"):
                    _imported_file(bench, name, ids, seal)


def _imported_file(bench: Bench, name: str, ids: Sequence[str], seal: Seal | None) -> None:
    """An imported file, with a link to each of its runs."""
    sign = ":orange[:material/warning:]" if seal == "changed" else ":green[:material/check_circle:]"
    checked = f", {plain(DESCRIPTIONS[seal])}" if seal else ""
    many = f" as {len(ids)} runs" if len(ids) > 1 else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"{sign} {plain(name)} was imported{many}{checked}.", width="content")
        if len(ids) == 1 and bench.workloads.is_known(ids[0]):
            site.workload_link("Open it", ids[0])
        elif len(ids) == 1:
            site.run_link("Open it", ids[0])
    titles = {run_id: bench.history.summary(run_id).name for run_id in (ids[:_LISTED] if len(ids) > 1 else ())}
    for run_id, title in titles.items():
        alike = list(titles.values()).count(title) > 1  # Then the id tells them apart.
        site.run_link(plain(f"{title} · {run_id}" if alike else title), run_id)
    if len(ids) > _LISTED:
        st.caption(f"and {len(ids) - _LISTED} more in the list below")


def _upload(bench: Bench, number: int) -> None:
    st.markdown(
        "Import runs from another machine (kernelviz JSON, also of workloads, Parquet or `.kvz`) or from another tool (nvbench "
        "or google-benchmark JSON). The format is detected automatically, and an invalid file is rejected as a whole."
    )
    files = st.file_uploader(
        "Run files",
        accept_multiple_files=True,
        max_upload_size=MAX_BYTES // 2**20,
        key=f"upload_{number}",
        label_visibility="collapsed",
    )
    if not files:
        return
    outcomes: list[tuple[str, Sequence[str], Seal | None, str]] = []
    for file in files:
        data = file.getvalue()
        try:
            if workload_document.recognises(data):
                outcomes.append((file.name, (bench.workloads.take_in(data),), workload_document.sealed(data), ""))
            else:
                outcomes.append((file.name, bench.history.take_in_all(data, file=file.name), sealed(data), ""))
        except KernelvizError as error:
            outcomes.append((file.name, (), None, str(error)))
    # A new key empties the uploader, so the same file can be uploaded again and a rerun does not import it twice.
    st.session_state[_NUMBER] = number + 1
    st.session_state[_OUTCOMES] = outcomes
    st.rerun()
