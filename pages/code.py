"""Code: source, PTX and SASS of a kernel, or how two kernels differ, beside the measured difference."""

import streamlit as st

from kernelviz.ui.code import choice, comparison, downloads, panels, reading
from kernelviz.ui.shared import session

bench = session.bench()
panels.title()
first = choice.side(bench)
if first is None:
    panels.no_run(bench)
    st.stop()
second = choice.other_side(bench, first)
panels.progress(bench, first)
sides = [first] if second is None else [first, second]
without = [side for side in sides if side.kernel is None or not side.kinds]
for side in without:
    panels.without_code(bench, side, "" if second is None else "A" if side is first else "B")
if without:
    st.stop()

cases = [panels.facts_of(bench, side) for side in sides]
kernels = [panels.kernel_of(case, side.kernel) for case, side in zip(cases, sides, strict=True)]
if second is None:
    panels.measured(first)
    panels.insight(first, cases[0], kernels[0])
    panels.badges(cases[0])
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="code_options"):
        kind = choice.kind_of_one(first)
        control = choice.control_codes(kind)
        downloads.artifacts(bench, sides)
    with st.spinner("Reading the code …"):
        content = reading.of_one(bench, first, kind, control=control)
    panels.code(content)
    panels.facts(cases[0], kernels[0])
    panels.in_terminal(first, kind, None, normalised=False)
else:
    left, right = st.columns([1, 1.5], gap="medium")
    with left:
        difference = comparison.measured(bench, first, second)
        comparison.measured_difference(first, second, difference)
    with right:
        comparison.what_changed(cases[0], cases[1], difference)
        panels.badges(cases[0], "A")
        panels.badges(cases[1], "B")
    if not comparison.common_kinds(first, second):
        comparison.nothing_in_common(first, second)
        st.stop()
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="code_options"):
        kind = choice.compared_kind(first, second)
        normalise = choice.normalise(kind)
        downloads.artifacts(bench, sides)
    with st.spinner("Reading the code …"):
        content = reading.of_two(bench, first, second, kind, normalise=normalise)
    comparison.sentence(content)
    panels.code(content)
    comparison.facts_of_both((cases[0], cases[1]), (kernels[0], kernels[1]))
    panels.in_terminal(first, kind, second, normalised=normalise)
panels.plugin_note(sides)
