"""Compare on the page Workloads: the run with another one of the same workload, or two of its variants."""

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.workload_comparison import compared
from kernelviz.core import UsageError
from kernelviz.core.workload import WorkloadRun
from kernelviz.tables.column import View
from kernelviz.tables.workloads import pair_columns
from kernelviz.text.workloads import describe_comparison, describe_differences
from kernelviz.ui.shared import table, view_filters
from kernelviz.ui.shared.text import bullets, distinct_labels, plain
from kernelviz.ui.workloads import choice

_ALL = "every variant with itself"


def two_runs(bench: Bench, run: WorkloadRun) -> None:
    """The boxes of both sides, the sentence, and a row for each case. The shown run is B."""
    runs = choice.runs_of(bench, run.declared)
    other_runs = [run_id for run_id in runs if run_id != run.id]
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="workload_compare_choice"):
        a = view_filters.choose(
            st.selectbox, "A", [run.id, *other_runs], other_runs[0] if other_runs else run.id, key="a", width=480,
            format_func=distinct_labels(runs, lambda i: "this run" if i == run.id else choice.label_of(runs[i])),
            help="The run above is B. Choose it as A, too, to compare two of its variants.",
        )  # fmt: skip
        names = list(run.plan.variants)
        of_a = list(bench.workloads.load(a).plan.variants)
        if a == run.id:
            variant_a = view_filters.choose(
                st.selectbox, "Variant A", of_a, run.plan.baseline, key="variant_a", width=220
            )
            rest = [name for name in names if name != variant_a]
            if not rest:
                st.info("This run has one variant only. Measure another one, or choose another run as A.")
                return
            variant_b = view_filters.choose(st.selectbox, "Variant B", rest, rest[0], key="variant_b", width=220)
        else:
            variant_a = _variant("Variant A", of_a, "variant_a")
            variant_b = _variant("Variant B", names, "variant_b")
    if _ALL in (variant_a, variant_b):
        variant_a = variant_b = _ALL
    try:
        of = compared(
            bench.workloads, a, run.id, variant_a=None if variant_a == _ALL else variant_a,
            variant_b=None if variant_b == _ALL else variant_b,
        )  # fmt: skip
    except UsageError as error:
        st.error(plain(error), icon=":material/error:")
        return
    st.markdown(f"**{plain(describe_comparison(of))}**")
    if texts := describe_differences(of):
        st.markdown(f"What else differs:\n{bullets(texts)}")
    if of.pairs:
        table.show(
            pair_columns(of.pairs, of.b, View.WIDE), of.pairs, key="workload_pairs",
            alt="Each case that both have: the value in A and in B, the gain of B over A, and the verdict",
        )  # fmt: skip
        st.caption(
            "A gain above 1: B is better. In one run, the two are compared round by round; of two runs, each is resampled by "
            "itself."
        )


def _variant(label: str, names: list[str], key: str) -> str:
    return view_filters.choose(st.selectbox, label, [_ALL, *names], _ALL, key=key, width=220)
