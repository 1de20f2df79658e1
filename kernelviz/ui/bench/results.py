"""A run on the page: its state while it goes, four tiles, linked charts, and the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, get_args

import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench, Progress
from kernelviz.bench.snapshots import narrowed
from kernelviz.core.problem import Problem
from kernelviz.core.run import LIVING, Roof, Run
from kernelviz.metrics.chart_selection import drawn_words, only_drawn
from kernelviz.metrics.configuration import is_configuration
from kernelviz.metrics.figures import host_bound_words
from kernelviz.metrics.roofline import Headline
from kernelviz.metrics.summary import Row, by_rate, figure_of, rows, summary
from kernelviz.metrics.sweep import others, size_words, swept_axis, tied_axes, varying_axes
from kernelviz.plots.frame import run_words
from kernelviz.plots.marker_images import mark
from kernelviz.plots.variant_styles import variant_words
from kernelviz.text.cells import against_words, outcome_words
from kernelviz.text.charts import bars_words, by_size_words, roofline_words
from kernelviz.text.configuration import format_configuration
from kernelviz.text.quality import describe_quality_of
from kernelviz.text.times import format_time
from kernelviz.ui.bench import second_run, tabs, variant_filter, winners
from kernelviz.ui.shared import callbacks, live_progress, session, share, tiles, view_filters
from kernelviz.ui.shared.text import plain, when

_SHOW: dict[str, Callable[..., Any]] = {
    "bandwidth": plots.bandwidth_by_size,
    "rate": plots.rate_by_size,
    "time": plots.latency_by_size,
    "winner": plots.winner_by_size,
}
_L2: tuple[Headline, ...] = get_args(Headline)


def show(bench: Bench, run: Run, progress: Progress | None, roofs: Sequence[Roof]) -> None:
    """Everything about a run, in the order in which one asks."""
    headline, names = _heading(bench, run, progress)
    other = second_run.beside(bench, run)
    if other is not None:
        second_run.bar(run, other)
        other = narrowed(other, names)
    run = second_run.roofed(bench, narrowed(run, names))
    if progress is not None and progress.status in LIVING:
        _going(bench, run, progress)
    found = rows(run, roofs, headline)
    tiles.show(summary(found, headline), run.plan, headline)
    if not found:
        st.caption("Figures appear here as soon as the first case is done; compiled variants arrive later.")
        return
    if drawn_words(run):
        st.caption(drawn_words(run))
    drawn = tuple(only_drawn(one) for one in ((run,) if other is None else (run, other)))
    told, found = found, tuple(row for row in found if row.result.variant in drawn[0].plan.variants)
    problem = _charts(drawn, found, headline)
    _at_one_size(drawn, problem, headline)
    tabs.show(bench, run, told, problem, headline, other)


def _heading(bench: Bench, run: Run, progress: Progress | None) -> tuple[Headline, tuple[str, ...]]:
    """What was measured and when, what can be done with it; returns which device time and which variants are to be shown."""
    first = run.plan.problems[0]
    parts = filter(None, (run.plan.op, first.dtype, first.compute, first.direction))
    status = progress.status if progress is not None else run.status
    said = f"{when(run.created_at)} · baseline {variant_words(run.plan.baseline)}"
    if first.data not in (None, "normal"):
        said += f" · {first.data.replace('_', ' ')} data"
    if run.method.clock == "sustained":
        said += " · sustained load"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="heading"):
        st.markdown(f"#### {plain(', '.join(parts))}", width="content")
        st.caption(plain(f"{run.title + ' · ' if run.title else ''}{said}"), width="content")
        if status in ("cancelled", "interrupted"):
            st.badge(status, color="orange", icon=":material/pause_circle:")
            callbacks.button(
                "Resume", partial(bench.resume, run.id, owner=session.owner()), key="resume", about=run.id,
                icon=":material/play_arrow:", help="Measures the cases without a result.",
            )  # fmt: skip
        names = variant_filter.variants(run)
        share.button(bench, run.id, key="share", run=run, variants=names)
        headline = _headline(run)
    with st.container(gap=None, key="notes"):
        if run.note:
            st.text(run.note)
        second_run.offer(bench, run)
        if headline == "warm":
            st.caption(_warm_words(run))
    return headline, names


def _going(bench: Bench, run: Run, progress: Progress) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="top", key="going"):
        with st.container(key="going_bar"):
            live_progress.following(run.id, progress, key="live_run")
        callbacks.button(
            "Cancel", partial(bench.cancel, run.id), key="cancel", about=run.id,
            icon=":material/stop_circle:", help="Ends after the block in hand.",
        )  # fmt: skip


def _headline(run: Run) -> Headline:
    """Which device time the tiles, charts and the table show: with flushed caches, or with the data left in them."""
    view_filters.seed("l2", list(_L2), "cold")
    cache = _cache(run)
    chosen: Headline = (
        st.segmented_control(
            "L2",
            list(_L2),
            key="l2",
            required=True,
            format_func=lambda name: f"{name} {cache}",
            label_visibility="collapsed",
            help="cold: the caches are flushed before each call. warm: its data lie where the call itself leaves them.",
        )
        or "cold"
    )
    view_filters.keep("l2", chosen, "cold")
    return chosen


def _cache(run: Run) -> str:
    return "L2" if run.environment.device.kind == "cuda" else "caches"


def _warm_words(run: Run) -> str:
    """What the warm time is of, or that it is not there yet."""
    of = f"Times with the data where the call itself leaves them: in the {_cache(run)} if they fit."
    timed = [r.timing for r in run.results if r.timing is not None]
    lacking = sum(figure_of(t, "warm") is None for t in timed)
    if not timed or not lacking:
        return of
    if lacking < len(timed):
        return f"{of} {lacking} of {len(timed)} cases have no warm time yet."
    if run.status in LIVING:
        return "No case has a warm time yet: they follow when the cold ones stand."
    asked = "warm" in run.method.figures
    return "No case has a warm time: " + (
        "none was reached." if asked else "this run did not ask for it. Run it again."
    )


def _charts(drawn: Sequence[Run], found: Sequence[Row], headline: Headline) -> Problem:
    problems = list({r.result.problem.key: r.result.problem for r in found}.values())
    axis = swept_axis(problems)
    left, right = st.columns([1.15, 1], gap="medium")
    with left:
        with st.container(horizontal=True, gap="small", key="view"):
            usual = "rate" if by_rate(found) else "bandwidth"
            view_filters.seed("show", list(_SHOW), usual)
            chosen = st.segmented_control("Draw", list(_SHOW), key="show", required=True, label_visibility="collapsed")
            view_filters.keep("show", chosen, usual)
            axis = _against(problems, axis)
        # Each run holds the roofs of its own machine. Who is fastest where is asked of one run.
        of = drawn[0] if chosen == "winner" else drawn
        figure = _SHOW[chosen or "time"](of, axis=axis, headline=headline)
        said = winners.words(found, axis, headline) if chosen == "winner" else []
        event = st.plotly_chart(
            figure, key="by_size", on_select="rerun", selection_mode="points", config=view_filters.CHART,
            alt=by_size_words(chosen or "time", said),
        )  # fmt: skip
        if said:
            winners.show(said)
    with right:
        timed = [r.result.problem for r in found if r.result.timing is not None]
        problem = _size_choice(problems, (timed or problems)[-1], event)
        st.plotly_chart(
            plots.rate_by_intensity(drawn, problem, headline=headline), key="roofline", config=view_filters.CHART,
            alt=roofline_words(problem),
        )  # fmt: skip
    return problem


def _against(problems: Sequence[Problem], axis: str | None) -> str | None:
    if axis is None or not others(problems[0], problems, axis):
        return axis  # The other axes follow from this one: drawing against them would show the same again.
    free = [a for a in varying_axes(problems) if a == axis or a not in tied_axes(problems, axis)]
    view_filters.seed("against", free, axis)
    chosen: str = st.selectbox("Against", free, key="against", label_visibility="collapsed", width=110)
    view_filters.keep("against", chosen, axis)
    return chosen


def _size_choice(problems: Sequence[Problem], newest: Problem, event: Any) -> Problem:
    """The size of the roofline and the bars: chosen in the box, or by a click on a point of the chart.

    Until somebody chooses, the newest one with a time is shown: while a run goes, that is another one each time.
    """
    names = {_size_name(p): p for p in problems}
    keys = {p.key: name for name, p in names.items()}
    points = event.selection.points if event is not None else []
    clicked = keys.get(str(points[-1].get("customdata"))) if points else None
    if clicked is not None and st.session_state.get("clicked") != clicked:
        st.session_state["at"] = clicked
    st.session_state["clicked"] = clicked
    default = _size_name(newest)
    view_filters.seed("at", list(names), default)
    name = st.selectbox(
        "At size",
        list(names),
        key="at",
        label_visibility="collapsed",
        format_func=lambda n: f"roofline at {size_words(names[n])}",
    )
    view_filters.keep("at", name, default)
    return names[name]


def _size_name(problem: Problem) -> str:
    return "x".join(str(s) for s in problem.sizes.values())


def _at_one_size(drawn: Sequence[Run], problem: Problem, headline: Headline) -> None:
    left, right = st.columns([1.15, 1], gap="medium")
    with left:
        st.markdown(f"**Time and share of the roof at {plain(size_words(problem))}**")
        st.plotly_chart(
            plots.time_by_variant(drawn, problem, headline=headline), key="bars", config=view_filters.CHART,
            alt=bars_words(problem),
        )  # fmt: skip
    with right:
        for run in drawn:
            name = f" · {plain(run_words(run, drawn))}" if len(drawn) > 1 else ""
            st.markdown(f"**Against {plain(variant_words(run.plan.baseline))} at this size{name}**")
            here = narrowed(run, None, [problem.key]) if problem in run.plan.problems else None
            found = rows(here, run.environment.roofs, headline) if here is not None else ()
            lines = [_in_words(row, run, headline) for row in found]
            st.markdown("\n".join(f"- {line}" for line in lines) or "No result at this size.")


def _in_words(row: Row, run: Run, headline: Headline) -> str:
    name = f"{mark(run.plan.op, row.result.variant)} **{plain(variant_words(row.result.variant))}**"
    if row.failure is not None:
        return f"{name} :red[✕] {plain(outcome_words(row))[1:].strip()}"
    if row.figure is None:
        return f"{name} no {headline} time"
    trusted = describe_quality_of(row.result, headline, run.method.clock)
    bound = host_bound_words(row.result.timing)
    configured = format_configuration(row.result)
    said = f"{name} {plain(format_time(row.figure))} · {plain(against_words(row))}"
    said += f" · {plain(configured)}" if configured and not is_configuration(row.result.variant) else ""
    return f"{said}{f' · **{plain(bound)}**' if bound else ''}  \n:small[:gray[{plain(trusted)}]]"
