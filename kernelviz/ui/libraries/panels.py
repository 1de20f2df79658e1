"""The panels of the page Libraries: the summary, the table, one problem, and the table as a file."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.library_comparison import as_json, key_of
from kernelviz.core import UnknownRun, units
from kernelviz.formats import shipped_runs
from kernelviz.metrics.library_comparison import AutoSummary, ComparisonRow, time_s
from kernelviz.ops.catalog.choice import rule_of
from kernelviz.tables.library_comparison import page_columns
from kernelviz.text import format_problem, format_variant
from kernelviz.text.library_comparison import conclusion, describe_auto, markdown
from kernelviz.text.text import sentence_case
from kernelviz.ui.shared import download_button, site, table
from kernelviz.ui.shared.text import plain

TABLE_PX = 460
NO_BREAK = "\u00a0"
"""Between a number and its unit, so that a phone does not put them on two lines."""


def summary(rows: Sequence[ComparisonRow]) -> None:
    """How own variants do against libraries, how near auto is, and where the times come from."""
    recorded = sum(shipped_runs.is_shipped(row.run_id) for row in rows)
    of_here = len(rows) - recorded
    source = f"{units.counted(recorded, 'problem')} recorded with kernelviz, {of_here} measured or imported here"
    st.markdown(
        f"**{plain(sentence_case(conclusion(rows)))}.** {plain(sentence_case(describe_auto(AutoSummary.of(rows))))}. "
        f":gray[{plain(source)}]",
        help="Auto is the variant that the op's rule names first; on a GPU, `kernelviz.best` measures the first five and takes "
        "the fastest. The rules were made with the recorded runs, so for these they say how well the rules fit. Times are device "
        "times with cold caches of one session for each problem.",
    )


def nothing_listed(every: Sequence[ComparisonRow]) -> None:
    """What to do where no problem is listed."""
    with st.container(key="no_problem"):
        if every:
            text = "No problem has all of these properties. Choose **all** in one of the boxes."
            st.info(text, icon=":material/filter_alt_off:")
        else:
            text = "No run of a GPU is stored here. Measure one on the page Bench, or import one on the page History."
            st.info(text, icon=":material/timer_off:")


def problems(rows: Sequence[ComparisonRow]) -> ComparisonRow | None:
    """The table; returns the row that is selected."""
    chosen = table.show(
        page_columns(rows), rows, height=TABLE_PX, key="library_table", on_select="rerun", selection_mode="single-row",
        alt="Every problem with the ratios of own variants, auto and libraries, the libraries' largest lead first",
    )  # fmt: skip
    return rows[chosen[0]] if chosen and chosen[0] < len(rows) else None


def one_problem(bench: Bench, row: ComparisonRow) -> None:
    """A problem: every time, the rule that chooses, and its run."""
    with st.container(border=True, key="one_problem"):
        st.markdown(f"**{plain(format_problem(row.problem))}** on {plain(row.card)}")
        timed = [result for result in row.named.values() if time_s(result) is not None]
        own_s = time_s(row.own)
        lines = ["| Variant | Time | Speed, best own = 1 | Kind |", "|---|--:|--:|---|"]
        for result in timed:
            this_s = time_s(result) or 0.0
            of_library = result in row.libraries
            best = "best " if result in (row.own, row.library) else ""
            marks = [f"{best}{'library' if of_library else 'own'}", "auto" if row.auto is result else ""]
            ratio = "–" if own_s is None else f"{own_s / this_s:.2f}"
            mark = ", ".join(filter(None, marks))
            lines.append(
                f"| {plain(format_variant(result.variant))} | {units.seconds(this_s).replace(' ', NO_BREAK)} | {ratio} | {mark} |"
            )
        st.markdown("\n".join(lines))
        op = bench.ops().get(row.problem.op)
        if op is not None and row.choice is not None:
            without = "" if row.auto is not None else " This run has no correct time of it."
            st.markdown(
                f"Auto chooses **{plain(format_variant(row.choice))}**.{without} Rule of {plain(op.name)}: {plain(rule_of(op))}"
            )
        try:
            run = bench.history.openable(row.run_id)
            recorded = f", recorded {run.created_at[:10]}" if run.shipped else ""
            site.run_link(f"Open {plain(run.name)}{recorded}", row.run_id)
        except UnknownRun:
            st.caption("Its run was deleted.")


def as_file(rows: Sequence[ComparisonRow]) -> None:
    """Buttons that save the listed problems."""
    popover = st.popover("Save", icon=":material/download:", key="library_file", on_change="rerun")
    if popover.open:
        with popover:
            st.caption("The listed problems. `kernelviz library-comparison` with --markdown or --json prints the same.")
            listed = tuple(map(key_of, rows))
            for name, kind, mime, write in (
                ("Markdown", "md", "text/markdown", partial(_markdown, rows)),
                ("JSON", "json", "application/json", partial(as_json, rows)),
            ):
                download_button.button(
                    write, f"library-comparison.{kind}", mime, choice=listed, key=f"save_libraries_{kind}",
                    icon=":material/save:",
                    label=f"Save {name}",
                )  # fmt: skip


def _markdown(rows: Sequence[ComparisonRow]) -> bytes:
    return f"{markdown(rows)}\n".encode()
