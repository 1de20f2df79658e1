"""The panels of the page Roofline. `pages/roofline.py` puts them in reading order."""

from collections import Counter
from collections.abc import Sequence

import streamlit as st

from kernelviz import plots
from kernelviz.bench.roofline import Placement, RoofSource
from kernelviz.core import Level
from kernelviz.metrics.limiter import LimiterWord
from kernelviz.metrics.placement import Placed
from kernelviz.plots.roofline_of_runs import MOST_NAMED, describe_distance, format_rates, lines_of
from kernelviz.tables.column import View
from kernelviz.tables.roofline import placed_columns
from kernelviz.text.quality import describe_quality
from kernelviz.text.results import format_time
from kernelviz.ui.roofline import choice, text
from kernelviz.ui.shared import site, table
from kernelviz.ui.shared.text import plain

SMALL_TABLE_PX = 240
"""Height of the table while one case is described above it."""
_BACKGROUND = {"light": "#FFFFFF", "dark": "#0F1413"}
"""As in .streamlit/config.toml: without its background, the text of a saved dark picture would be light on nothing."""
_BUTTONS_OFF = ["select2d", "lasso2d", "autoScale2d", "zoom2d", "pan2d"]
_CSS = """
<style>
/* Streamlit writes white on the primary colour, which is light in the dark theme: contrast 1.9:1. */
.st-key-chosen_runs [data-tag], .st-key-chosen_runs [data-tag] :is(span, svg) { color: light-dark(#FFFFFF, #0F1311); }
.st-key-one_case p, .st-key-one_case li { font-size: 0.93rem; }
</style>
"""


def title() -> None:
    """Title, and how to read the chart."""
    st.html(_CSS)
    st.markdown("#### Roofline")
    st.markdown(text.INTRO)


def no_timed_case(placement: Placement, level: Level) -> None:
    """Says that there is nothing to draw, and how many cases lack a time."""
    st.info(f"{text.NOTHING_TIMED} {_describe_untimed(placement, level)}", icon=":material/timer_off:")


def remarks(placement: Placement, cases: Sequence[Placed], level: Level, source: RoofSource) -> None:
    """What the chart does not show: missing roofs, cases without arithmetic, cases without a time."""
    without_arithmetic = sum(not c.drawable for c in cases)
    sentences = [
        text.UNROOFED[source].format(devices=" and ".join(placement.unroofed)) if placement.unroofed else "",
        text.SHEET_LIMITER if source == "datasheet" else "",
        text.NO_ARITHMETIC.format(count=without_arithmetic, all=len(cases)) if without_arithmetic else "",
        _describe_untimed(placement, level),
    ]
    if any(sentences):
        st.caption(plain(" ".join(s for s in sentences if s)))


def _describe_untimed(placement: Placement, level: Level) -> str:
    if not placement.untimed:
        return ""
    kind = "cold" if level == "dram" else "warm"
    cases = "1 case has" if placement.untimed == 1 else f"{placement.untimed} cases have"
    return f"{cases} no correct {kind} time (failed, wrong, or not measured) and cannot be drawn."


def roofline_chart(
    cases: Sequence[Placed], group: str | None, case: str | None, run_ids: Sequence[str], picture_format: str
) -> str | None:
    """The chart; returns the key of the case whose point was clicked last, None without one."""
    theme = st.context.theme.type or "light"
    figure = plots.rates_by_intensity(cases, group=group, case=case, background=_BACKGROUND[theme])
    event = st.plotly_chart(
        figure, key="rooflines", on_select="rerun", selection_mode="points", config=_config(run_ids, picture_format),
        alt=_alt(cases),
    )  # fmt: skip
    if len({(c.run_id, c.group) for c in cases if c.drawable}) > MOST_NAMED:
        st.caption(
            "The legend is hidden because there are many variants: hover over a point, or choose a variant above."
        )
    points = event.selection.points if event is not None else []
    return str(points[-1].get("customdata")) if points else None


def _config(run_ids: Sequence[str], picture_format: str) -> dict[str, object]:
    names = "-".join(run_ids) if len(run_ids) <= 3 else f"{len(run_ids)}-runs"
    return {
        "displayModeBar": True,
        "displaylogo": False,
        "scrollZoom": False,
        "modeBarButtonsToRemove": _BUTTONS_OFF,
        "toImageButtonOptions": {
            "format": picture_format.lower(),
            "filename": f"kernelviz-roofline-{names}",
            "scale": 2,
        },
    }


def _alt(cases: Sequence[Placed]) -> str:
    """The chart's alternative text."""
    points = [c for c in cases if c.drawable]
    shares = [c.share for c in points if c.share is not None]
    span = f" Shares of the roof: {min(shares) * 100:.1f} to {max(shares) * 100:.0f} %." if shares else ""
    roofs = "; ".join(f"{line.label} on {line.device}" for line in lines_of(points)) or "none known"
    return f"Roofline of {len(points)} cases. Roofs: {roofs}.{span} The table beside the chart has the same values."


def case_table(cases: Sequence[Placed], group: str | None, height: int) -> str | None:
    """The table of the cases; returns the key of the case whose row is selected."""
    listed = [c for c in cases if group in (None, c.group)]
    rows = table.show(
        placed_columns(listed, View.WIDE), listed, height=height, key=f"placed_{group or ''}", on_select="rerun",
        selection_mode="single-row", alt="Every case with its time, share of the roof and limiter",
    )  # fmt: skip
    return listed[rows[0]].key if rows and rows[0] < len(listed) else None


def case_facts(case: Placed) -> None:
    """One case: time, rates, distance to the roof, and its limiter with the evidence."""
    with st.container(border=True, key="one_case"):
        st.markdown(f"**{plain(choice.case_label(case))}**")
        st.markdown(
            f"{plain(format_time(case.figure))} · {plain(format_rates(case))}  \n{plain(describe_distance(case))}"
        )
        st.markdown(f"**{plain(case.limiter.words)}**: {plain(text.MEANINGS[case.limiter.word])}")
        evidence = [*case.limiter.evidence, *(f"unknown: {m}" for m in case.limiter.missing)]
        st.markdown("\n".join(f"- {plain(line)}" for line in evidence))
        st.markdown(f":small[:gray[{plain(describe_quality(case.quality))}]]")
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            site.run_link("Open its run", case.run_id)
            st.button("Show all cases", key="show_all", icon=":material/close:", on_click=_show_all)


def _show_all() -> None:
    st.session_state["case"] = choice.ALL


def limiter_counts(cases: Sequence[Placed]) -> None:
    """How many cases each limiter has, what it means, and the rule that determines it."""
    counts: Counter[LimiterWord] = Counter(c.limiter.word for c in cases)
    st.markdown("##### What limits these cases")
    lines = [f"- {count} × {text.describe_limiter(limiter)}" for limiter, count in counts.most_common()]
    st.markdown("\n".join(lines))
    with st.expander("How the limiter is determined", icon=":material/rule:"):
        st.markdown(text.RULE)
