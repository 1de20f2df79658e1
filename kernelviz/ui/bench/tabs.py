"""The tabs under a run's charts. Only the open one is made: a table takes a browser 50 ms, and most are never looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core.problem import Problem
from kernelviz.core.result import Failure
from kernelviz.core.run import Run
from kernelviz.metrics.figures import FIGURES
from kernelviz.metrics.roofline import Headline
from kernelviz.metrics.summary import Row, rows
from kernelviz.metrics.sweep import size_words, telling_axes
from kernelviz.plots.variant_styles import variant_words
from kernelviz.tables.cases import case_columns, cases
from kernelviz.tables.column import View, select_with_sizes
from kernelviz.tables.kernels import KERNELS, kernels
from kernelviz.text.cells import failures as failures_of
from kernelviz.text.failures import STAGES, describe_failure, has_description
from kernelviz.ui.bench import empty_states, inspection, samples, second_run
from kernelviz.ui.shared import site, table, view_filters
from kernelviz.ui.shared.text import plain


def show(
    bench: Bench, run: Run, found: Sequence[Row], problem: Problem, headline: Headline, other: Run | None = None
) -> None:
    """Table, figures, samples, failures, kernels, inspection and the op's variants. `other`: a run drawn beside this one."""
    failed = failures_of(found)
    failures = f"Failures ({sum(len(g) for g in failed.values())})" if failed else "Failures"
    made: dict[str, Callable[[], None]] = {
        "Table": lambda: _table(run, found, headline, other),
        "Figures": lambda: _figures(run, found),
        "Samples": lambda: samples.show(run, found, problem),
        failures: lambda: _failures(run, failed),
        "Kernels": lambda: _kernels(found),
        "Inspect": lambda: inspection.show(bench, run, found, problem),
        "Variants": lambda: empty_states.ladder(bench.ops().get(run.plan.op), run.plan.variants),
    }
    names = {_short(label): label for label in made}
    # While a run goes the count of failures in its name grows: the tab that is open stays open.
    if st.session_state.get("tables") not in (None, *made):
        st.session_state["tables"] = names[_short(st.session_state["tables"])]
    view_filters.seed("tab", list(names), "table")
    st.session_state.setdefault("tables", names[st.session_state["tab"]])
    view_filters.keep("tab", _short(st.session_state["tables"]), "table")
    for tab, make in zip(st.tabs(list(made), key="tables", on_change="rerun"), made.values(), strict=True):
        if tab.open:
            with tab:
                make()


def _short(label: str) -> str:
    """A tab's name in the address."""
    return label.partition(" (")[0].lower()


def _table(run: Run, found: Sequence[Row], headline: Headline, other: Run | None) -> None:
    names = second_run.names(run, other)
    _cases(run, found, headline, names[run.id] if other is not None else "", key="table")
    if other is not None:
        _cases(other, rows(other, other.environment.roofs, headline), headline, names[other.id], key="table_with")
    st.page_link(site.page("method"), label="How these numbers are made", icon=":material/straighten:")


def _cases(run: Run, found: Sequence[Row], headline: Headline, name: str, key: str) -> None:
    if name:
        st.markdown(f"**{plain(name)}**")
    if not found:
        st.caption("No result yet.")
        return
    of = cases(run, found, headline)
    table.show(case_columns(of, View.WIDE), of, key=key, alt=f"Every case of {name or 'the run'}")


def _figures(run: Run, found: Sequence[Row]) -> None:
    st.markdown("\n".join(f"- **{plain(f.name)}** {plain(f.question)}" for f in FIGURES))
    if set(run.method.figures) == {"cold"}:
        st.caption(
            "This run asked for device cold only, so the other columns are empty. A new run measures all of them."
        )
    of = cases(run, found)
    table.show(case_columns(of, View.TIMES_WIDE), of, key="figures", alt="Every figure of every case")


def _failures(run: Run, failed: Mapping[tuple[str, Failure], Sequence[Row]]) -> None:
    if not failed:
        st.caption("No case failed.")
    for (variant, failure), group in failed.items():
        sizes = ", ".join(size_words(r.result.problem, telling_axes(run.plan.problems)) for r in group)
        st.markdown(f"✕ **{plain(variant_words(variant))}** · {STAGES[failure.stage]} · {plain(sizes)}")
        said = str(describe_failure(failure)) if has_description(failure) else "no message"
        st.code(said, language=None, wrap_lines=True)


def _kernels(found: Sequence[Row]) -> None:
    of = kernels(found)
    if not of:
        st.caption("No kernels were recorded: a CPU run launches none, and a failed case has none.")
        return
    table.show(
        select_with_sizes(KERNELS, of, View.WIDE), of, key="kernels", alt="Kernels that a call of each case launches"
    )
