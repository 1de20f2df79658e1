"""The tabs below the charts of a run. Only the open one is drawn: a table costs a browser 50 ms, and most are never opened."""

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from kernelviz.core import Failure, Roof, Run
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.rows import Row, rows
from kernelviz.metrics.summary import summary
from kernelviz.metrics.sweep import telling_axes
from kernelviz.tables.cases import Case, case_columns, cases
from kernelviz.tables.column import Column, View, select_with_sizes
from kernelviz.tables.kernels import KERNELS, kernels, longer_while_traced, shortening
from kernelviz.text import describe_failure, format_sizes, format_variant
from kernelviz.text.above_roof import count_above_roofs, describe_above_roofs
from kernelviz.text.absences import describe_missing_figures
from kernelviz.text.failures import format_stage, has_description
from kernelviz.text.naive import describe_naive_of_run
from kernelviz.text.results import describe_close_to_tolerance
from kernelviz.text.times import FIGURES
from kernelviz.ui.bench import second_run
from kernelviz.ui.shared import address_messages, site, table, view_filters
from kernelviz.ui.shared.text import bullets, plain


def draw_open_tab(tabs: Mapping[str, Callable[[], None]]) -> None:
    """Draw a tab for each label, and the content of the open one; the address repeats which is open."""
    names = {_short(label): label for label in tabs}
    # During a run, the number in the label of the failures grows: an open tab must stay open.
    if st.session_state.get("tables") not in (None, *tabs):
        st.session_state["tables"] = names[_short(st.session_state["tables"])]
    if view_filters.moved("tab"):
        st.session_state.pop("tables", None)
    view_filters.seed("tab", list(names), "table")
    address_messages.draw("tab")
    st.session_state.setdefault("tables", names[st.session_state["tab"]])
    view_filters.keep("tab", _short(st.session_state["tables"]), "table")
    containers = st.tabs(list(tabs), key="tables", on_change=address_messages.remove_all)
    for tab, draw in zip(containers, tabs.values(), strict=True):
        if tab.open:
            with tab:
                draw()


def _short(label: str) -> str:
    """The name of a tab in the address."""
    return label.partition(" (")[0].lower()


def case_tables(run: Run, results: Sequence[Row], roofs: Sequence[Roof], headline: Headline, other: Run | None) -> None:
    """The table of the cases, and that of the second run if there is one."""
    names = second_run.names(run, other)
    _cases(run, results, roofs, headline, names[run.id] if other is not None else "", key="table")
    if other is not None:
        roofs = other.environment.roofs
        _cases(other, rows(other, roofs, headline), roofs, headline, names[other.id], key="table_with")
    if explanation := str(describe_close_to_tolerance([row.result for row in results])):
        st.caption(plain(explanation))
    with st.container(horizontal=True, gap="medium"):
        if other is None:
            _compare_variants(run, results, headline)
        st.page_link(site.page("method"), label="How these numbers are measured", icon=":material/straighten:")


def _compare_variants(run: Run, results: Sequence[Row], headline: Headline) -> None:
    """A link that compares the baseline with the best variant, or with another one if the baseline is the best."""
    answers = summary(results, headline)
    compared = [name for name in run.plan.variants if name != run.plan.baseline]
    if answers is not None and compared:
        best = answers.fastest if answers.fastest in compared else compared[0]
        site.compare_variants_link(run.id, run.plan.baseline, best)


def _cases(run: Run, results: Sequence[Row], roofs: Sequence[Roof], headline: Headline, name: str, key: str) -> None:
    if name:
        st.markdown(f"**{plain(name)}**")
    if not results:
        st.caption("No case is done yet.")
        return
    table.show_of_run(
        ("cases", run, roofs, headline), lambda: _case_table(run, results, headline, View.WIDE), key=key,
        alt=f"Every case of {name or 'the run'}",
    )  # fmt: skip
    above = [row.above_roof for row in results if row.above_roof is not None]
    if above:
        st.caption(f"{plain(count_above_roofs(above))}.", help=bullets(describe_above_roofs(above)))


def _case_table(
    run: Run, results: Sequence[Row], headline: Headline, view: View
) -> tuple[Sequence[Column[Case]], Sequence[Case]]:
    rows_of_cases = cases(run, results, headline)
    return case_columns(rows_of_cases, view), rows_of_cases


def timing_table(run: Run, results: Sequence[Row], roofs: Sequence[Roof], headline: Headline) -> None:
    """All timings of every case, and the question that each answers."""
    st.markdown("\n".join(f"- **{plain(f.name)}** {plain(f.question)}" for f in FIGURES))
    if set(run.method.figures) == {"cold"}:
        st.caption("This run measured the cold device time only. Press **Run** to measure the other times.")
    for line in describe_naive_of_run([row.result for row in results], run.environment.device.kind):
        st.caption(plain(line))
    missing = describe_missing_figures([row.result for row in results], run)
    if missing:
        st.markdown("**Missing**\n" + "\n".join(f"- {plain(str(line))}" for line in missing))
    table.show_of_run(
        ("times", run, roofs, headline), lambda: _case_table(run, results, "cold", View.TIMES_WIDE), key="figures",
        alt="All times of each case",
    )  # fmt: skip


def failures_label(failed: Mapping[tuple[str, Failure], Sequence[Row]]) -> str:
    """The label of the tab, with the number of failed cases."""
    return f"Failures ({sum(len(g) for g in failed.values())})" if failed else "Failures"


def failure_list(run: Run, failed: Mapping[tuple[str, Failure], Sequence[Row]]) -> None:
    """Each failure once, with its variant, its stage and all sizes at which it occurred."""
    if not failed:
        st.caption("No case failed.")
    for (variant, failure), group in failed.items():
        sizes = ", ".join(format_sizes(r.result.problem, telling_axes(run.plan.problems)) for r in group)
        st.markdown(f"✕ **{plain(format_variant(variant))}** · {format_stage(failure)} · {plain(sizes)}")
        text = describe_failure(failure) if has_description(failure) else "The failure has no message."
        st.code(str(text), language=None, wrap_lines=True)


def kernel_table(results: Sequence[Row]) -> None:
    """The kernels that a call of each case launches."""
    launched = kernels(results)
    if not launched:
        st.caption(
            "No kernels were recorded: a run on a CPU launches no GPU kernels, and a failed case has no record of them."
        )
        return
    for said in filter(None, (shortening(results), longer_while_traced(results))):
        st.caption(said)
    table.show(
        select_with_sizes(KERNELS, launched, View.WIDE),
        launched,
        key="kernels",
        alt="Kernels that a call of each case launches",
    )
