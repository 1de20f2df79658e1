"""The panels of the page Ladder. `pages/ladder.py` puts them in reading order."""

from typing import Any

import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench, RunSummary
from kernelviz.bench import ladder as use_case
from kernelviz.bench.code_facts import FactsReading
from kernelviz.bench.ladder_changes import code_by_facts, sources_of
from kernelviz.core import LIVING, Device, Run
from kernelviz.formats import ladder_page
from kernelviz.metrics.ladder import BackendLadder, Ladder, Metric, Step, StepKind
from kernelviz.metrics.ladder_changes import LadderChanges
from kernelviz.metrics.ladder_summary import summary_of, value_of
from kernelviz.ops import Op
from kernelviz.plots.ladder import title_of
from kernelviz.text import format_variant
from kernelviz.text.ladder import (
    HOW_TO_READ,
    describe_ages,
    describe_library,
    format_backend,
    format_excluded,
    format_gain,
    format_gain_short,
    format_roof,
    format_value,
)
from kernelviz.text.ladder_changes import (
    describe_source_changes,
    describe_unread_code,
)
from kernelviz.text.ladder_facts import facts_of_step
from kernelviz.text.ladder_markdown import excerpts, markdown
from kernelviz.text.ladder_summary import describe_summary
from kernelviz.ui.ladder import choice, links, measuring
from kernelviz.ui.shared import charts, download_button
from kernelviz.ui.shared.text import bullets, plain

_WAIT_S, _ASK_EVERY = 0.4, "0.5s"
DIFF_PX, SHORT_LINES = 380, 14
"""The height of a diff with more lines than SHORT_LINES."""
CARD_PX = 1000
"""A card is so wide at most, so that its lines can be read."""
_COLOURS: dict[StepKind, str] = {
    "faster": "green",
    "slower": "orange",
    "wrong": "red",
    "wrong elsewhere": "red",
    "failed": "red",
}
"""The colours of gains; the others are grey. The sign in the text says the same."""


def title() -> None:
    """Title, and what the page shows."""
    st.markdown("#### Ladder")
    st.markdown(
        "From the plainest kernel of an op to the best one, **step by step**: what each idea gains, and what it changes in the "
        "code.",
        help="A rung is a variant of the op. Its gain is relative to the rung before it. Libraries are the lines to beat.",
    )


def nothing_measured(bench: Bench, op: Op, device: Device) -> None:
    """What to do while there is no run of the op."""
    with st.container(border=True, key="nothing_measured"):
        problem = measuring.default_problem(bench, op, device)
        if measuring.able(bench, op, problem, device):
            st.markdown(
                f"**No run shows the ladder of {plain(op.name)} yet.** Press the button above to measure it here: each rung "
                "takes less than a second of device time."
            )
            return
        st.markdown(
            f"**No run shows the ladder of {plain(op.name)}**, and this machine cannot measure it. Measure it on a GPU "
            "and upload the run on the page History."
        )
        st.code(f"kernelviz ladder {op.name} --measure", language="console")
        links.other_ladders(sorted({run.op for run in bench.history.shipped() if use_case.shows_ladder(bench, run)}))


def changes_of(bench: Bench, ladder: Ladder) -> tuple[LadderChanges, FactsReading | None]:
    """What changed from rung to rung. The machine code is read by a thread; until then its sentences are missing, and what the
    thread does is returned too."""
    sources = sources_of(bench, ladder)
    if ladder.run.status in LIVING:
        st.caption("The machine code is read when the run has ended, because reading it would disturb the times.")
        return LadderChanges(sources), None
    reading = bench.history.code_facts.reading(ladder.run)
    if not reading.wait(_WAIT_S):
        return LadderChanges(sources), reading
    return LadderChanges(sources, code_by_facts(ladder, reading.facts)), None


def reading_code(reading: FactsReading | None) -> None:
    """Says that the machine code is being read, and draws the page again when it has been."""
    if reading is None:
        return

    @st.fragment(run_every=_ASK_EVERY, key="reading_ladder_code")
    def ask_again() -> None:
        if reading.ended:
            st.rerun()
        st.caption("Reading the machine code of all rungs takes about five seconds …")

    ask_again()


def chart(ladder: Ladder, of: BackendLadder, metric: Metric, step: Step) -> None:
    """The sentence about the ladder, and the climb."""
    run = ladder.run
    values = "; ".join(
        f"{format_variant(s.variant)}: {format_value(value_of(s.row, metric), metric)}, {format_gain(s)}"
        for s in of.correct
    )
    charts.draw_clickable(
        plots.value_by_step(ladder, of.backend, metric, chosen=step.variant), key="ladder_chart",
        picture=charts.picture(f"{title_of(of, metric)}, {ladder.problem.key}", run.environment.device.name, run.created_at),
        current=step.variant, select=choice.follow_click,
        alt=f"{title_of(of, metric)}. {values}. The list below has all values.",
    )  # fmt: skip


def sentence(ladder: Ladder, of: BackendLadder, metric: Metric) -> None:
    """One or two sentences about the ladder."""
    st.markdown(f"**{plain(describe_summary(summary_of(ladder, of), metric))}**")


def notes(of: BackendLadder) -> None:
    """Whether all code is older than that of today."""
    if said := str(describe_ages(of)):
        st.info(plain(said), icon=":material/history:")


def unread_code(bench: Bench, ladder: Ladder, changes: LadderChanges) -> None:
    """Why nothing is known of the code, and what to do; nothing if the machine code is known or not read yet."""
    if said := str(describe_unread_code(changes, ladder.problem)):
        st.info(plain(said), icon=":material/memory:")
        links.ladders_with_code(bench, ladder.problem.op)


def lines_changed(ladder: Ladder, of: BackendLadder, step: Step, changes: LadderChanges) -> None:
    """What changed in one step: the lines of its source."""
    if changes.sources and not changes.sources_known:
        return  # `unread_code` says it of all rungs
    source = changes.sources.get(step.variant)
    if step.over is None:
        st.caption(
            "The ladder starts with this rung, so there is nothing that changed. Choose another one here or in the chart."
        )
        return
    st.markdown(
        f"**{plain(format_variant(step.over.name))} → {plain(format_variant(step.variant))}**: "
        f"{plain(describe_source_changes(source)) if source is not None else 'this rung has no result, so nothing is known.'}"
    )
    if source is not None:
        for number, excerpt in enumerate(excerpts(source)):
            if not excerpt.of_diff:
                st.caption(plain(excerpt.heading))
            # The box scrolls, and not the code in it, because the keyboard reaches only the box: it has a button in it.
            height: Any = DIFF_PX if len(excerpt.lines) > SHORT_LINES else "content"
            with st.container(height=height, border=False, key=f"ladder_diff_{number}"):
                st.code("\n".join(excerpt.lines), language=excerpt.language, wrap_lines=True)


def worklog(
    bench: Bench,
    ladder: Ladder,
    of: BackendLadder,
    metric: Metric,
    changes: LadderChanges,
    device: Device,
    op: Op,
    *,
    reading: bool,
) -> None:
    """Every rung in order: its idea, what it reaches and gains, and what changed. `reading`: the machine code is being read."""
    possible = set(measuring.able(bench, op, ladder.problem, device))
    measured = measuring.measured_run(bench)
    for step in of.steps:
        with st.container(border=True, gap="xsmall", width=CARD_PX, key=f"ladder_step_{of.backend}_{step.number}"):
            st.markdown(_heading(step))
            st.markdown(plain(step.declared.idea))
            facts = facts_of_step(ladder, of, step, changes, metric, reading=reading)
            st.markdown("\n".join(f"- **{label}**: {plain(text)}" for label, text in facts))
            with st.container(horizontal=True, gap="small", vertical_alignment="center"):
                links.difference(ladder, step, changes.sources.get(step.variant))
                if possible:
                    measuring.measure_step(bench, step, ladder.problem, device, possible=step.variant in possible)
            if measured is not None and measured[1] == step.variant:
                measuring.measured_step(bench, measured[0], step.variant, metric)


def _heading(step: Step) -> str:
    colour = _COLOURS.get(step.kind, "gray")
    return (
        f"**{step.number} · {plain(format_variant(step.variant))}** :{colour}-badge[{plain(format_gain_short(step))}]"
    )


def libraries(ladder: Ladder, metric: Metric) -> None:
    """The lines to beat."""
    lines = [str(describe_library(row, metric)) for row in ladder.libraries]
    roof = format_roof(ladder, metric)
    if lines:
        st.markdown(f"**The lines to beat**\n{bullets([*lines, *([roof] if roof else [])])}")


def rest(ladder: Ladder) -> None:
    """The variants that are no rungs at this size, with the reasons, and those that are beside the ladders."""
    lines = [str(line) for line in format_excluded(ladder.excluded)]
    beside = [
        f"{format_variant(row.result.variant)}: no rung, because plans leave it out by default (it is slow or wrong)"
        for row in ladder.beside
    ]
    if not lines and not beside:
        return
    count = len(ladder.excluded) + len(ladder.beside)
    with st.expander(f"{count} variants that are no rungs at this size", icon=":material/block:"):
        st.markdown(bullets([*beside, *lines]))


def save(bench: Bench, ladder: Ladder, of: BackendLadder, metric: Metric, changes: LadderChanges) -> None:
    """The ladder as a file."""
    with st.popover("Save", icon=":material/download:"):
        kind = st.radio("Format", ["Page that opens offline", "Markdown", "JSON"], key="ladder_format")
        every = st.checkbox("The ladders of all backends", value=True, key="ladder_every")
        backend = None if every else of.backend

        def write() -> bytes:
            if kind == "JSON":
                return use_case.as_json(ladder, changes, backend)
            if kind == "Markdown":
                return f"{markdown(ladder, changes, metric=metric, backend=backend)}\n".encode()
            return ladder_page.page(ladder, changes, metric=metric, backend=backend)

        suffix, mime = {
            "JSON": ("json", "application/json"),
            "Markdown": ("md", "text/markdown"),
        }.get(kind or "", ("html", "text/html"))
        download_button.button(
            write, f"kernelviz-ladder-{ladder.problem.op}.{suffix}", mime,
            choice=(
                ladder.run.id, ladder.problem.key, ladder.headline, metric, backend, kind, ladder.run.status, changes.code_known,
            ),
            key="save_ladder", icon=":material/save:", caption="With the chart, all rungs, and the lines of source that changed.",
        )  # fmt: skip


def other_ladders(ladder: Ladder, of: BackendLadder) -> None:
    """Which ladders the run does not show."""
    empty = [other for other in ladder.ladders if not other.correct and other is not of]
    if empty:
        names = ", ".join(f"{format_backend(other.backend)} ({len(other.steps)})" for other in empty)
        st.caption(plain(f"No rung of these ladders has a correct time in this run: {names}."))


def basis(run: RunSummary, document: Run) -> None:
    """Where the values come from."""
    origin = "came with kernelviz" if run.shipped else f"run {document.id}"
    st.caption(plain(f"Measured on {document.environment.device.name}, {document.created_at[:10]} ({origin})."))


def method(ladder: Ladder | None = None) -> None:
    """How the page is read, and the same in a terminal and in Python."""
    with st.expander("How to read this", icon=":material/help:"):
        st.markdown(bullets(HOW_TO_READ))
    if ladder is not None:
        st.caption(
            plain(
                f"In a terminal: kernelviz ladder {ladder.problem.op} --run {ladder.run.id} -o page.html. "
                f"In Python: kernelviz.ladder(run={ladder.run.id!r})."
            )
        )


def page_of(
    bench: Bench, run: RunSummary, ladder: Ladder, of: BackendLadder | None, metric: Metric, device: Device, op: Op
) -> None:
    """The ladder of a run: sentence, chart with the lines that changed, rungs, libraries, and what is no rung."""
    if of is None:
        st.info("No variant of this op that is written here takes this problem.", icon=":material/block:")
        method(ladder)
        return
    sentence(ladder, of, metric)
    changes, reading = changes_of(bench, ladder)
    left, right = st.columns([1.15, 1], gap="medium")
    with right:
        step = choice.step(ladder, of)
        lines_changed(ladder, of, step, changes)
        unread_code(bench, ladder, changes)
    with left:
        chart(ladder, of, metric, step)
        basis(run, ladder.run)
    notes(of)
    with st.container(horizontal=True, gap="medium", vertical_alignment="center", key="ladder_rungs_row"):
        st.markdown(f"##### The rungs of {plain(format_backend(of.backend))}")
        save(bench, ladder, of, metric, changes)
        reading_code(reading)
    worklog(bench, ladder, of, metric, changes, device, op, reading=reading is not None)
    other_ladders(ladder, of)
    libraries(ladder, metric)
    rest(ladder)
    method(ladder)
