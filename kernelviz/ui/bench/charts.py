"""The charts of a run on the page Bench: by size, the roofline, and all variants at one size."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from kernelviz import plots
from kernelviz.bench.snapshots import narrowed
from kernelviz.core import Problem, Run
from kernelviz.core.configuration import is_configuration
from kernelviz.hardware.datasheet import ceilings_by_device
from kernelviz.metrics.chart_selection import charted_run
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.rows import Row, rows, usual_quantity
from kernelviz.metrics.summary import best_of
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
    format_badge_of,
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
    "speed-up": plots.speed_up_by_size,
    "winner": plots.winner_by_size,
}


def runs_in_charts(run: Run, second: Run | None) -> tuple[Run, ...]:
    """The runs with the variants that the charts show: of a run with very many, only some; a caption says which."""
    selection = describe_selection(run)
    if selection:
        st.caption(str(selection))
    return tuple(charted_run(one) for one in ((run,) if second is None else (run, second)))


def variants_with_styles(run: Run) -> tuple[str, ...]:
    """The variants of the whole run that have a style of their own in its charts, hidden or not."""
    return charted_run(run).plan.variants


def chart_by_size(runs: Sequence[Run], results: Sequence[Row], headline: Headline, beside: Sequence[str]) -> None:
    """Bandwidth, arithmetic rate, time or fastest variant by size. A click on a point chooses its size in `size_box`.

    `beside`: all variants of the run, also hidden ones, so that hiding one never changes the style of another.
    """
    problems = _problems(results)
    with st.container(horizontal=True, gap="small", key="view"):
        default = usual_quantity(results)
        chosen = view_filters.choose(
            st.segmented_control, "Chart", list(_CHARTS), default, key="show", label_visibility="collapsed"
        )
        axis = _axis_box(problems)
    # Each run has the roofs of its own machine. The fastest variant is shown for one run only.
    figure = partial(
        _CHARTS[chosen], runs[0] if chosen == "winner" else runs, axis=axis, headline=headline, beside=beside
    )
    sentences = []
    if chosen == "winner":
        sentences = describe_winners(
            results, winners(results, headline), axis, format_variant, format_size, best_of(results, headline)
        )
    names = {p.key: _size_name(p) for p in problems}
    at = st.session_state.get("at")
    charts.draw_clickable(
        figure, key="by_size", alt=describe_chart_by_size(chosen, sentences),
        picture=charts.picture_of(runs, f"{'fastest variant' if chosen == 'winner' else chosen} by size"),
        select=partial(_choose_size, names), current=next((key for key, name in names.items() if name == at), None),
        name=lambda key: names.get(key, key),
    )  # fmt: skip
    if sentences:
        st.markdown(
            "\n".join(f"- {plain(line)}" for line in sentences),
            help="A variant is fastest at a size if the whole 95 % interval of the time ratio to every other variant is beyond "
            "the noise floor. If the interval is within it, the size is a statistical tie and hatched. If the noise is too "
            "high to compare, the size is unclear and dotted.",
        )


def _choose_size(names: Mapping[str, str], key: str | None) -> None:
    """Choose the size of a clicked point. `names`: the name of each size by the key of its problem."""
    if key is not None and key in names:
        st.session_state["at"] = names[key]


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


def size_box(results: Sequence[Row]) -> Problem:
    """The size of the roofline and the bars: chosen in the box, or by a click on a point of the chart by size.

    Until the user chooses, it is the last size with a time, which changes while a run is measured.
    """
    problems = {_size_name(p): p for p in _problems(results)}
    timed = [_size_name(r.result.problem) for r in results if r.result.timing is not None]
    name = view_filters.choose(
        st.selectbox, "Size of the charts below and beside", list(problems), (timed or list(problems))[-1], key="at",
        label_visibility="collapsed", format_func=lambda n: f"roofline at {format_sizes(problems[n])}",
    )  # fmt: skip
    return problems[name]


def _size_name(problem: Problem) -> str:
    return "x".join(str(s) for s in problem.sizes.values())


def roofline_at_size(runs: Sequence[Run], problem: Problem, headline: Headline, beside: Sequence[str]) -> None:
    """The variants at one size under the roofs of the device, measured and of its data sheet."""
    sheets = ceilings_by_device(run.environment.device.name for run in runs)
    charts.draw(
        partial(plots.rate_by_intensity, runs, problem, headline=headline, sheets=sheets, beside=beside), key="roofline",
        alt=describe_roofline(problem), picture=charts.picture_of(runs, f"roofline at {format_sizes(problem)}"),
    )  # fmt: skip


def time_bars(runs: Sequence[Run], problem: Problem, headline: Headline, beside: Sequence[str]) -> None:
    """The time of each variant at one size."""
    st.markdown(f"**Time and share of the roof at {plain(format_sizes(problem))}**")
    charts.draw(
        partial(plots.time_by_variant, runs, problem, headline=headline, beside=beside), key="bars", alt=describe_bars(problem),
        picture=charts.picture_of(runs, f"time and share of the roof at {format_sizes(problem)}"),
    )  # fmt: skip


def variants_compared_with_baseline(
    runs: Sequence[Run], problem: Problem, headline: Headline, beside: Sequence[str]
) -> None:
    """Each variant at one size: time, comparison with the baseline, and measurement quality."""
    for run in runs:
        name = f" · {plain(format_run(run, runs))}" if len(runs) > 1 else ""
        st.markdown(f"**Compared with {plain(format_variant(run.plan.baseline))} at this size{name}**")
        at_size = narrowed(run, None, [problem.key]) if problem in run.plan.problems else None
        results = rows(at_size, run.environment.roofs, headline) if at_size is not None else ()
        lines = [_describe_row(row, run, headline, beside) for row in results]
        st.markdown("\n".join(f"- {line}" for line in lines) or "This run has no result at this size.")
        rated = [row for row in results if row.figure is not None or row.wrong_figure is not None]
        if rated:
            with st.expander(f"Measurement quality, part by part{name}"):
                st.markdown("\n".join(f"- {_describe_parts(row, run, headline)}" for row in rated))


def _describe_parts(row: Row, run: Run, headline: Headline) -> str:
    quality = describe_quality_of(row.result, headline, run.method.clock)
    return f"**{plain(format_variant(row.result.variant))}** {plain(quality)}"


def _describe_row(row: Row, run: Run, headline: Headline, beside: Sequence[str]) -> str:
    name = f"{mark(run.plan.op, row.result.variant, beside)} **{plain(format_variant(row.result.variant))}**"
    if row.failure is not None:
        return f"{name} :red[✕] {plain(describe_outcome(row))[1:].strip()}"
    if row.figure is None:
        return f"{name} no {headline} time"
    quality = format_badge_of(row.result, headline, run.method.clock)
    bound = format_host_bound(row.result.timing)
    configuration = format_configuration(row.result)
    line = f"{name} {plain(format_time(row.figure))} · {plain(describe_comparison_with_baseline(row))}"
    line += (
        f" · {plain(configuration)}" if row.result.configuration and not is_configuration(row.result.variant) else ""
    )
    return f"{line}{f' · **{plain(bound)}**' if bound else ''}  \n:small[:gray[{plain(quality)}]]"
