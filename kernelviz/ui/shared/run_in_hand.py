"""The run in hand: the run that this browser session looked at last. The navigation names no run, so a page that it opens shows
the run in hand."""

from collections.abc import Sequence

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import UnknownRun

_RUN, _LAST, _AWAY = "run_in_hand", "runs_shown_on", "away_from_bench"


def take(run_id: str | None) -> None:
    """The page shows this run; None: a new measurement."""
    st.session_state[_RUN] = run_id


def current(bench: Bench) -> str | None:
    """The id of the run in hand; None without one, or if it was deleted meanwhile."""
    run_id: str | None = st.session_state.get(_RUN)
    try:
        return bench.history.openable(run_id).id if run_id is not None else None
    except UnknownRun:
        return None


def leave() -> None:
    """Another page than Bench is drawn."""
    st.session_state[_AWAY] = True


def away() -> bool:
    """Whether another page was drawn since Bench was: an empty address of Bench is then the navigation's."""
    return bool(st.session_state.get(_AWAY))


def back() -> None:
    """Bench is drawn, and its address names what it shows."""
    st.session_state[_AWAY] = False


def keep_selection(page: str, runs: Sequence[str]) -> None:
    """The page shows these runs. If the run in hand is not among them, the last of them becomes it."""
    st.session_state[f"{_LAST}_{page}"] = tuple(runs)
    if runs and st.session_state.get(_RUN) not in runs:
        take(runs[-1])


def last_selection(page: str, bench: Bench) -> tuple[str, ...]:
    """What a page of several runs shows when the navigation opens it: its last runs if the run in hand is among them, else the
    run in hand alone; nothing without a run in hand."""
    run_id = current(bench)
    if run_id is None:
        return ()
    last: tuple[str, ...] = st.session_state.get(f"{_LAST}_{page}", ())
    return last if run_id in last else (run_id,)
