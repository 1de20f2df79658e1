"""The data sheets of all GPUs on the page Device: searched by words, sorted by a click on a column."""

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.data_sheets import data_sheets, without_sheet
from kernelviz.tables.column import View
from kernelviz.tables.data_sheets import sheet_columns
from kernelviz.text.data_sheets import HOW_TO_READ, describe_count, describe_no_match, describe_without_sheet
from kernelviz.ui.shared import table
from kernelviz.ui.shared.text import plain

_MOST_WHOLE, _HEIGHT_PIXELS = 10, 420
"""So many rows are shown whole; a longer table has this height and scrolls."""


def search_box() -> str:
    """The search words, which the address repeats as `sheet`."""
    text: str = st.text_input(
        "Search data sheets",
        key="sheet",
        bind="query-params",
        placeholder="Search in name, architecture and source, for example hopper",
        label_visibility="collapsed",
        icon=":material/search:",
    )
    return text.strip()


def sheet_table(bench: Bench, search: str) -> None:
    """The data sheets that match, cards of this machine first; what has none says so."""
    rows = data_sheets(bench, search)
    if rows:
        st.caption(
            f"{describe_count(len(rows), sum(bool(row.here) for row in rows))} A click on a heading sorts by it."
        )
        table.show(
            sheet_columns(rows, View.WIDE),
            rows,
            key="data_sheets",
            alt=f"Data sheets of {len(rows)} GPUs",
            height="content" if len(rows) <= _MOST_WHOLE else _HEIGHT_PIXELS,
        )
    else:
        st.caption(plain(describe_no_match(search)))
    for device in without_sheet(bench):
        st.caption(plain(describe_without_sheet(device)))
    st.caption(f"{HOW_TO_READ} In a terminal: kernelviz device \\-\\-sheets. In Python: kernelviz.data_sheets().")
