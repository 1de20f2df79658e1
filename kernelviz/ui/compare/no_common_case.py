"""What the page Compare shows if A and B have no case in common: why, where both are drawn, and how to measure one."""

from contextlib import suppress

import msgspec
import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.comparison import plan_of_common_cases
from kernelviz.core import KernelvizError, Plan, Run, units
from kernelviz.core.command import commands
from kernelviz.metrics.comparison import Comparison
from kernelviz.metrics.no_common_case import why_no_common_case
from kernelviz.text.no_common_case import describe_no_common_case
from kernelviz.ui.bench import link, second_run
from kernelviz.ui.bench.form import form_of
from kernelviz.ui.shared import site
from kernelviz.ui.shared.text import plain

_MOST_COMMANDS = 8


def no_common_case(bench: Bench, comparison: Comparison) -> None:
    """Says why, links to charts of both runs, and offers to measure the sizes of A with the variants of B on this machine."""
    plan = plan_of_common_cases(bench, comparison)
    remedy = "" if plan else " Choose two runs of the same op and sizes."
    st.info(f"{plain(describe_no_common_case(why_no_common_case(comparison)))}{remedy}", icon=":material/link_off:")
    _draw_both(comparison.a, comparison.b)
    if plan is not None:
        with st.container(border=True, key="measure_common"):
            _offer(bench, comparison.b, plan)


def _draw_both(a: Run, b: Run) -> None:
    """Links to the pages that draw runs of different sizes in one chart."""
    with st.container(horizontal=True, gap="medium", key="draw_both"):
        if a.plan.op == b.plan.op and min(len(a.plan.problems), len(b.plan.problems)) > 1:
            st.page_link(
                site.page("bench"), label="Draw both runs by size", icon=":material/show_chart:",
                query_params={"run": a.id, second_run.PARAM: b.id},
            )  # fmt: skip
        st.page_link(
            site.page("roofline"), label="Draw both runs on the roofline", icon=":material/stacked_line_chart:",
            query_params={"runs": f"{a.id},{b.id}"},
        )  # fmt: skip


def _offer(bench: Bench, b: Run, plan: Plan) -> None:
    sizes, variants = units.counted(len(plan.problems), "size"), units.counted(len(plan.variants), "variant")
    st.markdown(
        f"**Measure the {sizes} of A with {variants} of B on this machine**, and compare the new run with A or B."
    )
    address = _address(bench, msgspec.structs.replace(b, plan=plan))
    if address is not None:
        st.page_link(
            site.page("bench"), label="Open Bench with these sizes", icon=":material/speed:", query_params=address
        )
    lines = commands(plan, b.method)
    if len(lines) <= _MOST_COMMANDS:
        st.code("\n".join(lines), language="bash", wrap_lines=True)


def _address(bench: Bench, wanted: Run) -> dict[str, str] | None:
    """The parameters of Bench that measure exactly the problems of the plan; None if its form cannot describe or measure them."""
    form = form_of(wanted, bench)
    if form is None:
        return None
    with suppress(KernelvizError):
        if {p.key for p in form.plan(bench).problems} == {p.key for p in wanted.plan.problems}:
            return link.write(form, None)
    return None
