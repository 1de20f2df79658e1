"""The panels of the page Fusion. `pages/fusion.py` puts them in reading order."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench, RunSummary
from kernelviz.bench import fusion as use_case
from kernelviz.core import Device, units
from kernelviz.metrics.fusion import FusionRow, axes_along, line_through, lines_along, payoff
from kernelviz.metrics.fusion_reasons import MOST_FACTOR
from kernelviz.tables.column import View
from kernelviz.tables.fusion import fusion_columns
from kernelviz.text import format_sizes, format_variant
from kernelviz.text.fusion import (
    FAMILIES,
    METHOD_A,
    METHOD_B,
    PREDICTIONS,
    STEPS,
    describe_launch_cost,
    describe_missing,
    describe_other_rounds,
    describe_payoff,
    describe_prediction_b,
    describe_reasons,
    describe_row,
    describe_split,
    describe_sweep,
    format_bytes,
    format_line_sizes,
    format_prediction_with_error,
    format_speed_up,
)
from kernelviz.text.fusion_markdown import markdown
from kernelviz.text.text import sentence_case
from kernelviz.ui.fusion import cards, choice
from kernelviz.ui.shared import charts, download_button, table
from kernelviz.ui.shared.text import bullets, plain


def title() -> None:
    """Title, and what the page shows."""
    st.markdown("#### Fusion")
    st.markdown(
        "Several kernels one after the other, or **one kernel for all their steps**: what it saves, predicted and measured.",
        help="A composition launches the steps one after the other and stores a tensor between two of them. A fused "
        "variant keeps it in registers. Fusing saves the bytes of these tensors and the launches, not the arithmetic.",
    )


def heading(chosen: choice.Selection) -> None:
    """The family that is shown below the cards."""
    st.markdown(f"##### {plain(FAMILIES[chosen.family])}")
    st.caption(plain(f"{chosen.op.name}: {chosen.op.summary}. {chosen.op.formula}"))


def nothing_measured(bench: Bench, chosen: choice.Selection, device: Device) -> None:
    """What to do while there is no run of the op."""
    with st.container(border=True, key="nothing_measured"):
        if use_case.can_run(bench, chosen.op.name, device.id):
            st.markdown(
                f"**No run shows the fusion of {plain(chosen.op.name)} yet.** Press the button above to measure it here."
            )
            return
        assert chosen.op.fusion is not None
        measured = use_case.newest_of(bench, chosen.family)
        st.markdown(
            f"**{plain(chosen.op.name)} cannot be measured on {plain(device.name)}**, because no fused variant of it can run "
            f"there: {plain(', '.join(chosen.op.fusion.fused))}. Measure it on a GPU and import the run on the page History."
        )
        if measured is not None and measured.op != chosen.op.name:
            st.markdown(plain(f"Of the same family, {measured.op} was measured on {measured.device}."))
            st.button(
                f"Show {measured.op}", key="show_near", on_click=partial(choice.choose_op, bench, measured.op),
                icon=":material/visibility:",
            )  # fmt: skip


def of_run(bench: Bench, chosen: choice.Selection, run: RunSummary) -> None:
    """Sentence, chart, case and table of a run."""
    rows = use_case.rows_of(bench, run.id)
    first = cards.main_row(rows)
    if first is None:
        st.info(
            "No composition of this run has a correct time yet, so there is nothing to compare.",
            icon=":material/timer_off:",
        )
        return
    fusion = chosen.op.fusion
    assert fusion is not None
    axes = list(axes_along(rows, fusion.axes))
    fastest = [row for row in rows if row.fastest]
    left, right = st.columns([1.35, 1], gap="medium")
    with right:
        row = choice.case(fastest, first)
        _case(rows, row)
    with left:
        _chart(rows, row, axes, run)
    _basis(bench, run)
    _table(bench, rows)


def _chart(rows: Sequence[FusionRow], row: FusionRow, axes: Sequence[str], run: RunSummary) -> None:
    """Predicted and measured speed-up over a sweep, and the sentence about where fusing pays."""
    st.markdown(f"**{plain(describe_row(row))}**")
    if not axes:
        st.caption("This run has one size only, so there is no sweep to draw.")
        return
    lines = {axis: lines_along(rows, axis) for axis in axes}
    through = [axis for axis in axes if line_through(lines[axis], row.problem) is not None]
    axis = choice.axis(axes, through, row.problem.key)
    line = line_through(lines[axis], row.problem) or lines[axis][0]
    problems = [r.problem for r in line]
    st.markdown(plain(describe_sweep(problems, axis, row.problem)))
    pays = payoff(line, axis)
    sizes = format_line_sizes(problems, axis)
    selected = "; ".join(f"{format_sizes(r.problem, [axis])}: {format_speed_up(r.speed_up)}" for r in line)
    charts.draw_clickable(
        plots.fusion_speed_up_by_size(line, axis), key="fusion_sweep",
        picture=charts.picture(f"Fusion of {line[0].problem.op}: speed-up by {axis}", run.device, run.created_at),
        current=row.problem.key, select=choice.follow_click,
        alt=f"Speed-up by fusing along {axis} at {sizes}, measured and predicted. Measured: {selected}. The table below has all "
        "values.",
    )  # fmt: skip
    st.markdown(plain(describe_payoff(pays)))
    st.caption("A size counts if the verdict is faster, beyond the noise floor.")


def _case(rows: Sequence[FusionRow], row: FusionRow) -> None:
    """The steps of a case, both predictions with their parts, and why one fails."""
    st.markdown(_steps(row))
    parts = [
        f"**Measured**: {plain(format_speed_up(row.speed_up))}"
        + (f", verdict {plain(row.verdict.kind)}" if row.verdict is not None else ""),
        f"**{PREDICTIONS['B']}**: {_predicted(row.predicted_b, row.error_b)}. {_parts_of_b(row)}",
        f"**{PREDICTIONS['A']}**: {_predicted(row.predicted_a, row.error_a)}. {_parts_of_a(row)}",
    ]
    st.markdown("\n".join(f"- {part}" for part in parts))
    if text := str(describe_other_rounds(row)):
        st.caption(plain(text))
    for letter, reasons in (("B", row.reasons_b), ("A", row.reasons_a)):
        if reasons:
            st.markdown(f"Why prediction {letter} fails:\n{bullets(describe_reasons(reasons))}")
    slower = [r for r in rows if r.problem.key == row.problem.key and not r.fastest]
    for other in slower:
        text = str(describe_split(row, other))
        if text:
            st.caption(plain(text))


def _steps(row: FusionRow) -> str:
    """The steps with their bytes and arithmetic, equal ones together, and the fused op."""
    counts: dict[tuple[str, int, int, int], int] = {}
    for step in row.steps:
        key = (STEPS[step.kind], step.cost.work_flop, step.cost.moved_bytes, step.result_bytes)
        counts[key] = counts.get(key, 0) + 1
    lines = [
        f"| {plain(name)}{f' ({count} times)' if count > 1 else ''} | {plain(format_bytes(moved))} | {_flop(flop)} "
        f"| {plain(format_bytes(result)) if result else '–'} |"
        for (name, flop, moved, result), count in counts.items()
    ]
    cost = row.unfused.cost
    fused = (
        [
            f"| **fused** ({plain(format_variant(row.fused.variant))}) | {plain(format_bytes(cost.moved_bytes))} "
            f"| {_flop(cost.work_flop)} | – |"
        ]
        if cost is not None and row.fused is not None
        else []
    )
    memsets = row.saved.memsets
    fills = [f"| {memsets} × memset of the library (a launch, no step) | – | 0 | – |"] if memsets else []
    return "\n".join(
        ["| Step | Bytes moved | FLOP | Intermediate result |", "|---|--:|--:|--:|", *lines, *fills, *fused]
    )


def _flop(flop: int) -> str:
    return units.rate(flop, "", 3).strip() if flop else "0"


def _predicted(speed_up: float | None, error: float | None) -> str:
    return plain(format_prediction_with_error(speed_up, error))


def _parts_of_b(row: FusionRow) -> str:
    return (
        f"{plain(sentence_case(describe_missing(row.b)) if isinstance(row.b, str) else describe_prediction_b(row.b))}."
    )


def _parts_of_a(row: FusionRow) -> str:
    if isinstance(row.a, str):
        return f"{plain(sentence_case(describe_missing(row.a)))}."
    return f"{units.seconds(row.a.unfused_s)} for the steps and {units.seconds(row.a.fused_s)} fused, by the roofs."


def _basis(bench: Bench, run: RunSummary) -> None:
    """Which roofs and which cost of a launch the predictions use."""
    basis = use_case.basis_of(bench, bench.load(run.id))
    sentences = [str(describe_launch_cost(basis.launch))]
    if basis.same_model is not None:
        sentences.append(
            f"This run has no measured roofs, so those of the run {basis.same_model} on another {run.device} are used."
        )
    if not basis.roofs:
        sentences.append(
            f"The roofs of {run.device} are not measured, so there is no prediction: press Calibrate on the page Device."
        )
    st.caption(plain(" ".join(sentences)))


def _table(bench: Bench, rows: Sequence[FusionRow]) -> None:
    """All cases, and the buttons that save them."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom", key="fusion_table_row"):
        every = choice.compositions()
        with st.popover("Save", icon=":material/download:"):
            _save(bench, rows, every)
    selected = [row for row in rows if row.fastest or every]
    table.show(
        fusion_columns(selected, View.WIDE),
        selected,
        key="fusion_table",
        alt=f"{len(selected)} cases with both predictions and the reasons.",
    )


def _save(bench: Bench, rows: Sequence[FusionRow], every: bool) -> None:
    selected = [row for row in rows if row.fastest or every]
    run_id = rows[0].run_id
    kind = st.radio("Format", ["Markdown", "JSON"], key="fusion_format", horizontal=True)
    name = f"kernelviz-fusion-{rows[0].problem.op}"

    def write() -> bytes:
        if kind == "JSON":
            return use_case.as_json(selected)
        return f"{markdown(rows, use_case.payoffs_of(bench, rows), every=every)}\n".encode()

    suffix, mime = ("json", "application/json") if kind == "JSON" else ("md", "text/markdown")
    download_button.button(
        write,
        f"{name}.{suffix}",
        mime,
        choice=(run_id, kind, every, len(selected)),
        key="save_fusion",
        icon=":material/save:",
    )


def method() -> None:
    """How both predictions are made."""
    with st.expander("How the predictions are made", icon=":material/help:"):
        st.markdown(bullets((METHOD_B, METHOD_A)))
        st.markdown(
            f"A prediction fails if it differs from the measured speed-up by a factor of more than {MOST_FACTOR:.2f}. The "
            "reasons are derived from facts: the roofs, the cache, the launches, what limits the fused kernel, and its spills. "
            "Fusing is compared with the fastest composition, so that better kernels do not count as a gain of fusing."
        )
