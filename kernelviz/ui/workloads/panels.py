"""The panels of the page Workloads. `pages/workloads.py` puts them in reading order."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.workload_plan import limits, refusal
from kernelviz.core.workload import Workload, WorkloadRun, WorkloadVariant
from kernelviz.formats import workload_exports
from kernelviz.metrics.workloads import rows
from kernelviz.plots import workloads as plots
from kernelviz.tables.column import View
from kernelviz.tables.workloads import ladder_columns
from kernelviz.text import Text
from kernelviz.text.workload_gains import GAIN_MEANING
from kernelviz.text.workload_insight import describe_insight
from kernelviz.text.workload_quality import count_caveats
from kernelviz.text.workloads import (
    MECHANICS_ONLY,
    NEVER_ON_A_ROOFLINE,
    TRACED_STEP,
    describe_caveats,
    describe_counted,
    describe_devices,
    describe_failed,
    describe_figure,
    describe_neutral,
    describe_timeline,
)
from kernelviz.ui.server.assets import base_path
from kernelviz.ui.shared import charts, download_button, share, site, table
from kernelviz.ui.shared.text import bullets, plain, when
from kernelviz.ui.workloads import choice

_FORMATS = {
    "html": "HTML page with charts (.html)",
    "json": "kernelviz workload JSON (.json)",
    "md": "Markdown (.md)",
    "csv": "CSV, a row per case (.csv)",
}


def title() -> None:
    """The title, and what the page shows."""
    with st.container(key="workloads_title"):
        st.markdown("#### Workloads", help=str(NEVER_ON_A_ROOFLINE))
    st.markdown(
        "What is **larger than a kernel**: a training step, communication between GPUs, loading data or a model. Each has "
        "several variants, which are compared with a baseline on synthetic data."
    )


def nothing_installed() -> None:
    """What to do without any workload."""
    st.info(
        "No workload is installed. Set KERNELVIZ_WORKLOADS to a Python file that declares one, or upload a run of a workload on "
        "the page History.",
        icon=":material/extension_off:",
    )
    site.history_link()


def about(workload: Workload) -> None:
    """What the workload is."""
    st.caption(plain(workload.summary))


def nothing_measured(bench: Bench, workload: Workload) -> None:
    """What to do while there is no run of the workload."""
    with st.container(border=True, key="nothing_measured"):
        why = refusal(workload, bench.devices())
        if why is None:
            st.markdown(f"**No run of {plain(workload.title)} yet.** Press **Measure** above to measure it here.")
        else:
            st.markdown(
                f"**No run of {plain(workload.title)} yet.** Measure it on a machine with what it takes ({plain(why)}) by "
                f"`kernelviz workloads run {plain(workload.name)}`, and upload the run on the page History."
            )
        st.markdown("Its variants:")
        _variants(workload.variants)


def of_run(bench: Bench, run: WorkloadRun) -> None:
    """Label, sentence, chart, ladder, failures and limits of a run."""
    _label(run)
    st.markdown(f"**{plain(describe_insight(run))}**")
    _chart(run)
    _ladder(run)
    _ideas(run)
    _limits(run)
    if run.note:
        st.caption(plain(run.note))


def _label(run: WorkloadRun) -> None:
    st.markdown(f"{plain(describe_devices(run))} :gray[measured {plain(when(run.created_at))}]")
    if workload_exports.is_mechanics_only(run):
        st.badge("mechanics only", color="orange", icon=":material/settings:")
        st.caption(str(MECHANICS_ONLY))


def _chart(run: WorkloadRun) -> None:
    kind, declared = run.declared.chart.kind, run.declared
    declared_figures = [
        figure for name in declared.chart.figures if (figure := declared.figure_named(name)) is not None
    ]
    picture = charts.picture(run.title or declared.title, run.devices[0].name, run.created_at)
    about: Text | str = ""
    neutral: Text | str = ""
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="workload_chart_choice"):
        at = choice.point(run) if kind in ("bars", "memory", "lanes") else None
        visible = rows(run, point=at) if at is not None else rows(run)
        if kind in ("bars", "memory"):
            name = choice.figure(run)
            figure = plots.value_by_variant(run, at, name)
            chosen = declared.figure_named(name)
            about = "" if chosen is None or chosen.headline else describe_figure(run, chosen, at)
            neutral = "" if chosen is None else describe_neutral(chosen)
        elif kind == "lanes":
            variant = choice.timeline_variant(run, at)
            figure = plots.chart_of(run, point=at, variant=variant)
            about = next(
                (describe_timeline(row, declared_figures) for row in visible if row.case.variant == variant), ""
            )
        else:
            name = choice.figure(run)
            figure = plots.chart_of(run, figure=name)
            chosen = declared.figure_named(name)
            about = "" if chosen is None or chosen.headline else describe_figure(run, chosen)
            neutral = "" if chosen is None else describe_neutral(chosen)
    if str(about):
        st.markdown(plain(about))
    if str(neutral):
        st.caption(plain(neutral))
    alt = "; ".join(str(describe_counted(row, declared.figures)) for row in visible)
    charts.draw(figure, key=f"workload_{kind}", alt=f"{alt}. The table below has all values.", picture=picture)
    if kind == "lanes":  # the exposed time is a figure, so its bars stand below the timeline
        if any(row.result is not None and row.result.timeline is not None for row in visible):
            st.caption(str(TRACED_STEP))
        bars = plots.value_by_variant(run, at, declared.headline.name)
        charts.draw(bars, key="workload_lane_bars", alt=f"{alt}. The table below has all values.", picture=picture)


def _ladder(run: WorkloadRun) -> None:
    listed = rows(run)
    table.show(
        ladder_columns(run, listed, View.WIDE), listed, key="workload_ladder",
        alt="Every case with its figures, their intervals, the gain over the baseline and the verdict",
    )  # fmt: skip
    st.caption(f"The variant with a star is the baseline. {GAIN_MEANING}")
    if caveats := describe_caveats(run, listed):
        with st.expander(str(count_caveats(run, listed)), icon=":material/info:"):
            st.markdown(bullets([str(text) for text in caveats]))
    failed = [row for row in listed if row.result is not None and row.result.failure is not None]
    if failed:
        with st.expander(f"Cases without a value ({len(failed)})", icon=":material/error:"):
            for row in failed:
                assert row.result is not None
                assert row.result.failure is not None
                st.markdown(f"**{plain(row.case.key)}**: {plain(describe_failed(row.result.failure))}")
                if row.result.failure.message:
                    st.code(row.result.failure.message, language=None, wrap_lines=True)


def _ideas(run: WorkloadRun) -> None:
    with st.expander("What each variant does", icon=":material/menu_book:"):
        _variants([v for v in run.declared.variants if v.name in run.plan.variants])


def _variants(variants: Sequence[WorkloadVariant]) -> None:
    st.markdown("\n".join(f"- **{plain(v.name)}**: {plain(f'{v.caption} {v.idea}')}" for v in variants))


def _limits(run: WorkloadRun) -> None:
    texts = [limit.text for limit in limits(run.declared, run.devices[0])]
    with st.expander("What this cannot say", icon=":material/help:"):
        st.markdown(bullets([*texts, str(NEVER_ON_A_ROOFLINE)]))


def out(bench: Bench, run: WorkloadRun) -> None:
    """The link of the page, and the run as a file."""
    with st.container(horizontal=True, gap="small", key="workload_out"):
        popover = st.popover("Share", icon=":material/share:", key="workload_share", on_change="rerun")
        if popover.open:
            with popover:
                _share(bench, run)
        if not bench.workloads.summary(run.id).shipped:
            st.page_link(
                site.page("history"), label="Name, note or delete it", icon=":material/history:",
                query_params={"lists": "workloads", "run": run.id},
            )  # fmt: skip


def _share(bench: Bench, run: WorkloadRun) -> None:
    url = str(st.context.url or "")
    if url:
        view = {name: st.query_params[name] for name in st.query_params if name != "run"}
        st.markdown("**Link**: opens this page as it is in any browser that can reach this server.")
        st.code(share.page_link(url, base_path(), "workloads", view), language=None, wrap_lines=True)
    st.markdown(
        "**File**: HTML opens without a network; JSON can be uploaded on the page History of any kernelviz server."
    )
    to = st.selectbox("Format", list(_FORMATS), key="workload_format", format_func=_FORMATS.__getitem__)
    download_button.button(
        partial(_encoded, bench, run.id, to),
        f"kernelviz-{run.id}.{to}",
        workload_exports.MEDIA_TYPES[to],
        choice=(run.id, to, len(run.results), run.title, run.note),
        key="save_workload",
        icon=":material/save:",
    )


def _encoded(bench: Bench, run_id: str, to: str) -> bytes:
    return workload_exports.encode(bench.workloads.load(run_id), to)
