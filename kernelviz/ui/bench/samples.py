"""The tab Samples: the distribution of the samples at one size, their order, and whether the order shows a drift."""

from collections.abc import Sequence

import streamlit as st

from kernelviz import plots
from kernelviz.core import Problem, Run
from kernelviz.metrics.samples import SHOWN, Spread, spread, spread_words
from kernelviz.metrics.summary import Row
from kernelviz.metrics.sweep import size_words
from kernelviz.plots.samples import describe_samples
from kernelviz.plots.variant_styles import format_variant
from kernelviz.tables.column import View, select_with_sizes
from kernelviz.tables.spreads import SPREADS, SpreadOfCase
from kernelviz.text.quality import describe_throttle
from kernelviz.ui.shared import table, view_filters
from kernelviz.ui.shared.text import plain

_NAMES = {f.field: f.name for f in SHOWN}
_QUESTIONS = {f.field: f.question for f in SHOWN}
_ORDER_HELP = (
    "Each dot is a sample, and blocks are in the order of their start times. Dotted vertical lines are pauses in the "
    "measurement."
)


@st.fragment
def samples_at_size(run: Run, results: Sequence[Row], problem: Problem) -> None:
    """The samples of all variants for the chosen timing, and the samples of one variant in order."""
    rows = [r for r in results if r.result.problem == problem]
    by_field = {name: spreads for name in _NAMES if (spreads := _spreads(rows, name))}
    if not by_field:
        st.caption(plain(_why_none(rows)))
        return
    field = _timing_control(list(by_field))
    spreads = by_field[field]
    st.markdown(f"**Samples at {plain(size_words(problem))}** · {plain(_QUESTIONS[field])}")
    left, right = st.columns([1.15, 1], gap="medium")
    with left:
        st.plotly_chart(
            plots.share_by_time({v: s.figure for v, s in spreads.items()}, run.plan.op), key="share_by_time",
            config=view_filters.CHART, alt=describe_samples(list(spreads), _NAMES[field]),
        )  # fmt: skip
    with right:
        by_variant = {row.result.variant: row.result for row in rows}
        spreads_of_cases = [SpreadOfCase(by_variant[variant], _NAMES[field], s) for variant, s in spreads.items()]
        table.show(
            select_with_sizes(SPREADS, spreads_of_cases, View.WIDE),
            spreads_of_cases,
            key="samples_table",
            alt="Statistics of the samples of each variant",
        )
    _samples_in_order(run, rows, field, spreads)


def _spreads(rows: Sequence[Row], field: str) -> dict[str, Spread]:
    """By variant, for the variants that have samples of this timing."""
    spreads = {r.result.variant: spread(r.result, field) for r in rows}
    return {variant: one for variant, one in spreads.items() if one is not None}


def _why_none(rows: Sequence[Row]) -> str:
    if not any(r.result.timing is not None for r in rows):
        return "No variant has a correct time at this size, so there are no samples to show."
    return "This run was imported without samples: the file of another tool, or a file that was saved without them."


def _timing_control(names: Sequence[str]) -> str:
    view_filters.seed("samples", names, names[0])
    chosen = st.segmented_control(
        "Samples of", names, key="samples", required=True, format_func=_NAMES.__getitem__, label_visibility="collapsed"
    )
    view_filters.keep("samples", chosen, names[0])
    return chosen or names[0]


def _samples_in_order(run: Run, rows: Sequence[Row], field: str, spreads: dict[str, Spread]) -> None:
    """The samples of one variant in order, and what they show. The default is the fastest variant."""
    fastest = min(spreads, key=lambda v: spreads[v].figure.estimate)
    left, right = st.columns([1.15, 1], gap="medium")
    with right:
        view_filters.seed("samples_of", list(spreads), fastest)
        variant = st.selectbox(
            "Samples in order of", list(spreads), key="samples_of", format_func=format_variant, help=_ORDER_HELP
        )
        view_filters.keep("samples_of", variant, fastest)
        one = spreads[variant]
        result = next(r.result for r in rows if r.result.variant == variant)
        lines = [*spread_words(one), str(describe_throttle(result))]
        st.markdown("\n".join(f"- {plain(line)}" for line in lines if line))
        if one.figure.method:
            st.caption(plain(one.figure.method))
    with left:
        st.plotly_chart(
            plots.samples_by_order(one.figure, field, op=run.plan.op, variant=variant), key="samples_by_order",
            config=view_filters.CHART,
            alt=f"{_NAMES[field]} samples of {format_variant(variant)} in order: {'; '.join(spread_words(one))}",
        )  # fmt: skip
