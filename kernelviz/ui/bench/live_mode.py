"""Live mode: what is changed on the form is measured at once and drawn in the same rerun, where it ends in time.

A measurement that the next one replaces is cancelled and thrown away; the last one stays in the list of runs.
"""

from __future__ import annotations

import time
from dataclasses import replace

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core.errors import UsageError
from kernelviz.core.events import RunEnded
from kernelviz.core.problem import QUICK
from kernelviz.ops.catalog.op import Axis
from kernelviz.ui.bench.form import Form
from kernelviz.ui.shared import callbacks, session
from kernelviz.ui.shared.text import plain

_ON = "live_mode"
WAIT_S = 0.4
"""So long a rerun waits for the end of what it began, so that it is drawn once; what takes longer is followed as any run."""
SMALLEST, LARGEST = 6, 30
"""The knob's sizes: powers of two from 2^6 to 2^30."""


def on() -> bool:
    """Whether changes are measured at once."""
    return bool(st.session_state.get(_ON))


def off() -> None:
    """Before the switch exists: the next change is not measured."""
    st.session_state[_ON] = False


def toggle() -> None:
    """The switch."""
    st.toggle(
        "Live",
        key=_ON,
        help="Every change above is measured at once: device cold only, until comparisons are decided, at most "
        f"{QUICK.budget_s:g} s a case. What it replaces is cancelled and thrown away; a run that you name stays.",
    )


def knob(axis: Axis, key: str, text: str) -> None:
    """A slider over powers of two that writes into the size's own box; nothing where that holds more than one number."""
    if not text.strip().isdigit():
        return
    value = int(text)
    sizes = sorted({value, *(2**e for e in range(SMALLEST, LARGEST + 1))})
    own = f"knob_{key}"
    if st.session_state.get(own) != value:
        st.session_state[own] = value

    def turned() -> None:
        st.session_state[key] = str(st.session_state[own])

    st.select_slider(
        plain(f"{axis.name}, powers of two"), sizes, key=own, on_change=turned, label_visibility="collapsed"
    )


def follow(bench: Bench, form: Form) -> str | None:
    """Measure the form when it is not the one that was measured last, instead of that; the run, which may still go on.

    None where it is, or live mode is off, or the form asks for nothing that can be measured (the sidebar says why).
    """
    kept, owner = callbacks.kept(), session.owner()
    if not on():
        kept.measured = None
        return None
    asked = replace(form, budget_s=QUICK.budget_s, clock="burst", energy=False)
    if kept.measured == asked or not form.variants:
        return None
    try:
        plan = form.plan(bench)
    except UsageError:
        return None
    if kept.live_run is not None:
        bench.discard(kept.live_run)
    run_id = kept.live_run = kept.begun = bench.run(plan, QUICK, owner=owner)
    kept.measured = asked
    until_s = time.monotonic() + WAIT_S
    for _, event in bench.follow(run_id, timeout_s=WAIT_S):
        if isinstance(event, RunEnded) or time.monotonic() > until_s:
            break
    return run_id
