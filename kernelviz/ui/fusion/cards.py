"""A card for each of the six families: what fusing brings at one size, or how to measure it."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench import fusion as use_case
from kernelviz.core import Device
from kernelviz.core.fusion import FusionFamily
from kernelviz.metrics.fusion import FusionRow
from kernelviz.text import format_sizes, format_variant
from kernelviz.text.fusion import (
    FAMILIES,
    PREDICTIONS,
    format_prediction_with_error,
    format_ratio_of_times,
    format_speed_up,
    format_steps,
)
from kernelviz.text.times import format_time
from kernelviz.ui.fusion import choice, measuring
from kernelviz.ui.shared.text import plain

CARD_PX = 445
"""Three cards side by side on a page of 1440 pixels, and one on a phone."""


def families(bench: Bench, chosen: choice.Selection, device: Device) -> None:
    """All families, the chosen one marked."""
    with st.container(horizontal=True, gap="small", key="fusion_cards"):
        for family in use_case.FAMILIES:
            if use_case.fused_ops(bench)[family]:
                _card(bench, family, chosen, device)


def main_row(rows: Sequence[FusionRow]) -> FusionRow | None:
    """The row that stands for a run: of the fastest compositions beside a fused variant, the smallest whose intermediate tensors
    have at least four times the cache, else the one with the largest tensors."""
    known = [row for row in rows if row.fastest and row.speed_up is not None] or [row for row in rows if row.fastest]
    large = [row for row in known if row.in_memory]
    if large:
        return min(large, key=lambda row: (row.intermediate_bytes, -row.unfused_figure.estimate))
    return max(known, key=lambda row: row.intermediate_bytes, default=None)


def _card(bench: Bench, family: FusionFamily, chosen: choice.Selection, device: Device) -> None:
    run = use_case.newest_of(bench, family)
    rows = use_case.rows_of(bench, run.id) if run is not None else ()
    row = main_row(rows)
    with st.container(border=True, width=CARD_PX, gap="xsmall", key=f"fusion_card_{family}"):
        is_below = family == chosen.family and (run is None or run.op == chosen.op.name)
        mark = " :gray[· shown below]" if is_below else ""
        st.markdown(f"**{plain(FAMILIES[family])}**{mark}")
        measured_now = measuring.card_progress(bench, family)
        if row is None:
            if not measured_now:
                _not_measured(bench, family, device)
        else:
            problem = row.problem
            sizes = f"{problem.op} {problem.precision} · {format_sizes(problem)} · {row.device}"
            st.caption(plain(f"{format_steps(row.steps)} · {sizes}"))
            st.markdown(_table(row))
        if not is_below:
            st.button(
                "Show", key=f"show_{family}", on_click=partial(choice.choose_family, family), icon=":material/visibility:",
                type="tertiary", help=plain(f"Show the chart and the table of {FAMILIES[family]}."),
            )  # fmt: skip


def _table(row: FusionRow) -> str:
    """Not fused, fused, measured and both predictions."""
    fused = f"{plain(format_variant(row.fused.variant))}" if row.fused is not None else "none is correct"
    of_times = format_ratio_of_times(row)
    fused_time = _unbroken(format_time(row.fused_figure)) if row.fused_figure is not None else "–"
    lines = [
        "| | Time or speed-up |",
        "|---|--:|",
        f"| Not fused: {plain(format_variant(row.unfused.variant))} | {_unbroken(format_time(row.unfused_figure))} |",
        f"| Fused: {fused} | {fused_time} |",
        f"| **Speed-up, measured** | **{_unbroken(format_speed_up(row.speed_up))}** |",
        *([] if of_times is None else [f"| Ratio of the two times | {_unbroken(of_times)} |"]),
        f"| {PREDICTIONS['B']} | {_unbroken(format_prediction_with_error(row.predicted_b, row.error_b))} |",
        f"| {PREDICTIONS['A']} | {_unbroken(format_prediction_with_error(row.predicted_a, row.error_a))} |",
    ]
    return "\n".join(lines)


def _unbroken(value: object) -> str:
    """A value on one line, also on a phone."""
    return plain(value).replace(" ", "\N{NO-BREAK SPACE}")


def _not_measured(bench: Bench, family: FusionFamily, device: Device) -> None:
    """Says why there is no result, and offers to measure the first op that can run here."""
    able = use_case.first_able(bench, family, device.id)
    if able is None:
        first = use_case.fused_ops(bench)[family][0]
        names = ", ".join(first.fusion.fused) if first.fusion is not None else ""
        st.caption(
            plain(f"Not measured, and no fused variant of {first.name} can run on {device.name}: {names} need a GPU.")
        )
        return
    st.caption("Not measured yet.")
    measuring.button(bench, able, device, key=f"measure_{family}", label=f"Measure {able}")
