"""The panels of the page Claims: the counts, the table, one claim, the contradictions, and the table as a file."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.claims import ClaimsOnDevice, measured_at
from kernelviz.bench.claims_document import markdown
from kernelviz.core import UnknownRun
from kernelviz.formats.claim_files import shipped_claims
from kernelviz.metrics.claims import Assessment
from kernelviz.tables.claims import by_source, describe_counts_of, page_columns
from kernelviz.text.claim_reasons import describe_assessment, describe_limits
from kernelviz.text.claims import (
    RULE,
    VERDICTS,
    command_of,
    describe_conversion,
    describe_qualities,
    describe_test,
    format_claimed,
    format_interval,
    format_measured,
    format_source,
)
from kernelviz.ui.shared import download_button, site, table
from kernelviz.ui.shared.text import plain, when

TABLE_PX = 460


def counts(bench: Bench, of_device: ClaimsOnDevice) -> None:
    """How many claims have each verdict on the device, and the rule behind them."""
    newest = measured_at(bench, of_device)
    measured = "nothing is measured yet" if newest is None else f"newest result {when(newest)}"
    st.markdown(
        f"**{plain(of_device.device.name)}**: {plain(describe_counts_of(of_device.assessments))} "
        f":gray[{plain(measured)}]",
        help=plain(RULE),
    )


def claim_table(assessments: Sequence[Assessment]) -> str | None:
    """The table; returns the id of the claim whose row is selected. It says so if no claim has the chosen properties."""
    if not assessments:
        st.info(
            "No claim has all of these properties. Choose **all** in one of the boxes.",
            icon=":material/filter_alt_off:",
        )
        return None
    rows = table.show(
        page_columns(), assessments, height=TABLE_PX, key="claims_table", on_select="rerun", selection_mode="single-row",
        alt="Every claim with the published number, the number here, the verdict and the reason",
    )  # fmt: skip
    return assessments[rows[0]].claim.id if rows and rows[0] < len(assessments) else None


def one_claim(bench: Bench, of_device: ClaimsOnDevice, one: Assessment) -> None:
    """A claim: its source, its test, what was measured, and why it holds or not."""
    claim, collection = one.claim, shipped_claims()
    with st.container(border=True, key="one_claim"):
        st.markdown(f"**{plain(VERDICTS[one.verdict])}** · {plain(claim.setup)}")
        st.markdown(plain(describe_assessment(one)))
        if (limits := str(describe_limits(one))) and limits not in str(describe_assessment(one)):
            st.markdown(plain(f"{limits[:1].upper()}{limits[1:]}."))
        published_on = f" on {claim.published_on}" if claim.published_on else ""
        facts = [f"Published: {plain(f'{format_claimed(claim)}{published_on}')}"]
        if conversion := str(describe_conversion(one)):
            facts.append(f"Published number on this card: {plain(conversion)}")
        if one.measured is not None:
            facts.append(f"Result: {plain(format_measured(one))} ({plain(format_interval(one))})")
        facts += [f"Measurement quality of {plain(text)}" for text in describe_qualities(one)]
        facts.append(f"Test: {plain(describe_test(claim))}")
        facts += [f"Measured in its place: {plain(claim.substitute)}"] if claim.substitute else []
        facts += [f"Remark: {plain(claim.remark)}"] if claim.remark else []
        facts.append(f"Source: {plain(format_source(collection.source_of(claim)))}")
        facts += [f"Contradiction in the source: {plain(c.sentence)}" for c in collection.about(claim)]
        st.markdown("\n".join(f"- {fact}" for fact in facts))
        if one.measurable:
            where = "" if of_device.recorded is None else f" of a machine with {plain(of_device.device.name)}"
            st.markdown(f"To measure it in a terminal{where}:")
            st.code(command_of(claim), language=None, wrap_lines=True)
        _runs(bench, of_device, one)


def _runs(bench: Bench, of_device: ClaimsOnDevice, one: Assessment) -> None:
    for run_id in one.run_ids:
        if bench.workloads.is_known(run_id):
            of_workload = bench.workloads.summary(run_id)
            recorded = f", recorded {of_workload.created_at[:10]}" if of_workload.shipped else ""
            site.workload_link(f"Open {plain(of_workload.name)}{recorded}", run_id)
            continue
        try:
            run = bench.history.openable(run_id)
            recorded = f", recorded {run.created_at[:10]}" if run.shipped else ""
            site.run_link(f"Open {plain(run.name)}{recorded}", run_id)
        except UnknownRun:
            st.caption("Its run was deleted.")


def rule() -> None:
    """How a verdict follows from the two numbers."""
    with st.expander("How a verdict is made", icon=":material/rule:"):
        st.markdown(plain(RULE))


def contradictions() -> None:
    """Statements of the sources that contradict each other, a sentence each, by source."""
    collection = shipped_claims()
    st.markdown("##### Contradictions inside the sources")
    titles = {source.name: source for source in collection.sources}
    for name, of_source in by_source(collection.contradictions).items():
        st.markdown(f"**{plain(titles[name].title)}**")
        st.markdown("\n".join(f"- {plain(one.sentence)}" for one in of_source))


def sources() -> None:
    """Every source, with its author and address."""
    with st.expander("All sources", icon=":material/menu_book:"):
        lines = (f"- **{plain(s.name)}**: {plain(format_source(s))}" for s in shipped_claims().sources)
        st.markdown("\n".join(lines))


def as_file(bench: Bench, of_device: ClaimsOnDevice, chosen: Sequence[Assessment]) -> None:
    """A button that saves the listed claims as a Markdown document."""
    popover = st.popover("Save as Markdown", icon=":material/download:", key="claims_file", on_change="rerun")
    if popover.open:
        with popover:
            st.caption(
                "The listed claims with verdicts, tests and contradictions. `kernelviz claims --markdown` prints the same."
            )
            download_button.button(
                partial(_document, bench, of_device, tuple(chosen)),
                "claims.md",
                "text/markdown",
                choice=(of_device.device.uuid, tuple((a.claim.id, a.verdict, a.run_ids) for a in chosen)),
                key="save_claims",
                icon=":material/save:",
            )


def _document(bench: Bench, of_device: ClaimsOnDevice, chosen: tuple[Assessment, ...]) -> bytes:
    return markdown(bench, of_device, chosen).encode()
