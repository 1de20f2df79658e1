"""The samples behind a size's times: how they are spread, in which order they came, and what that order says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from kernelviz import plots
from kernelviz.core.problem import Problem
from kernelviz.core.run import Run
from kernelviz.metrics.drift import drift_words, lag_1_words
from kernelviz.metrics.samples import SHOWN, Spread, clock_words, repeated_words, spread, spread_words
from kernelviz.metrics.summary import Row
from kernelviz.metrics.sweep import size_words
from kernelviz.plots.samples import samples_words
from kernelviz.plots.variant_styles import variant_words
from kernelviz.text.quality import describe_throttle
from kernelviz.ui.bench import table
from kernelviz.ui.shared import view_filters
from kernelviz.ui.shared.text import plain

_NAMES = {f.field: f.name for f in SHOWN}
_QUESTIONS = {f.field: f.question for f in SHOWN}
_ORDER_HELP = (
    "Each dot is a sample; blocks stand in the order in which they were taken, and inside a block samples in order, since only "
    "the block's own beginning is stored. Dotted uprights are pauses: rests between batches, or a later task."
)
_DRIFT_HELP = (
    "Mann-Kendall's test over the blocks in order. A series drifts where chance gives such a trend in under 1 % of series "
    "and the last third of its blocks differs from the first by at least 0.5 %."
)


@st.fragment
def show(run: Run, found: Sequence[Row], problem: Problem) -> None:
    """The tab: choose a figure, see all variants' samples; choose a variant, see its samples in order."""
    rows = [r for r in found if r.result.problem == problem]
    known = {name: made for name in _NAMES if (made := _spreads(rows, name))}
    if not known:
        st.caption(plain(_why_none(rows)))
        return
    field = _figure(list(known))
    spreads = known[field]
    st.markdown(f"**Samples at {plain(size_words(problem))}** · {plain(_QUESTIONS[field])}")
    left, right = st.columns([1.15, 1], gap="medium")
    with left:
        st.plotly_chart(
            plots.share_by_time({v: s.figure for v, s in spreads.items()}, run.plan.op), key="share_by_time",
            config=view_filters.CHART, alt=samples_words(list(spreads), _NAMES[field]),
        )  # fmt: skip
    with right:
        frame, columns = _frame(spreads)
        st.dataframe(
            frame, column_config=columns, hide_index=True, placeholder="–", key="samples_table",
            alt="What the samples of each variant say",
        )  # fmt: skip
    _one(run, rows, field, spreads)


def _spreads(rows: Sequence[Row], field: str) -> dict[str, Spread]:
    """By variant, for those whose samples of the figure are known."""
    found = {r.result.variant: spread(r.result, field) for r in rows}
    return {variant: made for variant, made in found.items() if made is not None}


def _why_none(rows: Sequence[Row]) -> str:
    if not any(r.result.timing is not None for r in rows):
        return "No variant has a correct time at this size, so there are no samples to show."
    return "This run's times came without their samples (another tool's file, or one that left them out)."


def _figure(names: Sequence[str]) -> str:
    view_filters.seed("samples", names, names[0])
    chosen = st.segmented_control(
        "Samples of", names, key="samples", required=True, format_func=_NAMES.__getitem__, label_visibility="collapsed"
    )
    view_filters.keep("samples", chosen, names[0])
    return chosen or names[0]


def _one(run: Run, rows: Sequence[Row], field: str, spreads: dict[str, Spread]) -> None:
    """One variant in order, the fastest until somebody chooses, with its words beside it."""
    fastest = min(spreads, key=lambda v: spreads[v].figure.estimate)
    left, right = st.columns([1.15, 1], gap="medium")
    with right:
        view_filters.seed("samples_of", list(spreads), fastest)
        variant = st.selectbox("In order", list(spreads), key="samples_of", format_func=variant_words, help=_ORDER_HELP)
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
            alt=f"{_NAMES[field]} samples of {variant_words(variant)} in the order taken: {'; '.join(spread_words(one))}",
        )  # fmt: skip


def _frame(spreads: dict[str, Spread]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A line a variant, all times in one unit."""
    scale, unit = table.time_unit([s.p50_s for s in spreads.values()])
    lines = [
        {
            "variant": variant_words(variant),
            "samples": s.samples,
            "blocks": s.blocks,
            f"p50, {unit}": s.p50_s / scale,
            f"p90, {unit}": s.p90_s / scale,
            f"p99, {unit}": s.p99_s / scale,
            "±, %": None if s.figure.half_width is None else s.figure.half_width * 100,
            "drift": drift_words(s.drift) if s.blocks else None,
            "lag-1": lag_1_words(s.lag_1, s.blocks) if s.blocks else None,
            "SM clock": clock_words(s),
            "taken again": repeated_words(s) or None,
        }
        for variant, s in spreads.items()
    ]
    number = st.column_config.NumberColumn
    text = st.column_config.TextColumn
    shown: dict[str, Any] = {
        "variant": text(pinned=True),
        "samples": number(format="localized"),
        "blocks": number(format="localized", help="Groups of samples taken in one go: what the interval rests on."),
        **{
            f"p{q}, {unit}": number(format="%.2f", help=f"{q} % of the samples take at most so long.")
            for q in (50, 90, 99)
        },
        "±, %": number(format="%.2f", help="Half the 95 % interval of the estimate, bootstrapped over blocks."),
        "drift": text(help=_DRIFT_HELP),
        "lag-1": text(help="How much each block resembles the next; beyond 1.96 / √blocks it is more than chance."),
        "SM clock": text(help="Of the slowest and the fastest block, measured inside each."),
        "taken again": text(help="Blocks given up as their clock or the device was slowed down, and taken once more."),
    }
    return pd.DataFrame(lines), shown
