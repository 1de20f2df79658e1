"""What the page Bench shows without a run: a first visit, a deleted run, an unknown run, an invalid link."""

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from kernelviz.bench import Bench, RunSummary
from kernelviz.bench.history import RESTORABLE_DAYS
from kernelviz.core import UnknownRun
from kernelviz.core.configuration import base_name
from kernelviz.ops import Op
from kernelviz.ops.catalog.space import format_space
from kernelviz.plots.marker_images import mark
from kernelviz.text import describe_published_gain, format_variant
from kernelviz.ui.bench import plan_form
from kernelviz.ui.bench.form import Form
from kernelviz.ui.bench.link import Complaint
from kernelviz.ui.shared import callbacks, site
from kernelviz.ui.shared.text import plain, when


def first_visit(bench: Bench, op: Op, form: Form, recent: Sequence[RunSummary], recorded: Sequence[RunSummary]) -> None:
    """What kernelviz does, a button that starts the form's run, recorded runs to open, and what the chosen variants do."""
    refusal = plan_form.describe_refusal(bench, form)
    with st.container(border=True, key="first_visit"):
        st.markdown(
            "**kernelviz measures variants of a GPU or CPU kernel on this machine, live, and verifies that each is correct.**  \n"
            f"{_ready_to_run(form) if refusal is None else not_ready(refusal)}  \n"
            "The result: time, bandwidth and distance to the hardware limit (the roof) of each variant, with 95 % intervals. "
            "Compiled variants appear once they are built."
        )
        callbacks.button(
            "Run", plan_form.run_action(), key="first_run", type="primary", icon=":material/play_arrow:",
            disabled=refusal is not None,
        )  # fmt: skip
    for n, device in enumerate(dict.fromkeys(run.device for run in recorded)):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"recorded_runs_{n}"):
            st.markdown(f"Or open a run that was recorded on an **{plain(device)}**:", width="content")
            for run in recorded:
                if run.device == device:
                    site.run_link(plain(run.op), run.id)
    variant_list(op, form.variants)
    recent_runs(recent)


def _ready_to_run(form: Form) -> str:
    direction = ", backward," if form.direction == "backward" else ""
    variants = ", ".join(plain(format_variant(v)) for v in form.variants)
    what = f"{plain(form.op)}{direction} in {plain(form.dtype)} with {variants}"
    return f"Ready to run: {what}. Change this in the form on the left."


def not_ready(refusal: str) -> str:
    """A line for a box with a button that runs the form: why it cannot be run."""
    return f":red[:material/error: Not ready to run: {plain(refusal)}] Change this in the form on the left."


def variant_list(op: Op | None, variants: Sequence[str]) -> None:
    """What each variant does, in the order of the op."""
    if op is None:
        st.caption("This op is not installed here, so its variants have no description.")
        return
    lines = [
        f"- {mark(op.name, v.name)} **{plain(format_variant(v.name))}** :gray[{plain(v.backend)}] · {plain(v.summary)}"
        + "".join(f" :gray[{plain(text)}]" for text in (format_space(v), describe_published_gain(v.published)) if text)
        for v in op.variants
        if v.name in {base_name(name) for name in variants}
    ]
    st.markdown("\n".join(lines))


def invalid_link(complaints: Sequence[Complaint]) -> None:
    """The fields of the link that could not be used, and what is used instead."""
    if complaints:
        lines = "".join(f"\n- {plain(c.message)}" for c in complaints)
        st.warning(f"**Some of this link could not be used:**{lines}", icon=":material/link_off:")


def missing_run(bench: Bench, run_id: str) -> None:
    """A run that is not in the database: deleted, and can be restored, or unknown."""
    with suppress(UnknownRun):
        run = bench.history.summary(run_id)
        if run.deleted_at is not None:
            st.subheader("This run was deleted")
            st.markdown(
                f"{plain(run.name)}, deleted {when(run.deleted_at)}. It can be restored for {RESTORABLE_DAYS} days."
            )
            if st.button("Restore", key="restore", type="primary", icon=":material/undo:"):
                bench.history.restore(run.id)
                st.rerun()
            return
    unknown_run(run_id, bench.runs(8))


def unknown_run(run_id: str, recent: Sequence[RunSummary]) -> None:
    """Says why a run may not be on this server, and lists those that are."""
    st.subheader("This run is not on this server")
    st.text(f"Run {run_id!r} is not in the database of this server.")
    st.markdown(
        "A run is stored in the database of the machine that measured it (`kernelviz device` prints the path). Ask the owner of "
        "the link for the address of their server, or for the run as a file (**Share** on their page) and upload it on the page "
        "History."
    )
    if st.button("Start a new measurement", key="forget_run", icon=":material/arrow_back:"):
        st.query_params.clear()
        st.rerun()
    recent_runs(recent)


def recent_runs(recent: Sequence[RunSummary]) -> None:
    """Links to the latest runs of this server."""
    if not recent:
        return
    st.markdown("##### Latest runs on this server")
    with st.container(gap="xxsmall", key="recent"):
        for run in recent:
            label = plain(f"{run.name} · {run.case_counts} · {run.status} · {when(run.created_at)}")
            if st.button(label, key=f"open_{run.id}", type="tertiary", icon=":material/monitoring:"):
                st.query_params.from_dict({"run": run.id})
                st.rerun()
