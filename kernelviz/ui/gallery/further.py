"""The recorded runs and the code that are too large for the package: what they are, and a button that fetches them."""

from __future__ import annotations

import streamlit as st

from kernelviz.bench import further_recordings as use_case
from kernelviz.text.recordings import describe_contents
from kernelviz.text.roofs import format_bytes
from kernelviz.ui.shared import callbacks
from kernelviz.ui.shared.text import plain

_EACH_S = 0.5


def section() -> None:
    """Nothing if all recordings are here."""
    missing = use_case.further_recordings().missing
    if missing is None:
        return
    st.markdown("##### More recordings to fetch")
    with st.container(key="further_recordings", gap="xsmall"):
        st.caption(
            plain(
                f"Too large for the package: {describe_contents(missing)}. One file of {format_bytes(missing.size_bytes)} has "
                f"them, at {missing.url}. It is fetched once, and only if you ask for it; nothing is sent but the request."
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
