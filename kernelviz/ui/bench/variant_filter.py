"""Which variants of a run are shown: all until somebody hides some; those hidden are in the address."""

from __future__ import annotations

import streamlit as st

from kernelviz.core.run import Run
from kernelviz.metrics.chart_selection import MANY
from kernelviz.plots.marker_images import mark
from kernelviz.plots.variant_styles import variant_words
from kernelviz.ui.shared.text import plain

PARAM = "hide"
_KEY, _OF, _HIDDEN = "shown", "shown_of", "hidden"


def variants(run: Run) -> tuple[str, ...]:
    """The variants to show, in the order of the plan; the baseline is always one of them. Of more than MANY all."""
    rest = tuple(v for v in run.plan.variants if v != run.plan.baseline)
    if len(rest) < 2 or len(run.plan.variants) > MANY:
        return run.plan.variants
    hidden = _hidden(run)
    if st.session_state.get(_OF) == rest and _KEY in st.session_state:
        hidden = (hidden - set(rest)) | (set(rest) - set(st.session_state[_KEY] or ()))
    st.session_state[_HIDDEN] = hidden
    shown = tuple(v for v in run.plan.variants if v not in hidden)
    popover = st.popover(
        f"{len(shown)} of {len(run.plan.variants)} variants",
        icon=":material/filter_alt:",
        key="shown_popover",
        on_change="rerun",
    )
    # Made when it is opened: a browser that first meets the buttons some reruns later would not know which are pressed.
    if popover.open:
        if st.session_state.get(_OF) != rest or _KEY not in st.session_state:
            st.session_state[_KEY], st.session_state[_OF] = [v for v in rest if v not in hidden], rest
        popover.pills(
            f"Shown beside the baseline, {plain(variant_words(run.plan.baseline))}",
            rest,
            selection_mode="multi",
            key=_KEY,
            format_func=lambda v: f"{mark(run.plan.op, v)} {plain(variant_words(v))}",
        )
    gone = ",".join(v for v in rest if v in hidden)
    if gone:
        st.query_params[PARAM] = gone
    else:
        st.query_params.pop(PARAM, None)
    return shown


def _hidden(run: Run) -> set[str]:
    """What was hidden until now, of whichever run; on a fresh page what the address names."""
    held: set[str] | None = st.session_state.get(_HIDDEN)
    if held is not None:
        return set(held)
    asked = [n for n in st.query_params.get(PARAM, "").split(",") if n]
    unknown = [n for n in asked if n not in run.plan.variants or n == run.plan.baseline]
    if unknown:
        st.caption(f":orange[{PARAM}: {plain(', '.join(unknown))} cannot be hidden here and is left out]")
    return set(asked) - set(unknown)
