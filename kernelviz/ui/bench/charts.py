"""The charts of a run on the page Bench: by size, the roofline, and all variants at one size."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from kernelviz import plots
from kernelviz.bench.snapshots import narrowed
from kernelviz.core import Problem, Run
from kernelviz.metrics.chart_selection import drawn_words, only_drawn
from kernelviz.metrics.configuration import is_configuration
from kernelviz.metrics.figures import host_bound_words
from kernelviz.metrics.roofline import Headline
from kernelviz.metrics.summary import Row, by_rate, rows
from kernelviz.metrics.sweep import others, size_words, swept_axis, tied_axes, varying_axes
from kernelviz.plots.frame import format_run
from kernelviz.plots.marker_images import mark
from kernelviz.plots.variant_styles import format_variant
from kernelviz.text.cells import describe_comparison_with_baseline, describe_outcome
from kernelviz.text.charts import describe_bars, describe_chart_by_size, describe_roofline
from kernelviz.text.quality import describe_quality_of
from kernelviz.text.results import format_configuration, format_time
from kernelviz.ui.bench import winners
from kernelviz.ui.shared import view_filters
from kernelviz.ui.shared.text import plain

_CHARTS: dict[str, Callable[..., Any]] = {
    "bandwidth": plots.bandwidth_by_size,
    "rate": plots.rate_by_size,
    "time": plots.latency_by_size,
    "winner": plots.winner_by_size,
}


def runs_in_charts(run: Run, second: Run | None) -> tuple[Run, ...]:
    """The runs with the variants that the charts show: of a run with very many, only some; a caption says which."""
    if drawn_words(run):
        st.caption(drawn_words(run))
    return tuple(only_drawn(one) for one in ((run,) if second is None else (run, second)))


def _problems(results: Sequence[Row]) -> list[Problem]:
    return list({r.result.problem.key: r.result.problem for r in results}.values())


def chart_by_size(runs: Sequence[Run], results: Sequence[Row], headline: Headline) -> str | None:
    """Bandwidth, arithmetic rate, time or fastest variant by size; returns the key of the problem whose point was clicked."""
    problems = _problems(results)
    axis = swept_axis(problems)
    with st.container(horizontal=True, gap="small", key="view"):
        default = "rate" if by_rate(results) else "bandwidth"
        view_filters.seed("show", list(_CHARTS), default)
        chosen = st.segmented_control("Chart", list(_CHARTS), key="show", required=True, label_visibility="collapsed")
        view_filters.keep("show", chosen, default)
        axis = _axis_box(problems, axis)
    # Each run has the roofs of its own machine. The fastest variant is shown for one run only.
    source = runs[0] if chosen == "winner" else runs
    figure = _CHARTS[chosen or "time"](source, axis=axis, headline=headline)
    sentences = winners.winner_lines(results, axis, headline) if chosen == "winner" else []
    event = st.plotly_chart(
        figure, key="by_size", on_select="rerun", selection_mode="points", config=view_filters.CHART,
        alt=str(describe_chart_by_size(chosen or "time", sentences)),
    )  # fmt: skip
    if sentences:
        winners.winner_sentences(sentences)
    points = event.selection.points if event is not None else []
    return str(points[-1].get("customdata")) if points else None


def _axis_box(problems: Sequence[Problem], axis: str | None) -> str | None:
    if axis is None or not others(problems[0], problems, axis):
        return axis  # The other axes are functions of this one: a chart by one of them would show the same.
    free = [a for a in varying_axes(problems) if a == axis or a not in tied_axes(problems, axis)]
    view_filters.seed("against", free, axis)
    chosen: str = st.selectbox("Horizontal axis", free, key="against", label_visibility="collapsed", width=110)
    view_filters.keep("against", chosen, axis)
    return chosen


def size_box(results: Sequence[Row], clicked_key: str | None) -> Problem:
    """The size of the roofline and the bars: chosen in the box, or by a click on a point of the chart by size.

    Until the user chooses, it is the last size with a time, which changes while a run is measured.
    """
    problems = _problems(results)
    timed = [r.result.problem for r in results if r.result.timing is not None]
    names = {_size_name(p): p for p in problems}
    clicked = {p.key: name for name, p in names.items()}.get(clicked_key or "")
    if clicked is not None and st.session_state.get("clicked") != clicked:
        st.session_state["at"] = clicked
    st.session_state["clicked"] = clicked
    default = _size_name((timed or problems)[-1])
    view_filters.seed("at", list(names), default)
    name = st.selectbox(
        "Size of the charts below and beside",
        list(names),
        key="at",
        label_visibility="collapsed",
        format_func=lambda n: f"roofline at {size_words(names[n])}",
    )
    view_filters.keep("at", name, default)
    return names[name]


def _size_name(problem: Problem) -> str:
    return "x".join(str(s) for s in problem.sizes.values())


def roofline_at_size(runs: Sequence[Run], problem: Problem, headline: Headline) -> None:
    """The variants at one size under the roofs of the device."""
    st.plotly_chart(
        plots.rate_by_intensity(runs, problem, headline=headline), key="roofline", config=view_filters.CHART,
        alt=str(describe_roofline(problem)),
    )  # fmt: skip


def time_bars(runs: Sequence[Run], problem: Problem, headline: Headline) -> None:
    """The time of each variant at one size."""
    st.markdown(f"**Time and share of the roof at {plain(size_words(problem))}**")
    st.plotly_chart(
        plots.time_by_variant(runs, problem, headline=headline), key="bars", config=view_filters.CHART,
        alt=str(describe_bars(problem)),
    )  # fmt: skip


def variants_compared_with_baseline(runs: Sequence[Run], problem: Problem, headline: Headline) -> None:
    """Each variant at one size: time, comparison with the baseline, and measurement quality."""
    for run in runs:
        name = f" · {plain(format_run(run, runs))}" if len(runs) > 1 else ""
        st.markdown(f"**Compared with {plain(format_variant(run.plan.baseline))} at this size{name}**")
        at_size = narrowed(run, None, [problem.key]) if problem in run.plan.problems else None
        results = rows(at_size, run.environment.roofs, headline) if at_size is not None else ()
        lines = [_describe_row(row, run, headline) for row in results]
        st.markdown("\n".join(f"- {line}" for line in lines) or "This run has no result at this size.")


def _describe_row(row: Row, run: Run, headline: Headline) -> str:
    name = f"{mark(run.plan.op, row.result.variant)} **{plain(format_variant(row.result.variant))}**"
    if row.failure is not None:
        return f"{name} :red[✕] {plain(describe_outcome(row))[1:].strip()}"
    if row.figure is None:
        return f"{name} no {headline} time"
    quality = describe_quality_of(row.result, headline, run.method.clock)
    bound = host_bound_words(row.result.timing)
    configuration = format_configuration(row.result)
    line = f"{name} {plain(format_time(row.figure))} · {plain(describe_comparison_with_baseline(row))}"
    line += (
        f" · {plain(configuration)}" if row.result.configuration and not is_configuration(row.result.variant) else ""
    )
    return f"{line}{f' · **{plain(bound)}**' if bound else ''}  \n:small[:gray[{plain(quality)}]]"
