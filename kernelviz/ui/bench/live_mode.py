"""Live mode: each change of the form is measured at once, and drawn in the same rerun if the measurement ends in time.

The last result stays on the page, dimmed, until the new run has a result. A change that comes before that cancels and discards
the run of the change before it. Only the last run stays in the list of runs.
"""

from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kernelviz.bench import Bench, Progress
from kernelviz.core import LIVING, QUICK, KernelvizError, Run, UnknownRun, UsageError
from kernelviz.core.sizes import without_suffixes
from kernelviz.ops.catalog.tensors import Axis
from kernelviz.text.live import describe_outdated
from kernelviz.ui.bench.form import Form
from kernelviz.ui.shared import callbacks, live_progress, session
from kernelviz.ui.shared.text import plain

_ON = "live_mode"
WAIT_S = 1.0
"""A rerun waits this long for its measurement, so that it is drawn once; a longer one is followed like any run. A further change
ends the waiting."""
SMALLEST, LARGEST = 6, 30
"""Exponents of the slider: powers of two from 2^6 to 2^30."""


def on() -> bool:
    """Whether changes are measured at once."""
    return bool(st.session_state.get(_ON))


def off() -> None:
    """Switch live mode off; call it before the switch is drawn."""
    st.session_state[_ON] = False


def toggle() -> None:
    """The switch."""
    st.toggle(
        "Live",
        key=_ON,
        help=f"Measures every change above at once: cold device time only, at most {QUICK.budget_s:g} s per case. The next "
        "change discards the run, unless you gave it a title.",
    )


def size_slider(axis: Axis, key: str, text: str) -> None:
    """A slider over powers of two that writes into the box of the size; none if the box holds more than one number."""
    number = without_suffixes(text.strip())
    if not number.isdigit():
        return
    value = int(number)
    sizes = sorted({value, *(2**e for e in range(SMALLEST, LARGEST + 1))})
    own = f"knob_{key}"
    if st.session_state.get(own) != value:
        st.session_state[own] = value

    def moved() -> None:
        st.session_state[key] = str(st.session_state[own])

    st.select_slider(
        plain(f"{axis.name}, powers of two"), sizes, key=own, on_change=moved, label_visibility="collapsed"
    )


def measure_change(bench: Bench, form: Form, displayed: Run | None) -> str | None:
    """Begin to measure the form if it changed since the last measurement; returns the id of the run.

    None if it did not change, if live mode is off, or if the form is not complete (the sidebar says why). `displayed`: the run of
    the page.
    """
    actions, owner = callbacks.actions(), session.owner()
    if not on():
        actions.live_form = None
        return None
    live_form = replace(form, budget_s=QUICK.budget_s, clock="burst", energy=False, naive=False, untrusted=False)
    if actions.live_form == live_form or not form.variants:
        return None
    try:
        plan = form.plan(bench)
    except UsageError:
        return None
    _supersede(bench, actions, displayed)
    actions.live_form = live_form
    try:
        run_id = actions.live_run = actions.started_run = bench.run(plan, QUICK, owner=owner)
    except KernelvizError as error:
        st.error(f"The change was not measured: {plain(error)}", icon=":material/error:")
        return None
    return run_id


def _supersede(bench: Bench, actions: callbacks.Actions, displayed: Run | None) -> None:
    """End the run of the change before. It stays stored as long as the page shows its results; without results it is dropped."""
    before = actions.live_run
    own = displayed is not None and displayed.id == before
    if before is not None and not (own and displayed is not None and displayed.results):
        bench.discard(before)
    if own and displayed is not None and not displayed.results:
        return  # the page still shows the result before it
    if own and displayed is not None and displayed.status in LIVING:
        bench.cancel(displayed.id)
    _drop_result(bench, actions)
    actions.live_result = displayed.id if displayed is not None and displayed.results else None
    actions.live_result_is_own = own


def _drop_result(bench: Bench, actions: callbacks.Actions) -> None:
    if actions.live_result is not None and actions.live_result_is_own:
        bench.discard(actions.live_result)
    actions.live_result = None


def wait(bench: Bench, run_id: str) -> None:
    """Wait a moment for the run; a further change ends the waiting."""
    live_progress.wait_for_end(bench, run_id, WAIT_S)


def last_result(bench: Bench, run: Run | None, progress: Progress | None) -> Run | None:
    """The run that the page shows as long as `run`, which live mode measures, has no result; None if it shows `run` itself."""
    actions = callbacks.actions()
    if run is None or run.id != actions.live_run:
        return None
    if run.results or progress is None or progress.status not in LIVING:
        _drop_result(bench, actions)
        return None
    try:
        return bench.load(actions.live_result) if actions.live_result is not None else None
    except UnknownRun:
        return None


def note_place() -> DeltaGenerator:
    """The place of the note: beside the results, so that they do not move when it comes and goes."""
    with st.container(key="live_note"):
        return st.empty()


def note(place: DeltaGenerator, displayed: Run | None, measured: Run) -> None:
    """Say which results the page shows and what is being measured. While this is there, the results are dimmed (pages.css)."""
    place.caption(plain(describe_outdated(displayed.plan if displayed is not None else None, measured.plan)))
