"""The boxes of the page Libraries: card, family, op, and the problem that is described below the table."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.gallery import families_of
from kernelviz.bench.library_comparison import cards_of, key_of, ops_of
from kernelviz.metrics.library_comparison import ComparisonRow
from kernelviz.text import format_problem
from kernelviz.ui.shared import view_filters

PENDING = "chosen_problem"
"""Where a click in the table leaves its problem until the next redraw."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the table lists; None: all."""

    card: str | None
    family: str | None
    op: str | None


def title() -> None:
    """The title, and what the page shows."""
    st.markdown("#### Libraries: where is a library faster?")
    st.caption(
        "For each problem the fastest kernel written here, the kernel that the op's rule puts first (auto), and every library "
        "(torch eager and torch.compile count as libraries). The problems where a library is furthest ahead come first. Choose a "
        "row to see every time and the rule of auto."
    )


def filters(bench: Bench, every: Sequence[ComparisonRow]) -> Choice:
    """The boxes for card, family and op; the address repeats them."""
    view_filters.adopt("op", "of_op")
    view_filters.report_unknown(("card", "family", "of_op", "problem"))
    ops = bench.ops()
    with st.container(horizontal=True, gap="small", key="library_filters"):
        box = view_filters.choose_or_all
        card = box("Card", cards_of(every), "all cards", key="card")
        present = {ops[name].family for name in ops_of(every) if name in ops}
        family = box("Family", [name for name in families_of(ops) if name in present], "all families", key="family")
        of_family = [name for name in ops_of(every) if family is None or (name in ops and ops[name].family == family)]
        op = box("Op", of_family, "all ops", key="of_op")
    return Choice(card, family, op)


def problem(rows: Sequence[ComparisonRow], clicked: ComparisonRow | None) -> ComparisonRow | None:
    """The problem that is described; a click in the table chooses it too, and the address repeats it as `problem`."""
    if clicked is not None and key_of(clicked) != st.session_state.get("seen_problem"):
        st.session_state["seen_problem"] = st.session_state[PENDING] = key_of(clicked)
        st.rerun()
    if clicked is None:
        st.session_state.pop("seen_problem", None)
    known = {key_of(row): row for row in rows}
    texts = {key: f"{format_problem(row.problem)}, {row.card}" for key, row in known.items()}
    chosen = view_filters.choose_row("Problem", texts, key="problem")
    return None if chosen is None else known[chosen]


def take_click() -> None:
    """Let the box show the problem whose row was clicked before this redraw."""
    pending = st.session_state.pop(PENDING, None)
    if pending is not None:
        st.session_state["problem"] = pending
