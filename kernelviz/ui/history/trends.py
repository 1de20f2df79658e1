"""Trends on the page History: which cases became slower and when, and the time of one case from run to run."""

from dataclasses import replace

import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench
from kernelviz.bench.trends import CaseTrend
from kernelviz.core import units
from kernelviz.metrics.trend import Point
from kernelviz.plots.marker_images import mark
from kernelviz.tables.column import Column
from kernelviz.text import (
    describe_change,
    describe_trend,
    format_difference,
    format_problem,
    format_setup,
    format_variant,
)
from kernelviz.text.caches import format_caches
from kernelviz.text.text import join
from kernelviz.ui.shared import charts, site, table, view_filters
from kernelviz.ui.shared.text import plain


def cases_with_trend(bench: Bench, device: str, l2: str) -> list[CaseTrend]:
    """The cases of the device with times of at least two runs."""
    return [c for c in bench.trends.cases(device, l2=l2) if len(c.trend.points) >= 2]


def device_and_l2(bench: Bench) -> tuple[str, str]:
    """Boxes for the device and the device time."""
    devices = {d.id: d.name for d in bench.devices()}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="trend_choices"):
        device = view_filters.choose(
            st.selectbox, "Device", list(devices), bench.default_device(), key="trend_device",
            format_func=lambda d: f"{d} · {devices[d]}", width=320,
        )  # fmt: skip
        return device, view_filters.l2_control(
            "trend_l2", cache=format_caches(bench.device(device)), label_visibility="visible"
        )


def empty_state(l2: str) -> None:
    """What to do while no case was measured twice."""
    with st.container(border=True, key="no_trends"):
        st.markdown(
            f"**A trend needs {l2} times of the same case from at least two runs on this device.** Measure a run again after a "
            "change: press **Manage**, then **Measure again**, or run `kernelviz regress RUN`, for example every night."
        )
        st.page_link(site.page("bench"), label="Measure a run", icon=":material/play_arrow:")


def regressions(slower: tuple[CaseTrend, ...], cases: int) -> None:
    """The cases that are slower than at their best, with the run and the change since when."""
    if not slower:
        st.success(
            f"No case became slower ({units.counted(cases, 'case')} checked).",
            icon=":material/check:",
        )
        return
    st.markdown(f"**{len(slower)} of {cases} cases are slower than their best time so far**")
    table.show(
        _REGRESSIONS,
        slower,
        key="regressions",
        alt="Cases that are slower than their best time so far, the worst first",
    )


def _since(case: CaseTrend) -> Point | None:
    change = case.trend.regression
    return case.trend.points[change.index] if change else None


_REGRESSIONS: tuple[Column[CaseTrend], ...] = (
    Column("", "Case", "", units.TEXT, lambda c: format_problem(c.problem)),
    Column("", "Variant", "", units.TEXT, lambda c: format_variant(c.variant)),
    Column("", "Slower by", "The current time divided by the best time so far, minus one.", replace(units.CHANGE, form=".3g"),
           lambda c: c.trend.regression.ratio - 1 if c.trend.regression else None),
    Column("", "Since", "The day of the first run with the slower time.", units.TEXT,
           lambda c: p.at[:10] if (p := _since(c)) else None),
    Column("", "Run", "The first run with the slower time.", units.TEXT, lambda c: p.run_id if (p := _since(c)) else None),
    Column("", "What changed in that run", "Differences between that run and the one before it.", units.TEXT,
           lambda c: join(", ", map(format_difference, r.because)) if (r := c.trend.regression) and r.because else None),
)  # fmt: skip


def case_box(cases: list[CaseTrend], slower: tuple[CaseTrend, ...]) -> CaseTrend:
    """The case to draw: the largest regression until the user chooses another."""
    by_key = {c.key: c for c in (*slower, *cases)}
    key = view_filters.choose(
        st.selectbox, "Case", list(by_key), next(iter(by_key)), key="trend", format_func=lambda k: _name(by_key[k])
    )
    return by_key[key]


def _name(case: CaseTrend) -> str:
    data = case.problem.data
    suffix = "" if data in (None, "normal") else f", {data} data".replace("_", " ")
    return f"{format_problem(case.problem)}{suffix} · {format_variant(case.variant)}"


def trend_of_case(case: CaseTrend, device: str) -> None:
    """The time of one case from run to run, and each change of its level. `device`: its name."""
    marker = mark(case.problem.op, case.variant, case.beside)
    state = f"{marker} {plain(describe_trend(case.trend))} · {plain(format_setup(case.setup))}"
    if case.left_out:
        runs, are = (f"{case.left_out} runs", "are") if case.left_out != 1 else ("1 run", "is")
        state += f" · {runs} with another clock mode, timer or launch method {are} not shown"
    st.markdown(state)
    charts.draw(
        plots.time_by_run(case.trend, case.problem.op, case.variant, beside=case.beside), key="trend_chart",
        alt=f"Time of {_name(case)} from run to run: {describe_trend(case.trend)}",
        picture=charts.picture(f"{_name(case)}: time from run to run", device, case.trend.points[-1].at),
    )  # fmt: skip
    if case.trend.changes:
        st.markdown("\n".join(f"- {plain(describe_change(c, case.trend))}" for c in reversed(case.trend.changes)))
