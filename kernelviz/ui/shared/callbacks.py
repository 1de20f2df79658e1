"""What pages that redraw themselves must reckon with: buttons that do something for good, and values that come too late.

Streamlit ends a redraw when the next one is asked for: wherever the page is written to, and wherever ``st.session_state`` is
read or written. With it, it forgets that a button was pressed, unless the button's callback has run by then: what stands
behind ``if st.button(…)`` may never be reached, and what was begun there may never be remembered.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from kernelviz.core.errors import KernelvizError
from kernelviz.ui.shared.text import plain

STALE_S = 2.0
"""So long a browser may go on to send what a page has replaced: it asked for its redraw before it learnt of the new value."""


@dataclass(slots=True)
class Kept:
    """What was done in this browser session. Plain fields, so that no redraw ends between a deed and its being kept.

    `asked`: Run was pressed, and nothing has begun yet. `begun`: a run that was begun, and that the address does not name yet;
    `beside`: the run that it is to be drawn beside. `jobs`: the last calibration, selftest … by what it was begun for.
    `measured` and `live_run`: the form that live mode measured last, and its run. `troubles`: what a button could not do, and
    about what.
    """

    asked: bool = False
    begun: str | None = None
    beside: str | None = None
    jobs: dict[str, str] = field(default_factory=dict)
    measured: object = None
    live_run: str | None = None
    troubles: dict[str, tuple[str, str]] = field(default_factory=dict)


def kept() -> Kept:
    """What this session keeps; a redraw may end here, so it is asked for before something is done."""
    found: Kept = st.session_state.setdefault("kept", Kept())
    return found


def button(label: str, act: Callable[[], None], *, key: str, about: str = "", **look: Any) -> None:
    """A button that does `act`, whatever becomes of the redraw; what `act` raises as KernelvizError is said below it, as long
    as it is `about` the same run or device.

    `act` may change what `kept` returned before, and uses nothing of Streamlit's, where a redraw may end. `look`: as of
    st.button.
    """
    troubles = kept().troubles
    st.button(label, key=key, on_click=tried, args=(troubles, key, about, act), **look)
    told_about, trouble = troubles.get(key, ("", ""))
    if trouble and told_about == about:
        st.error(plain(trouble), icon=":material/error:")


def tried(troubles: dict[str, tuple[str, str]], key: str, about: str, act: Callable[[], None]) -> None:
    """Do `act`, and keep in `troubles`, under `key`, what it raised as KernelvizError and about what."""
    troubles.pop(key, None)
    try:
        act()
    except KernelvizError as error:
        troubles[key] = about, str(error)


def replaced(key: str, value: object) -> None:
    """The page puts another value in the place of this one, without having been asked."""
    now_s = time.monotonic()
    before = [(v, at_s) for v, at_s in st.session_state.get(f"replaced_{key}", ()) if now_s - at_s < STALE_S]
    st.session_state[f"replaced_{key}"] = [*before, (value, now_s)]


def is_stale(key: str, value: object) -> bool:
    """Whether the page itself has replaced this value a moment ago, so that nobody can have chosen it since."""
    now_s = time.monotonic()
    return any(v == value and now_s - at_s < STALE_S for v, at_s in st.session_state.get(f"replaced_{key}", ()))
