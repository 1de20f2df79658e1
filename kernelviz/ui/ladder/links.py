"""Links from a rung to the page Code."""

from collections.abc import Sequence

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench import ladder as use_case
from kernelviz.metrics.ladder import Ladder, Step
from kernelviz.metrics.source_changes import SourceChanges
from kernelviz.ui.shared import site
from kernelviz.ui.shared.text import plain, run_label

_CODE = "code"
MOST_RUNS = 3
"""Runs with code that are linked."""


def difference(ladder: Ladder, step: Step, source: SourceChanges | None) -> None:
    """A link that opens the difference to the rung before it on the page Code: of the source, or of the machine code if the
    source is the same. Nothing if either has no code."""
    page = next((one for one in site.pages() if one.url_path == _CODE), None)
    if page is None or source is None or source.unknown is not None or step.over is None:
        return
    run, key = ladder.run.id, ladder.problem.key
    sides = {
        "run": run,
        "variant": step.over.name,
        "problem": key,
        "run_b": run,
        "variant_b": step.variant,
        "problem_b": key,
    }
    kind = "source" if not source.same_files or source.kernels else "sass"
    st.page_link(
        page, label="Open the difference on Code", query_params={**sides, "kind": kind}, icon=":material/difference:"
    )


def ladders_with_code(bench: Bench, op: str) -> None:
    """Links to the runs that show what changed in the code."""
    runs = use_case.with_code(bench, op)
    if not runs:
        return
    st.markdown("Stored runs that show what changed in the code:")
    for run in runs[:MOST_RUNS]:
        st.page_link(
            site.page("ladder"), label=plain(run_label(run)), query_params={"run": run.id}, icon=":material/stairs:"
        )


def other_ladders(ops: Sequence[str]) -> None:
    """Links to the ladders that can be looked at without measuring."""
    if not ops:
        return
    st.markdown("Ladders that can be looked at now:")
    with st.container(horizontal=True, gap="small"):
        for op in ops:
            st.page_link(site.page("ladder"), label=op, query_params={"op": op}, icon=":material/stairs:")
