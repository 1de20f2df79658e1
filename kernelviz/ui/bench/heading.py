"""The head of a run on the page Bench: what was measured, which variants are visible, its notes and its progress."""

from collections.abc import Sequence
from functools import partial

import streamlit as st
from streamlit.elements.lib.mutable_popover_container import PopoverContainer

from kernelviz.bench import Bench, Progress
from kernelviz.core import LIVING, Plan, Run
from kernelviz.metrics.chart_selection import MANY
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.rows import Row
from kernelviz.metrics.summary import Summary
from kernelviz.plots.marker_images import mark
from kernelviz.text import format_variant
from kernelviz.text.caches import format_caches
from kernelviz.text.events import describe_under_way
from kernelviz.text.memory_of_calls import describe_memory_of_calls
from kernelviz.text.method import format_load
from kernelviz.text.text import sentence_case
from kernelviz.ui.shared import callbacks, live_progress, session, share, site, view_filters
from kernelviz.ui.shared.text import plain, when

_TWO_LINES = 80
"""From this number of letters on, the facts of a run may need more than their two lines on a wide page (pages.css)."""
_HIDE = "hide"
_KEY, _OF, _HIDDEN = "shown", "shown_of", "hidden"


def run_heading(
    bench: Bench, run: Run, progress: Progress | None
) -> tuple[tuple[str, ...], Headline, PopoverContainer]:
    """What was measured and when, with the buttons of the run; returns the visible variants, the chosen device time, and the
    box of the Share button, still empty."""
    first = run.plan.problems[0]
    parts = filter(None, (run.plan.op, first.dtype, first.compute, first.direction))
    status = progress.status if progress is not None else run.status
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="heading"):
        st.markdown(f"#### {plain(', '.join(parts))}", width="content")
        with st.container(key="run_facts", width="stretch"):
            facts = plain(_describe_run(run))
            st.caption(facts, help=facts if len(facts) > _TWO_LINES else None)
        if status in ("cancelled", "interrupted"):
            st.badge(status, color="orange", icon=":material/pause_circle:")
            callbacks.button(
                "Resume", partial(bench.resume, run.id, owner=session.owner()), key="resume", about=run.id,
                icon=":material/play_arrow:", help="Measures the cases that have no result yet.",
            )  # fmt: skip
        if run.plan.search is not None:
            site.autotune_link(run.id)
        if run.note:
            with st.popover("Note", icon=":material/sticky_note_2:", key="note_popover"):
                st.text(run.note)
        variants = _visible_variants(run)
        popover = share.button("share")
        headline = view_filters.l2_control(cache=format_caches(run.environment.device))
    return variants, headline, popover


def _describe_run(run: Run) -> str:
    data = run.plan.problems[0].data
    parts = (
        run.title,
        when(run.created_at),
        f"baseline {format_variant(run.plan.baseline)}",
        "" if data in (None, "normal") else f"{data} data".replace("_", " "),
        format_load(run.method),
        "untrusted variants, judged" if run.method.untrusted else "",
    )
    return " · ".join(filter(None, parts))


def warm_caption(run: Run, headline: Headline) -> None:
    """While warm times are shown: what they are, or why there are none."""
    if headline == "warm":
        st.caption(plain(_describe_warm(run)))


def _describe_warm(run: Run) -> str:
    """What the warm time is, or why there is none."""
    timed = [r.timing for r in run.results if r.timing is not None]
    missing = sum(figure_of(t, "warm") is None for t in timed)
    if missing == 0 or missing < len(timed):
        gap = f" {missing} of {len(timed)} cases have no warm time yet." if missing else ""
        caches = format_caches(run.environment.device)
        return f"Warm times: calls repeat on the same data, which stay in the {caches} if they fit.{gap}"
    if run.status in LIVING:
        return "No case has a warm time yet: warm times are measured after the cold ones."
    if "warm" in run.method.figures:
        return "No case has a warm time: the run ended before they were measured. Resume or repeat it."
    device = run.environment.device.name
    return f"No case has a warm time: this run did not measure them. Measure it again on a machine with {device}."


def memory_caption(results: Sequence[Row], plan: Plan, answers: Summary | None) -> None:
    """The memory that a call of the best variant takes, if that differs much from the baseline's."""
    sentence = None if answers is None else describe_memory_of_calls(results, plan, answers.fastest)
    if sentence is not None:
        st.caption(plain(sentence))


def run_progress(bench: Bench, run: Run, progress: Progress) -> None:
    """The progress of a run that is being measured, with a button that cancels it."""
    with st.container(border=True, horizontal=True, vertical_alignment="top", key="going"):
        with st.container(key="going_bar", gap=None):
            # Whose run the device measures, while it is not this one, or if somebody else started this one.
            now = bench.under_way(run.plan.device)
            if now is not None and (now.name != run.id or now.owner != session.owner()):
                own = now.owner == session.owner()
                said = describe_under_way(now.name, now.op, now.done, now.total, own=own, remaining_s=now.remaining_s)
                st.caption(plain(sentence_case(said)))
            live_progress.following(run.id, progress, key="live_run")
        callbacks.button(
            "Cancel", partial(bench.cancel, run.id), key="cancel", about=run.id,
            icon=":material/stop_circle:", help="Ends after the current block. Finished cases are stored.",
        )  # fmt: skip


def _visible_variants(run: Run) -> tuple[str, ...]:
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
            format_func=lambda v: f"{mark(run.plan.op, v, run.plan.variants)} {plain(format_variant(v))}",
        )
    view_filters.keep(_HIDE, ",".join(v for v in rest if v in hidden), "")
    return visible


def _hidden(run: Run) -> set[str]:
    """The variants that are hidden in this session, whichever run is shown; on a new page those that the address names."""
    if _HIDDEN in st.session_state:
        return set(st.session_state[_HIDDEN])
    named = [n for n in st.query_params.get(_HIDE, "").split(",") if n]
    unknown = [n for n in named if n not in run.plan.variants or n == run.plan.baseline]
    if unknown:
        st.caption(f":orange[{_HIDE}: {plain(', '.join(unknown))} cannot be hidden in this run and is ignored]")
    return set(named) - set(unknown)
