"""The tab Samples: the distribution of the samples at one size, their order, and whether the order shows a drift."""

from collections.abc import Sequence

import streamlit as st

from kernelviz import plots
from kernelviz.core import Problem, Run
from kernelviz.metrics.quality import method_of
from kernelviz.metrics.rows import Row
from kernelviz.metrics.samples import Spread, spread
from kernelviz.tables.column import View, select_with_sizes
from kernelviz.tables.spreads import SPREADS, SpreadOfCase
from kernelviz.text import describe_samples, describe_spread, describe_throttle, format_sizes, format_variant
from kernelviz.text.quality import describe_method
from kernelviz.text.samples import SAMPLED_FIGURES, WHY_MEDIAN
from kernelviz.text.text import join
from kernelviz.ui.shared import charts, table, view_filters
from kernelviz.ui.shared.text import plain

_NAMES = {f.field: f.name for f in SAMPLED_FIGURES}


@st.fragment
def samples_at_size(run: Run, results: Sequence[Row], problem: Problem, beside: Sequence[str]) -> None:
    """The samples of all variants for the chosen timing, and the samples of one variant in order."""
    rows = [r for r in results if r.result.problem == problem]
    by_field = {name: spreads for name in _NAMES if (spreads := _spreads(rows, name))}
    if not by_field:
        st.caption(
            "This run was imported without samples: the file of another tool, or a file that was saved without them."
            if any(r.result.timing is not None for r in rows)
            else "No variant has a correct time at this size, so there are no samples to show."
        )
        return
    field = view_filters.choose(
        st.segmented_control, "Samples of", list(by_field), next(iter(by_field)), key="samples", format_func=_NAMES.__getitem__,
        label_visibility="collapsed",
    )  # fmt: skip
    spreads = by_field[field]
    question = next(f.question for f in SAMPLED_FIGURES if f.field == field)
    st.markdown(f"**Samples at {plain(format_sizes(problem))}** · {plain(question)}")
    left, right = st.columns([1.15, 1], gap="medium")
    with left:
        figure = plots.share_by_time({v: s.figure for v, s in spreads.items()}, run.plan.op, beside=beside)
        charts.draw(
            figure, key="share_by_time", alt=describe_samples(list(spreads), _NAMES[field]),
            picture=charts.picture_of([run], f"{_NAMES[field]} samples at {format_sizes(problem)}"),
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
        st.caption(WHY_MEDIAN)
    _samples_in_order(run, rows, field, spreads, beside)


def _spreads(rows: Sequence[Row], field: str) -> dict[str, Spread]:
    """By variant, for the variants that have samples of this timing."""
    return {r.result.variant: one for r in rows if (one := spread(r.result, field)) is not None}


def _samples_in_order(
    run: Run, rows: Sequence[Row], field: str, spreads: dict[str, Spread], beside: Sequence[str]
) -> None:
    """The samples of one variant in order, and what they show. The default is the fastest variant."""
    fastest = min(spreads, key=lambda v: spreads[v].figure.estimate)
    left, right = st.columns([1.15, 1], gap="medium")
    with right:
        variant = view_filters.choose(
            st.selectbox, "Samples in order of", list(spreads), fastest, key="samples_of", format_func=format_variant,
            help="Each dot is a sample, and blocks are in the order of their start times. Dotted vertical lines are pauses in "
            "the measurement.",
        )  # fmt: skip
        one = spreads[variant]
        result = next(r.result for r in rows if r.result.variant == variant)
        lines = [*describe_spread(one), describe_throttle(result)]
        st.markdown("\n".join(f"- {plain(line)}" for line in lines))
        if one.figure.timer is not None:
            st.caption(plain(describe_method(method_of(one.figure))))
    with left:
        charts.draw(
            plots.samples_by_order(one.figure, field, op=run.plan.op, variant=variant, beside=beside), key="samples_by_order",
            alt=f"{_NAMES[field]} samples of {format_variant(variant)} in order: {join('; ', describe_spread(one))}",
            picture=charts.picture_of(
                [run], f"{_NAMES[field]} samples of {format_variant(variant)} in order at {format_sizes(result.problem)}"
            ),
        )  # fmt: skip
