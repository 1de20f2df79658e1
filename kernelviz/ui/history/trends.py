"""Trends on the History page: what is slower than it was and since when, and one case from run to run."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench
from kernelviz.bench.trends import CaseTrend
from kernelviz.core import units
from kernelviz.core.problem import Problem
from kernelviz.metrics.sweep import problem_words
from kernelviz.metrics.trend import Point
from kernelviz.plots.marker_images import mark
from kernelviz.plots.variant_styles import variant_words
from kernelviz.tables.column import Column
from kernelviz.text.trends import change_words, setup_words, state_words
from kernelviz.ui.shared import site, table, view_filters
from kernelviz.ui.shared.text import plain

_L2 = ("cold", "warm")
_LEAST_RUNS = 2


def show(bench: Bench) -> None:
    """The device's regressions, then the chosen case."""
    device, l2 = _choices(bench)
    found = [c for c in bench.trends.cases(device, l2=l2) if len(c.trend.points) >= _LEAST_RUNS]
    if not found:
        _nothing(l2)
        return
    slower = bench.trends.slower(found)
    _regressions(slower, len(found))
    chosen = _case_choice(found, slower)
    _case(bench.trends.case(device, chosen.problem, chosen.variant, l2=l2) or chosen)


def _choices(bench: Bench) -> tuple[str, str]:
    devices = {d.id: d.name for d in bench.devices()}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="trend_choices"):
        first = bench.default_device()
        view_filters.seed("trend_device", list(devices), first)
        device: str = st.selectbox(
            "Device", list(devices), key="trend_device", format_func=lambda d: f"{d} · {devices[d]}", width=320
        )
        view_filters.keep("trend_device", device, first)
        view_filters.seed("trend_l2", list(_L2), "cold")
        l2: str = st.segmented_control("L2", list(_L2), key="trend_l2", required=True) or "cold"
        view_filters.keep("trend_l2", l2, "cold")
    return device, l2


def _nothing(l2: str) -> None:
    with st.container(border=True, key="no_trends"):
        st.markdown(
            f"**No case has {l2} times of two runs on this device yet.** Measure the same plan again, tomorrow or after "
            "a change: `kernelviz regress RUN` does it, on a timer if you like."
        )
        st.page_link(site.page("bench"), label="Measure something", icon=":material/play_arrow:")


def _regressions(slower: tuple[CaseTrend, ...], cases: int) -> None:
    if not slower:
        st.success(
            f"Nothing is slower than it was: {cases} case{'s' if cases != 1 else ''} looked at.",
            icon=":material/check:",
        )
        return
    st.markdown(f"**{len(slower)} of {cases} cases are slower than at their best**")
    table.show(_REGRESSIONS, slower, key="regressions", alt="Cases that are slower than at their best, the worst first")


def _since(case: CaseTrend) -> Point | None:
    change = case.trend.regression
    return case.trend.points[change.index] if change else None


_REGRESSIONS: tuple[Column[CaseTrend], ...] = (
    Column("", "Case", "", units.TEXT, lambda c: problem_words(c.problem)),
    Column("", "Variant", "", units.TEXT, lambda c: variant_words(c.variant)),
    Column("", "Slower by", "Today's level over the best one, less one.", replace(units.CHANGE, form=".1f"),
           lambda c: c.trend.regression.ratio - 1 if c.trend.regression else None),
    Column("", "Since", "Day of the first run with this level.", units.TEXT, lambda c: p.at[:10] if (p := _since(c)) else None),
    Column("", "Run", "The first run with this level.", units.TEXT, lambda c: p.run_id if (p := _since(c)) else None),
    Column("", "What changed then", "What differs between the runs before and after.", units.TEXT,
           lambda c: ", ".join(c.trend.regression.because) or None if c.trend.regression else None),
)  # fmt: skip


def _case_choice(found: list[CaseTrend], slower: tuple[CaseTrend, ...]) -> CaseTrend:
    """The case to be drawn: the worst regression first, then by name."""
    known = {c.key: c for c in (*slower, *found)}
    first = next(iter(known))
    view_filters.seed("trend", list(known), first)
    key: str = st.selectbox("Case", list(known), key="trend", format_func=lambda k: _name(known[k]))
    view_filters.keep("trend", key, first)
    return known[key]


def _name(case: CaseTrend) -> str:
    return f"{_with_data(case.problem)} · {variant_words(case.variant)}"


def _with_data(problem: Problem) -> str:
    data = f", {problem.data} data".replace("_", " ") if problem.data not in (None, "normal") else ""
    return f"{problem_words(problem)}{data}"


def _case(case: CaseTrend) -> None:
    said = f"{mark(case.problem.op, case.variant)} {plain(state_words(case.trend))} · {plain(setup_words(case.setup))}"
    if case.left_out:
        runs = f"{case.left_out} run{'s' if case.left_out != 1 else ''}"
        said += f" · {runs} with another clock mode, timer or launch left out"
    st.markdown(said)
    st.plotly_chart(
        plots.time_by_run(case.trend, case.problem.op, case.variant),
        key="trend_chart",
        config=view_filters.CHART,
        alt=f"Time of {_name(case)} from run to run: {state_words(case.trend)}",
    )
    lines = [change_words(c, case.trend) for c in reversed(case.trend.changes)]
    if lines:
        st.markdown("\n".join(f"- {plain(line)}" for line in lines))
