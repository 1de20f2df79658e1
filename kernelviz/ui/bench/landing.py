"""The page Bench without a run: a recorded run of the form's op as an example, and a button that measures the op here."""

from collections.abc import Sequence

import streamlit as st

from kernelviz.bench import Bench, RunSummary
from kernelviz.bench.gallery import first_of, insight_of
from kernelviz.core import Run
from kernelviz.text import format_variant
from kernelviz.text.insight import insight_sentence
from kernelviz.ui.bench import empty_states, plan_form
from kernelviz.ui.bench.form import Form
from kernelviz.ui.shared import callbacks, device_strip, site
from kernelviz.ui.shared.text import plain


def recorded_run(bench: Bench, op: str) -> Run | None:
    """The first recorded run of the op that came with kernelviz; None without one."""
    first = first_of(bench, op)
    return None if first is None else bench.history.load(first.id)


def introduction(bench: Bench, form: Form, recorded: Run, recent: Sequence[RunSummary]) -> None:
    """What kernelviz does, what the page shows below, and the button that measures the same op on this machine."""
    device = bench.device(form.device)
    refusal = plan_form.describe_refusal(bench, form)
    sentence = insight_sentence(insight_of(recorded.id))
    with st.container(border=True, key="first_visit", gap="xsmall"):
        st.markdown(
            "**kernelviz measures variants of a GPU or CPU kernel on this machine, live, and verifies that each is correct.**  \n"
            f"Below is an example, not a measurement of this machine: {plain(recorded.plan.op)}, recorded on an "
            f"**{plain(recorded.environment.device.name)}** on {recorded.created_at[:10]}. {plain(sentence)}"
        )
        if refusal is not None:
            st.markdown(empty_states.not_ready(refusal))
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="first_row"):
            callbacks.button(
                "Measure this here", plan_form.run_action(), key="first_run", type="primary",
                icon=":material/play_arrow:", disabled=refusal is not None,
                help=plain(
                    f"Measures {form.op} in {form.dtype} on {device.name} with {', '.join(map(format_variant, form.variants))}. "
                    "The form on the left changes this."
                ),
            )  # fmt: skip
            kind = "GPU" if device.kind == "cuda" else "CPU, because it has no GPU that can be measured"
            st.markdown(f"on this machine's {kind}: {plain(device.name)}", width="content")
            st.page_link(site.page("gallery"), label="All recorded runs", icon=":material/grid_view:")
            if recent:
                latest = st.popover(
                    "Latest runs on this server", icon=":material/history:", key="recent_popover", on_change="rerun"
                )
                if latest.open:
                    with latest:
                        empty_states.recent_runs(recent)
    device_strip.notices(bench.notices(device.id))
