"""The charts of a run on the page Bench: by size, the roofline, and all variants at one size."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from kernelviz import plots
from kernelviz.bench.snapshots import narrowed
from kernelviz.core import Problem, Run
from kernelviz.core.configuration import is_configuration
from kernelviz.metrics.chart_selection import charted_run
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.rows import Row, by_rate, rows
from kernelviz.metrics.sweep import line_sizes, swept_axis, tied_axes, varying_axes
from kernelviz.metrics.winner import winners
from kernelviz.plots.frame import format_run
from kernelviz.plots.marker_images import mark
from kernelviz.text import (
    describe_bars,
    describe_chart_by_size,
    describe_comparison_with_baseline,
    describe_outcome,
    describe_quality_of,
    describe_roofline,
    describe_selection,
    describe_winners,
    format_configuration,
    format_host_bound,
    format_size,
    format_sizes,
    format_time,
    format_variant,
)
from kernelviz.ui.shared import charts, view_filters
from kernelviz.ui.shared.text import plain

_CHARTS: dict[str, Callable[..., Any]] = {
    "bandwidth": plots.bandwidth_by_size,
    "rate": plots.rate_by_size,
    "time": plots.latency_by_size,
    "winner": plots.winner_by_size,
}


def runs_in_charts(run: Run, second: Run | None) -> tuple[Run, ...]:
    """The runs with the variants that the charts show: of a run with very many, only some; a caption says which."""
    selection = describe_selection(run)
    if selection:
        st.caption(str(selection))
    return tuple(charted_run(one) for one in ((run,) if second is None else (run, second)))


def chart_by_size(runs: Sequence[Run], results: Sequence[Row], headline: Headline) -> str | None:
    """Bandwidth, arithmetic rate, time or fastest variant by size; returns the key of the problem whose point was clicked."""
    problems = _problems(results)
    with st.container(horizontal=True, gap="small", key="view"):
        default = "rate" if by_rate(results) else "bandwidth"
        chosen = view_filters.choose(
            st.segmented_control, "Chart", list(_CHARTS), default, key="show", label_visibility="collapsed"
        )
        axis = _axis_box(problems)
    # Each run has the roofs of its own machine. The fastest variant is shown for one run only.
    figure = _CHARTS[chosen](runs[0] if chosen == "winner" else runs, axis=axis, headline=headline)
    sentences = []
    if chosen == "winner":
        sentences = describe_winners(results, winners(results, headline), axis, format_variant, format_size)
    clicked = charts.draw_clickable(figure, key="by_size", alt=describe_chart_by_size(chosen, sentences))
    if sentences:
        st.markdown(
            "\n".join(f"- {plain(line)}" for line in sentences),
            help="A variant is fastest at a size if the whole 95 % interval of the time ratio to every other variant is beyond "
            "the noise floor. Otherwise it is a statistical tie: the size is hatched and the tied variants are listed.",
        )
    return clicked


def _problems(results: Sequence[Row]) -> list[Problem]:
    return list({r.result.problem.key: r.result.problem for r in results}.values())


def _axis_box(problems: Sequence[Problem]) -> str | None:
    axis = swept_axis(problems)
    if axis is None or not line_sizes(problems[0], problems, axis):
        return axis  # The other axes are functions of this one: a chart by one of them would show the same.
    free = [a for a in varying_axes(problems) if a == axis or a not in tied_axes(problems, axis)]
    return view_filters.choose(
        st.selectbox, "Horizontal axis", free, axis, key="against", label_visibility="collapsed", width=110
    )


def size_box(results: Sequence[Row], clicked_key: str | None) -> Problem:
    """The size of the roofline and the bars: chosen in the box, or by a click on a point of the chart by size.

    Until the user chooses, it is the last size with a time, which changes while a run is measured.
    """
    problems = {_size_name(p): p for p in _problems(results)}
    clicked = {p.key: name for name, p in problems.items()}.get(clicked_key or "")
    if clicked is not None and st.session_state.get("clicked") != clicked:
        st.session_state["at"] = clicked
    st.session_state["clicked"] = clicked
    timed = [_size_name(r.result.problem) for r in results if r.result.timing is not None]
    name = view_filters.choose(
        st.selectbox, "Size of the charts below and beside", list(problems), (timed or list(problems))[-1], key="at",
        label_visibility="collapsed", format_func=lambda n: f"roofline at {format_sizes(problems[n])}",
    )  # fmt: skip
    return problems[name]


def _size_name(problem: Problem) -> str:
    return "x".join(str(s) for s in problem.sizes.values())


def roofline_at_size(runs: Sequence[Run], problem: Problem, headline: Headline) -> None:
    """The variants at one size under the roofs of the device."""
    charts.draw(
        plots.rate_by_intensity(runs, problem, headline=headline), key="roofline", alt=describe_roofline(problem)
    )


def time_bars(runs: Sequence[Run], problem: Problem, headline: Headline) -> None:
    """The time of each variant at one size."""
    st.markdown(f"**Time and share of the roof at {plain(format_sizes(problem))}**")
    charts.draw(plots.time_by_variant(runs, problem, headline=headline), key="bars", alt=describe_bars(problem))


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
    bound = format_host_bound(row.result.timing)
    configuration = format_configuration(row.result)
    line = f"{name} {plain(format_time(row.figure))} · {plain(describe_comparison_with_baseline(row))}"
    line += (
        f" · {plain(configuration)}" if row.result.configuration and not is_configuration(row.result.variant) else ""
    )
    return f"{line}{f' · **{plain(bound)}**' if bound else ''}  \n:small[:gray[{plain(quality)}]]"
