"""The boxes of the page Gallery: family, op and device."""

from dataclasses import dataclass

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.gallery import devices_of, families_of, recorded_runs
from kernelviz.ui.shared import view_filters

ALL = "all"


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
        family = _box("Family", families_of(ops), "family", "all families")
        of_family = [name for name, op in ops.items() if family in (None, op.family)]
        op = _box("Op", of_family, "of_op", "all ops")
        device = _box("Device", devices_of(recorded_runs(bench)), "recorded_on", "all devices")
    return Choice(family, op, device)


def _box(label: str, options: tuple[str, ...] | list[str], key: str, every: str) -> str | None:
    chosen = view_filters.choose(
        st.selectbox, label, [ALL, *options], ALL, key=key, width=220,
        format_func=lambda name: every if name == ALL else name,
    )  # fmt: skip
    return None if chosen == ALL else chosen
