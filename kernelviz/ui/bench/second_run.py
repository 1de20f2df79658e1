"""A run from another machine beside the same plan measured here: how it is begun, and the second run of a page."""

from __future__ import annotations

from functools import partial

import msgspec
import streamlit as st

from kernelviz.bench import Bench, regression
from kernelviz.core.errors import UnknownRun
from kernelviz.core.run import LIVING, Run
from kernelviz.plots.frame import run_words
from kernelviz.ui.shared import callbacks, session
from kernelviz.ui.shared.text import plain

PARAM = "with"


def beside(bench: Bench, run: Run) -> Run | None:
    """The run that the address puts beside this one, with the roofs of its own machine; None without one that can be."""
    kept = callbacks.kept()
    if kept.beside is not None:
        st.query_params[PARAM] = kept.beside
        kept.beside = None
    asked = st.query_params.get(PARAM)
    if not asked or asked == run.id:
        st.query_params.pop(PARAM, None)
        return None
    try:
        found = bench.load(asked)
    except UnknownRun:
        st.caption(f":orange[No run {plain(asked)} is here to be drawn beside this one.]")
        return None
    if found.plan.op != run.plan.op:
        st.caption(f":orange[{plain(found.title or asked)} is of another op, so it is not drawn beside this one.]")
        return None
    return roofed(bench, found)


def roofed(bench: Bench, run: Run) -> Run:
    """The run with the roofs that it is held against, so that a chart of several runs holds each against its own."""
    return msgspec.structs.replace(run, environment=msgspec.structs.replace(run.environment, roofs=bench.roofs_of(run)))


def names(run: Run, other: Run | None) -> dict[str, str]:
    """How the charts call each run, by id: by device where that tells them apart, else by title, else by id."""
    runs = [run] if other is None else [run, other]
    return {r.id: run_words(r, runs) for r in runs}


def bar(run: Run, other: Run) -> None:
    """Which two runs are shown, and a way to leave one."""
    said = names(run, other)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="overlay"):
        st.markdown(
            f"**{plain(said[run.id])}** and, in dots and dashes, **{plain(said[other.id])}**: each against its own "
            f"machine's roofs. Tiles, samples and all tabs but *Table* are of **{plain(said[run.id])}**.",
            width="stretch",
        )
        st.button("Show one run", key="show_one", icon=":material/close:", on_click=leave)


def leave() -> None:
    """One run on the page again: the one that was asked for last."""
    st.query_params.pop(PARAM, None)


def offer(bench: Bench, run: Run) -> None:
    """For a run of another machine: the same plan, measured here, drawn beside it."""
    if any(d.uuid == run.environment.device.uuid for d in bench.devices()) or run.status in LIVING:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="elsewhere"):
        device = bench.device(bench.default_device())
        if run.plan.op not in bench.ops():
            st.caption(
                "Measured on another machine. Its op is none of this kernelviz's, so it cannot be measured here."
            )
            return
        st.caption("Measured on another machine.", width="content")
        cases = len(run.plan.cases())
        callbacks.button(
            "Run this here",
            partial(_begin, bench, run, callbacks.kept(), session.owner()),
            key="run_here",
            about=run.id,
            icon=":material/play_arrow:",
            disabled=not device.usable,
            help=plain(
                f"Measures its {cases} case{'s' if cases != 1 else ''} on {device.name} and shows both. What cannot run there "
                "or does not fit is said case by case."
            ),
        )


def _begin(bench: Bench, run: Run, kept: callbacks.Kept, owner: str) -> None:
    kept.begun = regression.again(bench, run.id, owner=owner)
    kept.beside = run.id
