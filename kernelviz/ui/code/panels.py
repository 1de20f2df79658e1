"""The panels of the page Code that describe one case. `pages/code.py` puts them in reading order."""

from collections.abc import Iterable, Sequence
from typing import Final

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.code_listings import NORMALISED_KINDS
from kernelviz.bench.code_page import kernel_row
from kernelviz.core.code_facts import CaseFacts, KernelOfCase, ProofStatus
from kernelviz.tables.code_facts import KernelRow
from kernelviz.tables.code_sides import ONE_SIDE, side_facts
from kernelviz.text import Text, format_problem, format_variant
from kernelviz.text.code_cases import describe_case_time, describe_compiled_with
from kernelviz.text.code_facts import describe_launch, describe_missing, describe_proof, format_proof
from kernelviz.text.machine_code import format_region, format_resources
from kernelviz.ui.code import viewer
from kernelviz.ui.code.choice import Selected, Side
from kernelviz.ui.code.reading import CodeToShow
from kernelviz.ui.shared import live_progress, site, table
from kernelviz.ui.shared.text import bullets, plain

COLOURS: Final[dict[ProofStatus, str]] = {
    "proven": "green",
    "missing": "orange",
    "undeclared": "gray",
    "observed": "gray",
}


def title() -> None:
    """Title, and what the page shows."""
    st.markdown("#### Code")
    st.markdown(
        "Source, PTX and SASS of a kernel side by side, or **how two kernels differ** beside their measured difference.",
        help="The code is what the compilers made when the case was measured. Point at a line to see the lines of the other "
        "texts that come from the same source line.",
    )


def no_run(bench: Bench) -> None:
    """What to do where no run can be shown."""
    with st.container(border=True, key="nothing_chosen"):
        st.markdown(
            "**No run on this server has code.** Measure one of Triton, CUDA C\\+\\+ or torch.compile on the page Bench, or "
            "import a document with code (kernelviz export RUN \\-\\-with\\-code) on the page History."
        )
        with st.container(horizontal=True, gap="small"):
            st.page_link(site.page("bench"), label="Measure a run", icon=":material/speed:")
            st.page_link(site.page("history"), label="Import a document", icon=":material/history:")


def without_code(bench: Bench, side: Side, name: str = "") -> None:
    """Why a case has no code, and what to do."""
    case = bench.history.code_facts.of_run(side.run, [side.result])[0]
    with st.container(border=True, key=f"without_code{name}"):
        of = f"{plain(format_variant(side.variant))} at {plain(format_problem(side.problem))}"
        st.markdown(
            f"**{f'{name}: ' if name else ''}{of} has no code.** {plain(describe_missing(case, shipped=side.summary.shipped))}"
        )
        site.run_link("Open the run", side.run.id)


def progress(bench: Bench, side: Side) -> None:
    """The progress of a run that is still measured."""
    if not side.going_on:
        return
    present = live_progress.progress_of(bench, side.run.id)
    if present is not None:
        with st.container(border=True, key="code_going"):
            st.caption(
                "This run is still measured. SASS and facts are read when it has ended, because reading them uses the "
                "processor and would disturb the times."
            )
            live_progress.following(side.run.id, present, key="live_code")


def facts_of(bench: Bench, side: Side) -> CaseFacts | None:
    """The facts of a case; None while its run is measured."""
    if side.going_on:
        return None
    return bench.history.code_facts.of_run(side.run, [side.result])[0]


def kernel_of(case: CaseFacts | None, kernel: str | None) -> KernelOfCase | None:
    """The facts of the shown kernel; None if they are not known."""
    row = None if case is None or kernel is None else kernel_row(case, kernel)
    return None if row is None else row.kernel


def measured(side: Side) -> None:
    """The time of the case, and what it was compiled with."""
    lines = [
        f"**{plain(describe_case_time(side.result))}**",
        *map(plain, describe_compiled_with(side.result, side.kernel)),
    ]
    st.markdown(
        "  \n".join(lines), help="The time of the whole call, which may launch several kernels, as on the page Bench."
    )


def insight(side: Side, case: CaseFacts | None, kernel: KernelOfCase | None) -> None:
    """One sentence about the kernel, from its facts."""
    if kernel is None:
        if case is not None and case.reason is not None:
            st.markdown(plain(describe_missing(case, shipped=side.summary.shipped)))
        return
    launch = list(map(str, describe_launch(kernel)))[1:2]
    region = str(format_region(kernel.role))
    st.markdown(plain(f"{'; '.join((str(format_resources(kernel.facts, kernel.shared_bytes)), *launch, region))}."))


def badges(case: CaseFacts | None, name: str = "") -> None:
    """The techniques that the variant declares, or that its machine code shows."""
    if case is None or not case.proofs:
        return
    marks = " ".join(f":{COLOURS[p.status]}-badge[{plain(format_proof(p))}]" for p in case.proofs)
    st.markdown(f"{f'**{name}** ' if name else ''}{marks}", help=bullets(map(describe_proof, case.proofs)))


def code(content: CodeToShow) -> None:
    """The texts, and why some are not there."""
    missing(content.missing)
    if content.packed:
        viewer.show(content.packed, key="code_view", alt=content.alt)


def missing(lines: Iterable[Text]) -> None:
    """Why texts are not there."""
    for line in lines:
        st.warning(plain(line), icon=":material/code_off:")


def facts(case: CaseFacts | None, kernel: KernelOfCase | None) -> None:
    """The facts of the kernel as a table."""
    if case is None or kernel is None:
        return
    st.markdown("##### Facts")
    rows = side_facts(KernelRow(case, kernel), None)
    table.show_wrapped(ONE_SIDE, rows, key="code_facts_of_one", alt=f"{len(rows)} facts about the kernel")


def plugin_note(sides: Sequence[Side]) -> None:
    """Says of the code of a user's own file that it is not exported."""
    if any(code.plugin for side in sides for code in side.result.code or ()):
        st.caption(
            "This is the code of a user's own file. Exported runs contain it only with \\-\\-with\\-plugin\\-code, and the "
            "downloads of this page contain it."
        )


def in_terminal(side: Side, kind: Selected, other: Side | None, *, normalised: bool) -> None:
    """The command that shows the same."""
    command = f"kernelviz code {side.run.id} {side.variant} --problem '{side.problem.key}'"
    option = "" if kind == "all" else f" --kind {kind}"
    if other is not None:
        command += f" --diff {other.variant}"
        if other.run.id != side.run.id:
            command += f" --diff-run {other.run.id}"
        if other.problem.key != side.problem.key:
            command += f" --diff-problem '{other.problem.key}'"
        if kind in NORMALISED_KINDS and not normalised:
            command += " --as-compiled"
    st.caption(plain(f"In a terminal: {command}{option}"))
