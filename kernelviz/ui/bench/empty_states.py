"""What a page says when there is nothing to show yet, or when what was asked for is not here."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from kernelviz.bench import Bench, RunSummary
from kernelviz.bench.history import KEPT_DAYS
from kernelviz.core.configuration import base_name
from kernelviz.ops import Op
from kernelviz.ops.catalog.space import space_words
from kernelviz.plots.marker_images import mark
from kernelviz.plots.variant_styles import variant_words
from kernelviz.ui.bench import plan_form
from kernelviz.ui.bench.form import Form
from kernelviz.ui.shared import callbacks, site
from kernelviz.ui.shared.text import plain, when


def first_visit(op: Op, form: Form, recent: Sequence[RunSummary], shipped: Sequence[RunSummary]) -> None:
    """Three lines and one button, runs to look at, and what the chosen variants do."""
    with st.container(border=True, key="first_visit"):
        st.markdown(
            "**kernelviz measures kernel variants on this machine, live, and checks that each is right.**  \n"
            f"Ready to run: {plain(form.op)}{', backward,' if form.direction == 'backward' else ''} in {plain(form.dtype)} by "
            f"{', '.join(plain(variant_words(v)) for v in form.variants)}; change it in the form at the side.  \n"
            "You will see time, bandwidth and distance to the roof, each with its interval. Compiled variants arrive later."
        )
        callbacks.button(
            "Run", plan_form.asking(), key="first_run", type="primary", icon=":material/play_arrow:",
            disabled=not form.variants,
        )  # fmt: skip
    shipped_runs(shipped)
    ladder(op, form.variants)
    recent_runs(recent)


def shipped_runs(shipped: Sequence[RunSummary]) -> None:
    """Links to the runs that came with the package."""
    if not shipped:
        return
    device = shipped[0].device
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="shipped_runs"):
        st.markdown(f"Or look at what was measured on an **{plain(device)}**:", width="content")
        for run in shipped:
            site.run_link(plain(run.op), run.id)


def ladder(op: Op | None, variants: Sequence[str]) -> None:
    """What each variant does, in the order of the op's ladder."""
    if op is None:
        st.caption("This installation does not have the op, so it cannot say what its variants do.")
        return
    lines = [
        f"- {mark(op.name, v.name)} **{plain(variant_words(v.name))}** :gray[{plain(v.backend)}] · {plain(v.summary)}"
        + (f" :gray[{plain(space_words(v))}]" if v.space else "")
        for v in op.variants
        if v.name in {base_name(name) for name in variants}
    ]
    st.markdown("\n".join(lines))


def deleted_run(bench: Bench, run: RunSummary) -> None:
    """Says that the run was deleted, and offers it back."""
    st.subheader("This run was deleted")
    st.markdown(f"{plain(run.name)}, deleted {when(run.deleted_at)}. It can be restored for {KEPT_DAYS} days.")
    if st.button("Restore", key="restore", type="primary", icon=":material/undo:"):
        bench.history.restore(run.id)
        st.rerun()


def unknown_run(run_id: str, recent: Sequence[RunSummary]) -> None:
    """Says where runs live, and offers those that are here."""
    st.subheader("This run is not here")
    st.text(f"Run {run_id!r} is not in the database of this machine.")
    st.markdown(
        "Runs live in the database of the machine that measured them; `kernelviz device` prints its path. "
        "Ask the owner of the link for the address of their server, or for the document (**Share** there): the History page "
        "opens it here."
    )
    if st.button("Measure it here instead", key="forget_run", icon=":material/arrow_back:"):
        st.query_params.clear()
        st.rerun()
    recent_runs(recent)


def recent_runs(recent: Sequence[RunSummary]) -> None:
    """Links to the newest runs of this server."""
    if not recent:
        return
    st.markdown("##### Latest runs here")
    with st.container(gap="xxsmall", key="recent"):
        for run in recent:
            if st.button(plain(_line(run)), key=f"open_{run.id}", type="tertiary", icon=":material/monitoring:"):
                st.query_params.from_dict({"run": run.id})
                st.rerun()


def _line(run: RunSummary) -> str:
    return f"{run.name} · {run.cases_words} · {run.status} · {when(run.created_at)}"
