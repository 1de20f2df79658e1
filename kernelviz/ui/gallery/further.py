"""The recorded runs and the code that are too large for the package: what they are, and a button that fetches them."""

from __future__ import annotations

import streamlit as st

from kernelviz.bench import further_recordings as use_case
from kernelviz.text.recordings import describe_contents, describe_no_folder
from kernelviz.text.roofs import format_bytes
from kernelviz.ui.shared import callbacks
from kernelviz.ui.shared.text import plain

_EACH_S = 0.5


def section() -> None:
    """Nothing if all recordings are here."""
    state = use_case.further_recordings()
    if state.no_folder is not None:
        st.warning(plain(describe_no_folder(state.no_folder)), icon=":material/warning:")
    missing = state.missing
    if missing is None:
        return
    st.markdown("##### More recordings to fetch")
    with st.container(key="further_recordings", gap="xsmall"):
        st.caption(
            plain(
                f"Not in the package, to keep it small: {describe_contents(missing)}. One file of "
                f"{format_bytes(missing.size_bytes)} has them, at {missing.url}. It is fetched once, and only if you ask for it; "
                "nothing is sent but the request."
            )
        )
        current = use_case.fetching()
        if current is not None and not current.ended:
            _following()
            return
        callbacks.button(
            f"Fetch them ({format_bytes(missing.size_bytes)})",
            use_case.start_fetching,
            key="fetch_recordings",
            icon=":material/download:",
            help=plain(
                "In a terminal: kernelviz recordings fetch. For a machine without access to that address, download the file "
                "elsewhere; kernelviz recordings fetch --from FILE unpacks it."
            ),
        )
        if current is not None and current.error is not None:
            st.error(plain(current.error), icon=":material/error:")


@st.fragment(run_every=_EACH_S)
def _following() -> None:
    """How much has arrived; the page is drawn again when all has."""
    current = use_case.fetching()
    if current is None or current.ended:
        st.rerun()
    st.progress(current.fraction, text=f"Fetching: {current.fraction:.0%}")
