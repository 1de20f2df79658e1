"""The boxes of the page Workloads: the workload, the run, the view, the point and the variant; the address repeats them."""

from collections.abc import Sequence
from typing import Literal

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.workload_history import WorkloadSummary
from kernelviz.core import UnknownRun
from kernelviz.core.workload import Workload, WorkloadRun
from kernelviz.core.workload_errors import UnknownWorkloadRun
from kernelviz.metrics.workload_headline import headline_of
from kernelviz.metrics.workloads import points, rows
from kernelviz.text.workloads import format_point
from kernelviz.ui.shared import missing_run, view_filters
from kernelviz.ui.shared.text import distinct_labels, when

RUN = "of_run"
"""The parameter of the address that names the run. `run` opens a run on the page Bench."""
View = Literal["results", "compare"]
_KNOWN = (
    "workload", RUN, "view", "at", "figure", "lane_of", "a", "variant_a", "variant_b", "on", "preset", "variants", "budget",
)  # fmt: skip
"""The parameters of the address, without those of the axes."""
_CHOSEN = "workload_run"
_MOST_RUNS = 300


def workload(bench: Bench) -> Workload | None:
    """The workload that the page is about: of the run that the address names, else of the address, else the first one with a run;
    None if none is installed and no run is stored."""
    declared = dict(bench.workloads.declared())
    named = _of_address(bench)
    if named is not None and named.plan.workload not in declared:
        declared[named.plan.workload] = named.declared  # of a plug-in of another machine
    if not declared:
        return None
    names = list(declared)
    if named is not None and view_filters.moved(RUN):
        st.session_state["workload"] = named.plan.workload
    default = named.plan.workload if named is not None else _first_with_run(bench, names)
    chosen = view_filters.choose(
        st.selectbox, "Workload", names, default, key="workload", always_named=True, width=420,
        format_func=lambda name: f"{declared[name].title} ({name})",
    )  # fmt: skip
    return declared[chosen]


def report_unknown(bench: Bench, workload: Workload) -> None:
    """Name the parameters of the address that the page does not have. Values of the axes of another workload, which the page
    wrote itself, are removed."""
    axes = [f"set_{axis.name}" for axis in workload.axes]
    other_parameters = {f"set_{axis.name}" for other in bench.workloads.declared().values() for axis in other.axes}
    for name in other_parameters.difference(axes):
        view_filters.write(name, None)
    view_filters.report_unknown((*_KNOWN, *axes))


def _of_address(bench: Bench) -> WorkloadRun | None:
    run_id = st.query_params.get(RUN)
    try:
        return bench.workloads.load(run_id) if run_id else None
    except UnknownRun:
        return None


def _first_with_run(bench: Bench, names: list[str]) -> str:
    newest = (*bench.workloads.find(limit=1), *bench.workloads.shipped())
    return next((run.workload for run in newest if run.workload in names), names[0])


def runs_of(bench: Bench, workload: Workload) -> dict[str, WorkloadSummary]:
    """The runs of a workload: those of this machine, the newest first, then those that came with kernelviz."""
    here = [run for run in bench.workloads.find(workload.name, limit=_MOST_RUNS) if run.workload == workload.name]
    return {run.id: run for run in (*here, *bench.workloads.shipped(workload.name))}


def label_of(run: WorkloadSummary) -> str:
    """A run in a box."""
    recorded = "recorded, " if run.shipped else ""
    return f"{run.name} · {recorded}{when(run.created_at)} · {run.status}"


def run_box(bench: Bench, workload: Workload) -> WorkloadRun | None:
    """The run that is shown, from the address or the box; None if there is none. A run that is not here is named."""
    runs = runs_of(bench, workload)
    wanted = st.query_params.get(RUN)
    if wanted and wanted not in runs:
        if _is_of_other_workload(bench, wanted, workload):
            view_filters.write(RUN, None)
        else:
            missing_run.say(wanted, of="a workload", error=UnknownWorkloadRun)
            _another_run(runs)
        wanted = None
    if not runs:
        return None
    if view_filters.moved(RUN) or st.session_state.get(_CHOSEN) not in runs:
        st.session_state[_CHOSEN] = wanted if wanted in runs else next(iter(runs))
    chosen = view_filters.widget_with_value(
        st.selectbox, "Run", list(runs), key=_CHOSEN, width="stretch",
        format_func=distinct_labels(runs, lambda i: label_of(runs[i])),
        help="Runs of this workload: those of this machine, the newest first, then those that came with kernelviz.",
    ) or next(iter(runs))  # fmt: skip
    view_filters.write(RUN, chosen)
    return bench.workloads.load(chosen)


def _another_run(runs: dict[str, WorkloadSummary]) -> None:
    """Offer the runs that there are. The page shows none of them until one is chosen, so that nobody takes it for the run that
    the address names."""
    if not runs:
        return
    chosen = st.selectbox(
        "Show another run", list(runs), index=None, key="workload_run_instead", placeholder="Choose a run",
        format_func=distinct_labels(runs, lambda i: label_of(runs[i])),
    )  # fmt: skip
    if chosen is None:
        st.stop()
    choose_run(chosen)
    st.rerun()


def _is_of_other_workload(bench: Bench, run_id: str, workload: Workload) -> bool:
    try:
        return bench.workloads.load(run_id).plan.workload != workload.name
    except UnknownRun:
        return False


def choose_run(run_id: str) -> None:
    """Show this run, of the workload that the page is about, from the next redraw on."""
    st.session_state[_CHOSEN] = run_id
    view_filters.write(RUN, run_id)


def view() -> View:
    """Whether the page shows the run, or compares it."""
    options: tuple[View, ...] = ("results", "compare")
    return view_filters.choose(
        st.segmented_control, "View", options, "results", key="view", label_visibility="collapsed",
        format_func=str.capitalize,
    )  # fmt: skip


def point(run: WorkloadRun) -> str | None:
    """The point whose bars or timeline are drawn; a box if there are several. The address repeats it as `at`."""
    by_key = points(run)
    with_result = {row.case.point for row in rows(run) if row.result is not None}
    keys = [key for key in by_key if key in with_result] or list(by_key)
    if len(keys) < 2:
        return keys[0] if keys else None
    return view_filters.choose(
        st.selectbox, "At", keys, _default_point(run, keys), key="at", width=320,
        format_func=lambda key: str(format_point(run, by_key[key])),
    )  # fmt: skip


def _default_point(run: WorkloadRun, keys: Sequence[str]) -> str:
    """The point of the sentence above the chart; the last one where no variant is better than the baseline."""
    usable = [row for row in rows(run) if row.usable]
    if not usable:
        return keys[-1]
    of_run = headline_of(run, usable)
    return of_run.points[-1] if of_run.best is None else of_run.best.case.point


def figure(run: WorkloadRun) -> str:
    """The figure of the bars or lines; the address repeats it as `figure`."""
    headline = (run.declared.chart.figures or (run.declared.headline.name,))[0]
    known = {f.name: f.title for f in run.declared.figures if any(row.value(f.name) for row in rows(run))}
    if len(known) < 2:
        return headline
    default = headline if headline in known else next(iter(known))
    return view_filters.choose(
        st.selectbox, "Figure", list(known), default, key="figure", width=240, format_func=known.__getitem__
    )


def timeline_variant(run: WorkloadRun, at: str | None) -> str | None:
    """Whose timeline is drawn; a box if several variants have one."""
    names = [
        row.case.variant for row in rows(run, point=at) if row.result is not None and row.result.timeline is not None
    ]
    if len(names) < 2:
        return names[0] if names else None
    return view_filters.choose(st.selectbox, "Timeline of", names, names[0], key="lane_of", width=240)
