"""The filter of variants: all are visible until the user hides some; the hidden ones are in the address."""

import streamlit as st

from kernelviz.core import Run
from kernelviz.metrics.chart_selection import MANY
from kernelviz.plots.marker_images import mark
from kernelviz.plots.variant_styles import format_variant
from kernelviz.ui.shared import view_filters
from kernelviz.ui.shared.text import plain

PARAM = "hide"
_KEY, _OF, _HIDDEN = "shown", "shown_of", "hidden"


def visible_variants(run: Run) -> tuple[str, ...]:
    """Draw the filter; returns the visible variants in the order of the plan. The baseline is always visible. A run of more
    than MANY variants has no filter."""
    rest = tuple(v for v in run.plan.variants if v != run.plan.baseline)
    if len(rest) < 2 or len(run.plan.variants) > MANY:
        return run.plan.variants
    hidden = _hidden(run)
    if st.session_state.get(_OF) == rest and _KEY in st.session_state:
        hidden = (hidden - set(rest)) | (set(rest) - set(st.session_state[_KEY] or ()))
    st.session_state[_HIDDEN] = hidden
    visible = tuple(v for v in run.plan.variants if v not in hidden)
    popover = st.popover(
        f"{len(visible)} of {len(run.plan.variants)} variants",
        icon=":material/filter_alt:",
        key="shown_popover",
        on_change="rerun",
    )
    # Drawn when the popover opens: if the buttons appeared some reruns later, the browser would not know which are pressed.
    if popover.open:
        if st.session_state.get(_OF) != rest or _KEY not in st.session_state:
            st.session_state[_KEY], st.session_state[_OF] = [v for v in rest if v not in hidden], rest
        popover.pills(
            f"Visible variants, besides the baseline {plain(format_variant(run.plan.baseline))}",
            rest,
            selection_mode="multi",
            key=_KEY,
            format_func=lambda v: f"{mark(run.plan.op, v)} {plain(format_variant(v))}",
        )
    view_filters.keep(PARAM, ",".join(v for v in rest if v in hidden), "")
    return visible


def _hidden(run: Run) -> set[str]:
    """The variants that are hidden in this session, whichever run is shown; on a new page those that the address names."""
    if _HIDDEN in st.session_state:
        return set(st.session_state[_HIDDEN])
    named = [n for n in st.query_params.get(PARAM, "").split(",") if n]
    unknown = [n for n in named if n not in run.plan.variants or n == run.plan.baseline]
    if unknown:
        st.caption(f":orange[{PARAM}: {plain(', '.join(unknown))} cannot be hidden in this run and is ignored]")
    return set(named) - set(unknown)
