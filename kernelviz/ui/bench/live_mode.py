"""Live mode: each change of the form is measured at once, and drawn in the same rerun if the measurement ends in time.

A new measurement cancels and discards the one before it; the last one stays in the list of runs.
"""

from dataclasses import replace

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import QUICK, UsageError
from kernelviz.ops.catalog.tensors import Axis
from kernelviz.ui.bench.form import Form
from kernelviz.ui.shared import callbacks, live_progress, session
from kernelviz.ui.shared.text import plain

_ON = "live_mode"
WAIT_S = 0.4
"""A rerun waits this long for its measurement, so that it is drawn once; a longer one is followed like any run."""
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
    if not text.strip().isdigit():
        return
    value = int(text)
    sizes = sorted({value, *(2**e for e in range(SMALLEST, LARGEST + 1))})
    own = f"knob_{key}"
    if st.session_state.get(own) != value:
        st.session_state[own] = value

    def moved() -> None:
        st.session_state[key] = str(st.session_state[own])

    st.select_slider(
        plain(f"{axis.name}, powers of two"), sizes, key=own, on_change=moved, label_visibility="collapsed"
    )


def measure_change(bench: Bench, form: Form) -> str | None:
    """Measure the form if it changed since the last measurement; returns the id of the run, which may still be running.

    None if it did not change, if live mode is off, or if the form is not complete (the sidebar says why).
    """
    actions, owner = callbacks.actions(), session.owner()
    if not on():
        actions.live_form = None
        return None
    live_form = replace(form, budget_s=QUICK.budget_s, clock="burst", energy=False)
    if actions.live_form == live_form or not form.variants:
        return None
    try:
        plan = form.plan(bench)
    except UsageError:
        return None
    if actions.live_run is not None:
        bench.discard(actions.live_run)
    run_id = actions.live_run = actions.started_run = bench.run(plan, QUICK, owner=owner)
    actions.live_form = live_form
    live_progress.wait_for_end(bench, run_id, WAIT_S)
    return run_id
