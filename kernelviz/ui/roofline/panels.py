"""The page Roofline: which runs, under which roofs; the chart, the table beside it, and one case in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench, RunSummary
from kernelviz.bench.roofline import LEVELS, SOURCES, Placement, RoofSource, first_shown, offered, place, unknown
from kernelviz.core.run import Level
from kernelviz.metrics.limiter import LimiterWord
from kernelviz.metrics.placement import Placed
from kernelviz.metrics.sweep import size_words
from kernelviz.plots.roofline_of_runs import MOST_NAMED, distance_words, lines_of, rates_words
from kernelviz.plots.variant_styles import variant_words
from kernelviz.tables.column import View
from kernelviz.tables.roofline import placed_columns
from kernelviz.text.quality import describe_quality
from kernelviz.text.times import format_time
from kernelviz.ui.roofline import text as words
from kernelviz.ui.shared import site, table, view_filters
from kernelviz.ui.shared.text import plain, when

_PICTURES = ("PNG", "SVG")
_ALL = "all"
_BACKGROUND = {"light": "#FFFFFF", "dark": "#0F1413"}
"""As in .streamlit/config.toml: a picture that leaves the page takes its background along, else light words stand on nothing."""
_SMALL_TABLE = 240
"""Height of the table where one case stands above it in words."""
_BUTTONS_OFF = ["select2d", "lasso2d", "autoScale2d", "zoom2d", "pan2d"]


_CSS = """
<style>
/* Streamlit writes white on the primary colour, which is light in the dark theme: 1.9:1. */
.st-key-chosen_runs [data-tag], .st-key-chosen_runs [data-tag] :is(span, svg) { color: light-dark(#FFFFFF, #0F1311); }
.st-key-one_case p, .st-key-one_case li { font-size: 0.93rem; }
</style>
"""


def heading() -> None:
    """Title, and how the chart is read."""
    st.html(_CSS)
    st.markdown("#### Roofline")
    st.markdown(words.INTRO)


def runs_choice(bench: Bench) -> tuple[str, ...]:
    """The runs to place, from the address or the box; what the address names and is not here is said."""
    asked = tuple(r for r in st.query_params.get("runs", "").split(",") if r)
    gone = unknown(bench, asked)
    if gone:
        _unknown_runs(gone)
    known = offered(bench, asked)
    if "chosen_runs" not in st.session_state:
        wanted = [r for r in asked if r in known] if "runs" in st.query_params else list(first_shown(bench))
        st.session_state["chosen_runs"] = wanted
    # A run that was deleted meanwhile is no option any more.
    st.session_state["chosen_runs"] = [r for r in st.session_state["chosen_runs"] if r in known]
    chosen: list[str] = st.multiselect(
        "Runs",
        list(known),
        key="chosen_runs",
        format_func=lambda r: _run_words(known[r]),
        placeholder="Choose runs, of one GPU or of several",
    )
    if not gone:
        st.query_params["runs"] = ",".join(chosen)
    return tuple(chosen)


def _unknown_runs(gone: Sequence[str]) -> None:
    names = ", ".join(gone)
    st.error(
        f"No run **{plain(names)}** here: it was deleted, or measured on another machine. Runs live in the database of the "
        "machine that measured them; ask for the document and upload it.",
        icon=":material/error:",
    )
    st.page_link(site.page("history"), label="Runs kept here, and upload", icon=":material/history:")


def _run_words(run: RunSummary) -> str:
    came = "came with kernelviz" if run.shipped else when(run.created_at)
    device = "" if run.device.removeprefix("NVIDIA ") in run.name else f" · {run.device}"
    return f"{run.name}{device} · {came}"


def nothing_chosen(bench: Bench) -> None:
    """What to do when no run is chosen."""
    with st.container(border=True, key="nothing_chosen"):
        st.markdown(words.NOTHING_CHOSEN)
        with st.container(horizontal=True, gap="small"):
            shown = first_shown(bench)
            own = any(run.id in shown for run in bench.runs(8))
            label = "Show the newest run" if own else "Show an example"
            if shown and st.button(label, icon=":material/play_arrow:", type="primary", key="example"):
                st.query_params["runs"] = ",".join(shown)
                del st.session_state["chosen_runs"]
                st.rerun()
            st.page_link(site.page("bench"), label="Measure something", icon=":material/speed:")


def _level_and_roofs() -> tuple[Level, RoofSource]:
    level = _one_of("level", "Memory level", LEVELS, words.LEVELS, words.LEVELS_HELP)
    source = _one_of("roofs", "Roofs", SOURCES, words.SOURCES, words.SOURCES_HELP)
    return cast(Level, level), cast(RoofSource, source)


def _picture() -> str:
    chosen = st.segmented_control(
        "Picture", _PICTURES, key="picture", default="PNG", required=True,
        help="The format of the button with the camera, at the top right of the chart.",
    )  # fmt: skip
    return str(chosen or "PNG")


def _one_of(key: str, label: str, options: Sequence[str], names: Any, said: str) -> str:
    view_filters.seed(key, options, options[0])
    chosen = st.segmented_control(
        label, options, key=key, required=True, format_func=lambda o: names.get(o, o), help=said
    )
    view_filters.keep(key, chosen, options[0])
    return chosen or options[0]


def show(bench: Bench, run_ids: Sequence[str]) -> None:
    """The chosen runs: how they are shown, the chart with its table, one case in words, and what limits them."""
    choices = st.container(horizontal=True, gap="medium", vertical_alignment="bottom", key="view")
    with choices:
        level, source = _level_and_roofs()
    found = place(bench, run_ids, level=level, source=source)
    if not found.cases:
        st.info(f"{words.NOTHING_TIMED} {_untimed_words(found, level)}", icon=":material/timer_off:")
        return
    with choices:
        precision, picture = _precision(found.cases), _picture()
    cases = [c for c in found.cases if precision in (_ALL, c.problem.precision)]
    group, case = _isolated(cases)
    _notes(found, cases, level, source)
    left, right = st.columns([1.35, 1], gap="medium")
    with left:
        clicked = _chart(cases, group, case, run_ids, picture)
    with right:
        if case is not None:
            _in_words(next(c for c in cases if c.key == case))
        picked = _table(cases, group, _SMALL_TABLE if case is not None else plots.roofline_of_runs.HEIGHT)
    view_filters.follow({"seen_click": clicked, "seen_pick": picked}, "isolate")
    _limiters(cases if group is None else [c for c in cases if c.group == group])


def _precision(cases: Sequence[Placed]) -> str:
    known = list(dict.fromkeys(c.problem.precision for c in cases))
    if len(known) < 2:
        return _ALL
    return _one_of("precision", "Precision", [_ALL, *known], {_ALL: "all precisions"}, "Only cases of one precision.")


def _isolated(cases: Sequence[Placed]) -> tuple[str | None, str | None]:
    """What stands out: a variant, a case, or everything. A click in the chart or the table chooses a case too."""
    groups = {c.group: c for c in cases}
    # Widgets of the last run of the script have their keys until now: what was clicked is put in before they are drawn.
    pending = st.session_state.pop("isolate", None)
    if pending is not None:
        st.session_state["case"] = pending
    view_filters.seed("variant", [_ALL, *groups], _ALL)
    with st.container(horizontal=True, gap="medium", key="isolate_row"):
        variant = st.selectbox(
            "Variant", [_ALL, *groups], key="variant", width=280,
            format_func=lambda g: "all variants" if g == _ALL else _group_words(groups[g]),
        )  # fmt: skip
        view_filters.keep("variant", variant, _ALL)
        group = None if variant in (None, _ALL) else str(variant)
        keys = {c.key: c for c in cases if group in (None, c.group)}
        if st.session_state.get("case") not in (None, _ALL, *keys):
            st.session_state["case"] = _ALL
        view_filters.seed("case", [_ALL, *keys], _ALL)
        case = st.selectbox(
            "Case", [_ALL, *keys], key="case", width="stretch",
            format_func=lambda k: "all cases: click a point, or choose one" if k == _ALL else _case_words(keys[k]),
        )  # fmt: skip
        view_filters.keep("case", case, _ALL)
    return group, None if case in (None, _ALL) else str(case)


def _group_words(case: Placed) -> str:
    return f"{case.problem.op}: {variant_words(case.variant)}"


def _case_words(case: Placed) -> str:
    return f"{_group_words(case)} · {size_words(case.problem)} · {case.problem.dtype} · {case.device}"


def _notes(found: Placement, cases: Sequence[Placed], level: Level, source: RoofSource) -> None:
    flat = sum(not c.drawable for c in cases)
    said = [
        words.UNROOFED[source].format(devices=" and ".join(found.unroofed)) if found.unroofed else "",
        words.SHEET_LIMITER if source == "datasheet" else "",
        words.NO_ARITHMETIC.format(count=flat, all=len(cases)) if flat else "",
        _untimed_words(found, level),
    ]
    if any(said):
        st.caption(plain(" ".join(s for s in said if s)))


def _untimed_words(found: Placement, level: Level) -> str:
    if not found.untimed:
        return ""
    kind = "cold" if level == "dram" else "warm"
    cases = "1 case has" if found.untimed == 1 else f"{found.untimed} cases have"
    return f"{cases} no correct {kind} time: failed, wrong, or not measured."


def _chart(
    cases: Sequence[Placed], group: str | None, case: str | None, run_ids: Sequence[str], picture: str
) -> str | None:
    """The chart; returns the key of the case that was clicked last, None when nothing is."""
    theme = st.context.theme.type or "light"
    figure = plots.rates_by_intensity(cases, group=group, case=case, background=_BACKGROUND[theme])
    event = st.plotly_chart(
        figure, key="rooflines", on_select="rerun", selection_mode="points", config=_config(run_ids, picture),
        alt=_alt(cases),
    )  # fmt: skip
    if len({(c.run_id, c.group) for c in cases if c.drawable}) > MOST_NAMED:
        st.caption("Too many variants for a legend: hover a point, or choose a variant above.")
    points = event.selection.points if event is not None else []
    return str(points[-1].get("customdata")) if points else None


def _config(run_ids: Sequence[str], picture: str) -> dict[str, object]:
    names = "-".join(run_ids) if len(run_ids) <= 3 else f"{len(run_ids)}-runs"
    return {
        "displayModeBar": True,
        "displaylogo": False,
        "scrollZoom": False,
        "modeBarButtonsToRemove": _BUTTONS_OFF,
        "toImageButtonOptions": {"format": picture.lower(), "filename": f"kernelviz-roofline-{names}", "scale": 2},
    }


def _alt(cases: Sequence[Placed]) -> str:
    """What the chart shows, for those who do not see it."""
    drawn = [c for c in cases if c.drawable]
    shares = [c.share for c in drawn if c.share is not None]
    of = f" Shares of the roof from {min(shares) * 100:.1f} to {max(shares) * 100:.0f} %." if shares else ""
    roofs = "; ".join(f"{line.words} on {line.device}" for line in lines_of(drawn)) or "none known"
    return f"Roofline of {len(drawn)} cases. Roofs: {roofs}.{of} The same figures are in the table beside it."


def _table(cases: Sequence[Placed], group: str | None, height: int) -> str | None:
    """The table; returns the key of the case whose row is chosen."""
    listed = [c for c in cases if group in (None, c.group)]
    rows = table.show(
        placed_columns(listed, View.WIDE), listed, height=height, key=f"placed_{group or ''}", on_select="rerun",
        selection_mode="single-row", alt="Every case with its time, share of the roof and limiter",
    )  # fmt: skip
    return listed[rows[0]].key if rows and rows[0] < len(listed) else None


def _in_words(case: Placed) -> None:
    """The isolated case, and what limits it with all of the evidence."""
    with st.container(border=True, key="one_case"):
        st.markdown(f"**{plain(_case_words(case))}**")
        st.markdown(f"{plain(format_time(case.figure))} · {plain(rates_words(case))}  \n{plain(distance_words(case))}")
        st.markdown(f"**{plain(case.limiter.words)}**: {plain(words.MEANINGS[case.limiter.word])}")
        reasons = [*case.limiter.evidence, *(f"unknown: {m}" for m in case.limiter.missing)]
        st.markdown("\n".join(f"- {plain(reason)}" for reason in reasons))
        st.markdown(f":small[:gray[{plain(describe_quality(case.quality))}]]")
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            site.run_link("Open its run", case.run_id)
            st.button("Show all cases", key="show_all", icon=":material/close:", on_click=_release)


def _release() -> None:
    st.session_state["case"] = _ALL


def _limiters(cases: Sequence[Placed]) -> None:
    """How many cases each limiter has, what it means, and the rule."""
    counts: Counter[LimiterWord] = Counter(c.limiter.word for c in cases)
    st.markdown("##### What limits these cases")
    lines = [f"- {count} × {words.meaning_words(word)}" for word, count in counts.most_common()]
    st.markdown("\n".join(lines))
    with st.expander("How the limiter is found", icon=":material/rule:"):
        st.markdown(words.RULE)
