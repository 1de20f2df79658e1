"""The boxes of the page Gallery: family, op and device."""

from dataclasses import dataclass
from functools import partial

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.gallery import Layout, devices_of, families_of, recorded_runs
from kernelviz.core import units
from kernelviz.ui.shared import view_filters
from kernelviz.ui.shared.text import plain

LISTS = "more-recorded-runs"
"""The anchor of the lists, which Streamlit makes from the heading "More recorded runs"."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be shown; None: all."""

    family: str | None
    op: str | None
    device: str | None


def title() -> None:
    """The title, and what the page shows."""
    st.markdown("#### Gallery")
    st.caption(
        "Runs that were recorded on GPUs and come with kernelviz. Open one to see its charts, tables and samples, or measure the "
        "same op on this machine."
    )


def filters(bench: Bench) -> Choice:
    """The three boxes; the address repeats them."""
    ops = bench.ops()
    with st.container(horizontal=True, gap="small", key="gallery_filters"):
        box = partial(view_filters.choose_or_all, width=220)
        family = box("Family", families_of(ops), "all families", key="family")
        of_family = [name for name, op in ops.items() if family in (None, op.family)]
        op = box("Op", of_family, "all ops", key="of_op")
        device = box("Device", devices_of(recorded_runs(bench)), "all devices", key="recorded_on")
    return Choice(family, op, device)


def choose_family(name: str) -> None:
    """Set the box of the family, as a button does before the next redraw."""
    st.session_state["family"] = name


def summary(layout: Layout) -> None:
    """How many runs there are for this choice, and which of them have charts."""
    with st.container(key="gallery_summary"):
        st.markdown(_summary(layout))


def _summary(layout: Layout) -> str:
    """The sentence, in Markdown."""
    cards = [card for _, cards in layout.cards for card in cards]
    listed = [one for family in layout.lists for one in family.ops]
    runs = len(cards) + sum(len(card.other_runs) for card in cards) + sum(len(one.runs) for one in listed)
    if not cards:
        return "No run of this choice is recorded."
    ops = dict.fromkeys(card.op.op.name for card in cards)
    if len(ops) == 1 and not listed:
        each = ", each with its chart" if runs > 1 else ", with its chart"
        return f"{units.counted(runs, 'recorded run')} of {plain(cards[0].op.op.name)}{each}."
    total = f"{units.counted(runs, 'recorded run')} of {units.counted(len(ops) + len(listed), 'op')}."
    more = " Choose an op to see a chart of each of its runs." if any(card.other_runs for card in cards) else ""
    if not listed:
        return f"{total} Each op has one chart{', and links to its other runs below it' if more else ''}.{more}"
    names = units.enumerated(plain(name) for name, _ in layout.cards)
    families = "1 family" if len(layout.lists) == 1 else f"{len(layout.lists)} families"
    return (
        f"{total} Charts are drawn for the {units.counted(len(ops), 'op')} of {names}, one an op. The runs of the other "
        f"{units.counted(len(listed), 'op')}, in {families}, are links [below the charts](#{LISTS}). "
        f"Choose a family to see its charts.{more}"
    )
