"""A table of a page, from the columns that every renderer shares. Its cells show text as it is."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import pandas as pd
import streamlit as st

from kernelviz.core import units
from kernelviz.core.run_cache import RunCache
from kernelviz.tables.column import Column, ColumnValues, Row, evaluate
from kernelviz.ui.shared.text import plain

_frames: RunCache[tuple[pd.DataFrame, dict[str, Any]]] = RunCache(most=400_000, size=lambda table: table[0].size)
"""Tables by the run that they show, bounded by the number of their cells. Making that of the 153 cases of a shipped run took half
of the time of a page."""
_LETTER_PIXELS = 8
"""The width of a letter in a table, at most, on the average of a text."""
_MOST_LETTERS = 40
"""A longer text in such a column is cut; a click on the cell shows all of it."""


def show(columns: Sequence[Column[Row]], rows: Sequence[Row], *, key: str, alt: str, **choice: Any) -> list[int]:
    """Show the table, its first column pinned; returns which rows are chosen. Unknown numbers are empty, never zero.

    `choice`: what `st.dataframe` takes to let somebody choose rows.
    """
    data, config = frame(columns, rows)
    event: Any = st.dataframe(data, column_config=config, hide_index=True, placeholder="–", key=key, alt=alt, **choice)
    return list(event.selection.rows) if choice.get("on_select") else []


def show_wrapped(columns: Sequence[Column[Row]], rows: Sequence[Row], *, key: str, alt: str) -> None:
    """Show a table of a few rows whose texts are sentences: all of each cell, on as many lines as it needs. The headings of
    such a table have no help, so a line above it has that of all columns."""
    evaluated = evaluate(columns, rows)
    cells = {plain(of.heading): ["–" if v is None else plain(v) for v in of.values] for of in evaluated}
    meanings = [f"- **{plain(of.heading)}**: {plain(of.column.help)}" for of in evaluated if of.column.help]
    with st.container(key=key, gap="xsmall"):
        st.caption("What the columns mean", help="\n".join(meanings))
        st.table(pd.DataFrame(cells), hide_index=True, alt=alt)


def show_of_run(
    depends_on: Sequence[object],
    content: Callable[[], tuple[Sequence[Column[Row]], Sequence[Row]]],
    *,
    key: str,
    alt: str,
) -> None:
    """Show a table of a run, which is made once for all sessions. `depends_on`: a name of the kind of table, the run, and
    everything else that columns and rows depend on."""
    data, config = _frames.get(depends_on, lambda: frame(*content()))
    # A copy, because Streamlit adds to the configuration.
    st.dataframe(data, column_config=deepcopy(config), hide_index=True, placeholder="–", key=key, alt=alt)


def frame(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The table and how its columns are shown."""
    evaluated = evaluate(columns, rows)
    return pd.DataFrame({m.heading: m.values for m in evaluated}), {
        m.heading: _config(m, pinned=number == 0 or None) for number, m in enumerate(evaluated)
    }


def _config(of: ColumnValues[Row], *, pinned: bool | None) -> Any:
    unit, about = of.column.unit, plain(of.column.help) or None
    # A bar would show an unknown share as nothing.
    if unit is units.SHARE and any(value is not None for value in of.values):
        return st.column_config.ProgressColumn(format=f"%{unit.form}", min_value=0, max_value=100, help=about)
    if unit.form:
        form = "localized" if "," in unit.form else f"%{unit.form}"
        return st.column_config.NumberColumn(format=form, help=about, pinned=pinned)
    width: Any = of.column.width
    if unit.number or (pinned and width is None):
        # Streamlit measures only the rows that are in sight when it first draws the table. It cuts digits off the left of other
        # numbers, and the end off the longer name of a variant that is measured later.
        width = _LETTER_PIXELS * (2 + min(_MOST_LETTERS, max(map(len, (of.heading, *map(str, of.values))))))
    side: Any = "right" if unit.number else None
    return st.column_config.TextColumn(help=about, width=width, pinned=pinned, alignment=side)
