"""Two runs on one page: a run of another machine, and the same plan measured on this machine."""

from functools import partial

import streamlit as st

from kernelviz.bench import Bench, regression
from kernelviz.bench.snapshots import narrowed
from kernelviz.core import LIVING, Run, UnknownRun, units
from kernelviz.core.run_cache import RunCache
from kernelviz.metrics.run_with_roofs import run_with_roofs
from kernelviz.plots.frame import format_run
from kernelviz.ui.shared import callbacks, session
from kernelviz.ui.shared.text import plain

PARAM = "with"
_with_roofs: RunCache[Run] = RunCache(most=64)
"""The same run with the same roofs is the same object, so that its rows and figures are computed once."""


def second_run(bench: Bench, run: Run) -> Run | None:
    """The second run that the address names, with the roofs of its own machine; None without one of the same op."""
    actions = callbacks.actions()
    if actions.overlay_run is not None:
        st.query_params[PARAM] = actions.overlay_run
        actions.overlay_run = None
    run_id = st.query_params.get(PARAM)
    if not run_id or run_id == run.id:
        st.query_params.pop(PARAM, None)
        return None
    try:
        second = bench.load(run_id)
    except UnknownRun:
        st.caption(f":orange[Run {plain(run_id)} is not on this server, so only one run is shown.]")
        return None
    if second.plan.op != run.plan.op:
        st.caption(
            f":orange[{plain(second.title or run_id)} is a run of another op, so it is not shown with this run.]"
        )
        return None
    return with_roofs(bench, second)


def with_roofs(bench: Bench, run: Run) -> Run:
    """The run with its roofs, so that a chart of several runs compares each with the roofs of its own machine."""
    roofs = bench.roofs_of(run)
    # The run itself is not kept here: a value that holds its key would never be forgotten.
    return run if roofs == run.environment.roofs else _with_roofs.get((run, roofs), lambda: run_with_roofs(run, roofs))


def narrowed_pair(bench: Bench, run: Run, second: Run | None, variants: tuple[str, ...]) -> tuple[Run, Run | None]:
    """Both runs with the visible variants only; the first with the roofs of its machine."""
    return with_roofs(bench, narrowed(run, variants)), None if second is None else narrowed(second, variants)


def names(run: Run, other: Run | None) -> dict[str, str]:
    """The name of each run in the charts, by id: its device if the devices differ, else its title, else its id."""
    runs = [run] if other is None else [run, other]
    return {r.id: format_run(r, runs) for r in runs}


def two_runs_bar(run: Run, other: Run) -> None:
    """Which two runs are shown, and a button that shows one only."""
    label = names(run, other)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="overlay"):
        st.markdown(
            f"Charts show **{plain(label[run.id])}** (solid) and **{plain(label[other.id])}** (dotted), each with the roofs of "
            f"its own machine. Tiles and all tabs except *Table* show **{plain(label[run.id])}** only.",
            width="stretch",
        )
        st.button("Show one run", key="show_one", icon=":material/close:", on_click=show_one_run)


def show_one_run() -> None:
    """Remove the second run from the address."""
    st.query_params.pop(PARAM, None)


def run_here_offer(bench: Bench, run: Run) -> None:
    """For a run of another machine: a button that measures the same plan on this machine and shows both."""
    if any(d.uuid == run.environment.device.uuid for d in bench.devices()) or run.status in LIVING:
        return
    device = bench.device(bench.default_device())
    if run.plan.op not in bench.ops():
        st.caption("Its op is not installed here, so this machine cannot measure it.", width="content")
        return
    callbacks.button(
        "Measure the same here",
        partial(_start, bench, run, callbacks.actions(), session.owner()),
        key="run_here",
        about=run.id,
        icon=":material/play_arrow:",
        disabled=not device.usable,
        help=plain(
            f"Measures its {units.counted(len(run.plan.cases()), 'case')} on {device.name} and shows both runs. A case that "
            "cannot run there is listed as failed, with the reason."
        ),
    )


def _start(bench: Bench, run: Run, actions: callbacks.Actions, owner: str) -> None:
    actions.started_run = regression.again(bench, run.id, owner=owner)
    actions.overlay_run = run.id
