"""The boxes of the page Roofline: runs, memory level, roofs, precision, and the variant or case that stands out."""

from collections.abc import Mapping, Sequence

import streamlit as st

from kernelviz.bench import Bench, RunSummary
from kernelviz.bench.roofline import LEVELS, SOURCES, RoofSource, default_runs, offered, unknown
from kernelviz.core import Level
from kernelviz.metrics.placement import Placed
from kernelviz.text import format_sizes, format_variant
from kernelviz.text.text import sentence_case
from kernelviz.ui.shared import missing_run, run_in_hand, site, view_filters
from kernelviz.ui.shared.text import distinct_labels, run_label

ALL = "all"
PENDING = "isolate"
"""Where a click in the chart or the table leaves the key of its case until the next redraw."""


def run_box(bench: Bench) -> tuple[str, ...]:
    """The ids of the runs to draw, from the address or the box. Runs of the address that are not here are listed."""
    params = tuple(r for r in st.query_params.get("runs", "").split(",") if r)
    missing = unknown(bench, params)
    if missing:
        missing_run.say(*missing)
    runs = offered(bench, (*params, *run_in_hand.last_selection("roofline", bench)))
    if "chosen_runs" not in st.session_state or view_filters.moved("runs"):
        start = params if "runs" in st.query_params else _first_runs(bench, runs)
        st.session_state["chosen_runs"] = [r for r in start if r in runs]
    # A run that was deleted meanwhile is no longer an option.
    st.session_state["chosen_runs"] = [r for r in st.session_state["chosen_runs"] if r in runs]
    chosen: list[str] = st.multiselect(
        "Runs",
        list(runs),
        key="chosen_runs",
        format_func=distinct_labels(runs, lambda r: run_label(runs[r])),
        placeholder="Choose runs, from one GPU or several",
    )
    if not missing:
        view_filters.write("runs", ",".join(chosen))
    if run_in_hand.current(bench) is not None or tuple(chosen) != default_runs(bench):
        run_in_hand.keep_selection("roofline", chosen)
    return tuple(chosen)


def _first_runs(bench: Bench, runs: Mapping[str, RunSummary]) -> Sequence[str]:
    """The runs when the navigation opens the page: those of the run in hand if it has results, else the default."""
    last = [r for r in run_in_hand.last_selection("roofline", bench) if r in runs]
    return last or default_runs(bench)


def empty_state(bench: Bench) -> None:
    """What to do while no run is chosen, with a button that shows one."""
    with st.container(border=True, key="nothing_chosen"):
        st.markdown(
            "**No run is chosen.** Choose one or several above, from one GPU or several. Each is drawn under the roofs of its "
            "own machine."
        )
        with st.container(horizontal=True, gap="small"):
            suggested = default_runs(bench)
            label = "Show the newest run" if any(run.id in suggested for run in bench.runs(8)) else "Show an example"
            if suggested and st.button(label, icon=":material/play_arrow:", type="primary", key="example"):
                st.query_params["runs"] = ",".join(suggested)
                del st.session_state["chosen_runs"]
                st.rerun()
            st.page_link(site.page("bench"), label="Measure a run", icon=":material/speed:")


def memory_level(caches: str) -> Level:
    """Which times are drawn, under which memory roof. `caches`: what the devices' caches are called."""
    return view_filters.choose(
        st.segmented_control, "Memory level", LEVELS, LEVELS[0], key="level",
        format_func={"dram": "DRAM · cold times", "l2": f"{caches} · warm times"}.__getitem__,
        help=f"DRAM: times with flushed caches, so data come from memory. {sentence_case(caches)}: times of repeated calls, "
        f"whose data stay in the {caches}; a problem that does not fit there is compared with the DRAM roof.",
    )  # fmt: skip


def roof_source() -> RoofSource:
    """Whether the roofs are measured or from the data sheet."""
    return view_filters.choose(
        st.segmented_control, "Roofs", SOURCES, SOURCES[0], key="roofs",
        format_func={"measured": "measured roofs", "datasheet": "data-sheet roofs"}.__getitem__,
        help="Measured: bandwidth and arithmetic rates that Calibrate measured on the machine of the run. Data sheet: the "
        "vendor's peak rates, which no program reaches in full and which do not include the L2's bandwidth.",
    )  # fmt: skip


def of_precision(cases: Sequence[Placed]) -> list[Placed]:
    """The cases of the chosen precision; the choice appears if there are several."""
    precisions = list(dict.fromkeys(c.problem.precision for c in cases))
    if len(precisions) < 2:
        return list(cases)
    chosen = view_filters.choose(
        st.segmented_control, "Precision", [ALL, *precisions], ALL, key="precision", help="Show one precision only.",
        format_func=lambda precision: "all precisions" if precision == ALL else precision,
    )  # fmt: skip
    return [c for c in cases if chosen in (ALL, c.problem.precision)]


def highlighted(cases: Sequence[Placed]) -> tuple[str | None, str | None]:
    """The variant and the case that stand out, None for all. A click in the chart or the table chooses a case too."""
    groups = {c.group: c for c in cases}
    # The value of a widget can only be set before the widget is drawn, so a click is applied here, in the next redraw.
    pending = st.session_state.pop(PENDING, None)
    if pending is not None:
        st.session_state["case"] = pending
    variant = view_filters.choose(
        st.selectbox, "Variant", [ALL, *groups], ALL, key="variant", width=280,
        format_func=lambda g: "all variants" if g == ALL else _variant_label(groups[g]),
    )  # fmt: skip
    group = None if variant == ALL else variant
    keys = {c.key: c for c in cases if group in (None, c.group)}
    if st.session_state.get("case") not in (None, ALL, *keys):
        st.session_state["case"] = ALL
    case = view_filters.choose(
        st.selectbox, "Case", [ALL, *keys], ALL, key="case", width="stretch",
        format_func=lambda k: "all cases (click a point, or choose one here)" if k == ALL else case_label(keys[k]),
    )  # fmt: skip
    return group, None if case == ALL else case


def follow_click(key: str | None) -> None:
    """Let the case of a clicked point stand out; no case, if the selection ended."""
    st.session_state[PENDING] = ALL if key is None else key


def show_all_cases() -> None:
    """Let no case stand out."""
    st.session_state["case"] = ALL


def _variant_label(case: Placed) -> str:
    return f"{case.problem.op}: {format_variant(case.variant)}"


def case_label(case: Placed) -> str:
    """Op, variant, sizes, dtype and device."""
    return f"{_variant_label(case)} · {format_sizes(case.problem)} · {case.problem.dtype} · {case.device}"
