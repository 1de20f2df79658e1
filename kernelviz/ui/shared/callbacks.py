"""Buttons and values that survive an interrupted redraw.

Streamlit ends a redraw as soon as the next one is requested: at any write to the page, and at any read or write of
``st.session_state``. It then forgets that a button was pressed, unless the button's callback has already run. Code behind
``if st.button(…)`` may therefore never run, and a run that it started may never be stored. Callbacks always run.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from kernelviz.core import KernelvizError
from kernelviz.ui.shared.text import plain

STALE_S = 2.0
"""For this long a browser may still send a value that the page has replaced, because it requested its redraw before it got
the new value."""


@dataclass(slots=True)
class Actions:
    """What the user did in this browser session. Plain fields, so that no redraw can end between an action and its record.

    `run_pressed`: Run was pressed, and no run has started yet. `started_run`: a run that started and is not in the address
    yet. `overlay_run`: the run that it is to be drawn with. `activities`: the last calibration, selftest … by kind.
    `live_form` and `live_run`: the form that live mode measured last, and its run. `live_result`: the run that the page shows
    until `live_run` has a result, and `live_result_is_own`: whether live mode measured it. `errors`: by button, the subject and
    the message of its last error.
    """

    run_pressed: bool = False
    started_run: str | None = None
    overlay_run: str | None = None
    activities: dict[str, str] = field(default_factory=dict)
    live_form: object = None
    live_run: str | None = None
    live_result: str | None = None
    live_result_is_own: bool = False
    errors: dict[str, tuple[str, str]] = field(default_factory=dict)


def actions() -> Actions:
    """The actions of this browser session. A redraw may end here, so call it before something is started."""
    stored: Actions = st.session_state.setdefault("actions", Actions())
    return stored


def end_if_superseded() -> None:
    """End this redraw if the next one is requested. Streamlit looks for it at each read of the session's state."""
    st.session_state.get("actions")


def button(label: str, act: Callable[[], None], *, key: str, about: str = "", **look: Any) -> None:
    """A button that runs `act`, also if the redraw is interrupted. A KernelvizError of `act` is shown below the button, as long
    as the button is `about` the same run or device.

    `act` may change the value of `actions()` that the caller holds. It must not use Streamlit, where a redraw may end.
    `look`: further arguments of st.button.
    """
    errors = actions().errors
    st.button(label, key=key, on_click=run_action, args=(errors, key, about, act), **look)
    subject, message = errors.get(key, ("", ""))
    if message and subject == about:
        st.error(plain(message), icon=":material/error:")


def run_action(errors: dict[str, tuple[str, str]], key: str, about: str, act: Callable[[], None]) -> None:
    """Run `act`; if it raises a KernelvizError, store its subject and message in `errors` under `key`."""
    errors.pop(key, None)
    try:
        act()
    except KernelvizError as error:
        errors[key] = about, str(error)


def replaced(key: str, value: object) -> None:
    """Record that the page itself replaces this value."""
    now_s = time.monotonic()
    before = [(v, at_s) for v, at_s in st.session_state.get(f"replaced_{key}", ()) if now_s - at_s < STALE_S]
    st.session_state[f"replaced_{key}"] = [*before, (value, now_s)]


def is_stale(key: str, value: object) -> bool:
    """Whether the page itself replaced this value less than `STALE_S` ago, so that the user cannot have chosen it."""
    now_s = time.monotonic()
    return any(v == value and now_s - at_s < STALE_S for v, at_s in st.session_state.get(f"replaced_{key}", ()))
