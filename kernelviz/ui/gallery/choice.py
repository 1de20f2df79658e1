"""The boxes of the page Gallery: family, op and device."""

from dataclasses import dataclass
from functools import partial

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.gallery import devices_of, families_of, recorded_runs
from kernelviz.ui.shared import view_filters


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
