"""The boxes of the page Roofline: runs, memory level, roofs, precision, and the variant or case that stands out."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.roofline import LEVELS, SOURCES, RoofSource, default_runs, offered, unknown
from kernelviz.core import Level
from kernelviz.metrics.placement import Placed
from kernelviz.metrics.sweep import size_words
from kernelviz.plots.variant_styles import format_variant
from kernelviz.ui.roofline import text
from kernelviz.ui.shared import site, view_filters
from kernelviz.ui.shared.run_label import run_label
from kernelviz.ui.shared.text import plain

ALL = "all"
PENDING = "isolate"
"""Where a click in the chart or the table leaves the key of its case until the next redraw."""
_PICTURE_FORMATS = ("PNG", "SVG")


def run_box(bench: Bench) -> tuple[str, ...]:
    """The ids of the runs to draw, from the address or the box. Runs of the address that are not here are listed."""
    params = tuple(r for r in st.query_params.get("runs", "").split(",") if r)
    missing = unknown(bench, params)
    if missing:
        _missing_runs(missing)
    runs = offered(bench, params)
    if "chosen_runs" not in st.session_state:
        initial = [r for r in params if r in runs] if "runs" in st.query_params else list(default_runs(bench))
        st.session_state["chosen_runs"] = initial
    # A run that was deleted meanwhile is no longer an option.
    st.session_state["chosen_runs"] = [r for r in st.session_state["chosen_runs"] if r in runs]
    chosen: list[str] = st.multiselect(
        "Runs",
        list(runs),
        key="chosen_runs",
        format_func=lambda r: run_label(runs[r]),
        placeholder="Choose runs, from one GPU or several",
    )
    if not missing:
        st.query_params["runs"] = ",".join(chosen)
    return tuple(chosen)


def _missing_runs(missing: Sequence[str]) -> None:
    st.error(
        f"No run **{plain(', '.join(missing))}** on this server: it was deleted, or measured on another machine. Ask for the "
        "run as a file and upload it on the page History.",
        icon=":material/error:",
    )
    st.page_link(site.page("history"), label="Runs on this server, and upload", icon=":material/history:")


def empty_state(bench: Bench) -> None:
    """What to do while no run is chosen, with a button that shows one."""
    with st.container(border=True, key="nothing_chosen"):
        st.markdown(text.NOTHING_CHOSEN)
        with st.container(horizontal=True, gap="small"):
            suggested = default_runs(bench)
            own = any(run.id in suggested for run in bench.runs(8))
            label = "Show the newest run" if own else "Show an example"
            if suggested and st.button(label, icon=":material/play_arrow:", type="primary", key="example"):
                st.query_params["runs"] = ",".join(suggested)
                del st.session_state["chosen_runs"]
                st.rerun()
            st.page_link(site.page("bench"), label="Measure a run", icon=":material/speed:")


def memory_level() -> Level:
    """Which times are drawn, under which memory roof."""
    return cast(Level, _control("level", "Memory level", LEVELS, text.LEVELS, text.LEVELS_HELP))


def roof_source() -> RoofSource:
    """Whether the roofs are measured or from the data sheet."""
    return cast(RoofSource, _control("roofs", "Roofs", SOURCES, text.SOURCES, text.SOURCES_HELP))


def of_precision(cases: Sequence[Placed]) -> list[Placed]:
    """The cases of the chosen precision; the choice appears if there are several."""
    precisions = list(dict.fromkeys(c.problem.precision for c in cases))
    if len(precisions) < 2:
        return list(cases)
    chosen = _control("precision", "Precision", [ALL, *precisions], {ALL: "all precisions"}, "Show one precision only.")
    return [c for c in cases if chosen in (ALL, c.problem.precision)]


def picture_format() -> str:
    """The format in which the chart is saved."""
    chosen = st.segmented_control(
        "Picture format", _PICTURE_FORMATS, key="picture", default="PNG", required=True,
        help="The format in which the camera button, at the top right of the chart, saves the chart.",
    )  # fmt: skip
    return str(chosen or "PNG")


def _control(key: str, label: str, options: Sequence[str], names: Mapping[Any, str], explanation: str) -> str:
    view_filters.seed(key, options, options[0])
    chosen = st.segmented_control(
        label, options, key=key, required=True, format_func=lambda o: names.get(o, o), help=explanation
    )
    view_filters.keep(key, chosen, options[0])
    return chosen or options[0]


def highlighted(cases: Sequence[Placed]) -> tuple[str | None, str | None]:
    """The variant and the case that stand out, None for all. A click in the chart or the table chooses a case too."""
    groups = {c.group: c for c in cases}
    # The value of a widget can only be set before the widget is drawn, so a click is applied here, in the next redraw.
    pending = st.session_state.pop(PENDING, None)
    if pending is not None:
        st.session_state["case"] = pending
    view_filters.seed("variant", [ALL, *groups], ALL)
    variant = st.selectbox(
        "Variant", [ALL, *groups], key="variant", width=280,
        format_func=lambda g: "all variants" if g == ALL else _variant_label(groups[g]),
    )  # fmt: skip
    view_filters.keep("variant", variant, ALL)
    group = None if variant in (None, ALL) else str(variant)
    keys = {c.key: c for c in cases if group in (None, c.group)}
    if st.session_state.get("case") not in (None, ALL, *keys):
        st.session_state["case"] = ALL
    view_filters.seed("case", [ALL, *keys], ALL)
    case = st.selectbox(
        "Case", [ALL, *keys], key="case", width="stretch",
        format_func=lambda k: "all cases (click a point, or choose one here)" if k == ALL else case_label(keys[k]),
    )  # fmt: skip
    view_filters.keep("case", case, ALL)
    return group, None if case in (None, ALL) else str(case)


def _variant_label(case: Placed) -> str:
    return f"{case.problem.op}: {format_variant(case.variant)}"


def case_label(case: Placed) -> str:
    """Op, variant, sizes, dtype and device."""
    return f"{_variant_label(case)} · {size_words(case.problem)} · {case.problem.dtype} · {case.device}"
