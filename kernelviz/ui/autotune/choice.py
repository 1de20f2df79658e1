"""What the page Autotune shows: the form of a new tuning, or the configurations of one; the address names either."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Literal

import streamlit as st

from kernelviz.bench import Bench, RunSummary
from kernelviz.bench.tunable import anything_tunable
from kernelviz.core import Run, UnknownRun
from kernelviz.ui.shared import missing_run, run_in_hand, site, view_filters
from kernelviz.ui.shared.text import distinct_labels, plain, run_label

RUN, FIRST_OF_FORM = "run", "op"
"""Parameters of the address: a tuning's run, and the first value of the form."""
Mode = Literal["results", "new"]
_MODE, _PENDING, _CHOSEN = "autotune_mode", "autotune_mode_pending", "autotune_run"
_LABELS: Mapping[Mode, str] = {"results": "Results", "new": "New tuning"}
_MOST_RUNS = 300


def tunings_here(bench: Bench) -> dict[str, RunSummary]:
    """The runs of this server that are tunings, also imported ones, the newest first; then those that came with the package."""
    runs = {run.id: run for run in bench.history.find(limit=_MOST_RUNS)}
    known = bench.tunings.among(list(runs))
    own = {run_id: run for run_id, run in runs.items() if run_id in known}
    return own | {run_id: bench.history.summary(run_id) for run_id in bench.tunings.shipped()}


def mode(bench: Bench, tunings: Mapping[str, RunSummary]) -> Mode:
    """Whether the page shows a tuning or the form of a new one. The address decides first, then the control."""
    pending = st.session_state.pop(_PENDING, None)
    opened = _MODE not in st.session_state or view_filters.moved(RUN) or view_filters.moved(FIRST_OF_FORM)
    if pending is not None:
        st.session_state[_MODE] = pending
    elif opened:
        named = RUN in st.query_params
        own = any(not run.shipped for run in tunings.values())
        form = FIRST_OF_FORM in st.query_params or not (own or (tunings and not anything_tunable(bench)))
        st.session_state[_MODE] = "new" if not named and form else "results"
    options: tuple[Mode, ...] = ("results", "new")
    chosen = view_filters.widget_with_value(
        st.segmented_control, "Show", options, key=_MODE, format_func=_LABELS.__getitem__, label_visibility="collapsed",
    )  # fmt: skip
    if chosen == "new":
        view_filters.write(RUN, None)
    return chosen or "results"


def show(part: Mode) -> None:
    """Show the results or the form from the next redraw on."""
    st.session_state[_PENDING] = part


def run_box(bench: Bench, tunings: Mapping[str, RunSummary]) -> Run | None:
    """The tuning that the page shows: of the address, else the run in hand if it is one, else the newest. A run that is not
    here, or that is no tuning, is named."""
    _forget_form()
    wanted = st.query_params.get(RUN)
    run = _loaded(bench, wanted) if wanted else None
    labels = {run_id: run_label(summary) for run_id, summary in tunings.items()}
    if run is not None and run.id not in labels:
        labels = {run.id: run.title or run.id, **labels}
    if wanted and run is None:
        return None
    if not labels:
        return None
    in_hand = run_in_hand.current(bench)
    first = run.id if run is not None else in_hand if in_hand in labels else next(iter(labels))
    if view_filters.moved(RUN) or st.session_state.get(_CHOSEN) not in labels:
        st.session_state[_CHOSEN] = first
    chosen = view_filters.widget_with_value(
        st.selectbox, "Tuning", list(labels), key=_CHOSEN, width="stretch", format_func=distinct_labels(labels, labels.get),
        help="Tunings of this server, the newest first, with those that were imported from Kernel Tuner; then the recorded ones "
        "that came with kernelviz.",
    ) or first  # fmt: skip
    view_filters.write(RUN, chosen)
    run_in_hand.take(chosen)
    return run if run is not None and run.id == chosen else _loaded(bench, chosen)


def _loaded(bench: Bench, run_id: str) -> Run | None:
    """The run, if it is a tuning; else a message that says what to do."""
    try:
        run = bench.load(run_id)
    except UnknownRun:
        missing_run.say(run_id)
        return None
    if run.plan.search is None:
        st.info(
            f"The run **{plain(run.title or run.id)}** is no tuning, so it has no configurations to compare.",
            icon=":material/info:",
        )
        site.run_link("Open it on Bench", run.id)
        return None
    return run


def choose_run(run_id: str) -> None:
    """Show this tuning from the next redraw on. Without Streamlit's widgets, so that a callback may call it."""
    show("results")
    st.session_state[_CHOSEN] = run_id
    view_filters.write(RUN, run_id)


def _forget_form() -> None:
    """Remove the values of the form from the address, which names a run now."""
    for name in list(st.query_params):
        if name.startswith("size_") or name in (
            "op", "variant", "dtype", "compute", "direction", "configurations", "seed", "budget", "early_stop",
        ):  # fmt: skip
            with suppress(KeyError):
                del st.query_params[name]
