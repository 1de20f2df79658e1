"""The boxes of the page Claims: whose results, source, verdict, op, and the claim that is described below the table."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.claims import (
    VERDICTS,
    ClaimsOnDevice,
    claims_on,
    ops_of,
    recorded_claims_on,
    recorded_devices,
)
from kernelviz.formats.claim_files import shipped_claims
from kernelviz.metrics.claims import Assessment
from kernelviz.text.claims import VERDICTS as VERDICT_TEXTS
from kernelviz.ui.shared import view_filters

PENDING = "chosen_claim"
"""Where a click in the table leaves the id of its claim until the next redraw."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the table lists; None: all."""

    source: str | None
    verdict: str | None
    op: str | None


def title() -> None:
    """The title, and what the page shows."""
    st.markdown("#### Claims: which published numbers hold?")
    st.caption(
        "Blogs, papers and projects publish times, rates and gains. Each is tested by a measurement of its own. Choose a row to "
        "see its source, its test, and why it holds or not."
    )


def results(bench: Bench) -> ClaimsOnDevice:
    """The claims on a device of this machine, or on one whose runs come with kernelviz; the address repeats it as `results`.

    Without a GPU, the page opens with recorded results, if there are any.
    """
    recorded = recorded_devices()
    usable = [d.id for d in bench.devices() if d.usable]
    gpu = bench.device(bench.default_device()).kind == "cuda"
    default = bench.default_device() if gpu or not recorded else next(iter(recorded))
    options = [*usable, *recorded]
    labels = {
        **{i: f"this machine: {bench.device(i).name}" for i in usable},
        **{n: f"recorded: {d}" for n, d in recorded.items()},
    }
    if len(options) == 1:
        return claims_on(bench, options[0])
    chosen = view_filters.choose(
        st.segmented_control, "Results", options, default, key="results", always_named=True,
        format_func=labels.__getitem__,
        help="This machine: what was measured here. Recorded: runs that were measured on that device and come with kernelviz.",
    )  # fmt: skip
    return recorded_claims_on(chosen) if chosen in recorded else claims_on(bench, chosen)


def filters(assessments: Sequence[Assessment]) -> Choice:
    """The boxes for source, verdict and op; the address repeats them."""
    view_filters.adopt("op", "of_op")
    view_filters.report_unknown(("results", "source", "verdict", "of_op", "claim"))
    with st.container(horizontal=True, gap="small", key="claim_filters"):
        box = view_filters.choose_or_all
        source = box("Source", [s.name for s in shipped_claims().sources], "all sources", key="source")
        texts: dict[str, str] = {verdict: str(text) for verdict, text in VERDICT_TEXTS.items()}
        verdict = box("Verdict", list(VERDICTS), "all verdicts", key="verdict", texts=texts)
        op = box("Op", list(ops_of(assessments)), "all ops", key="of_op")
    return Choice(source, verdict, op)


def claim_box(assessments: Sequence[Assessment]) -> str | None:
    """The claim that is described; a click in the table chooses it too, and the address repeats it as `claim`."""
    pending = st.session_state.pop(PENDING, None)
    if pending is not None:
        st.session_state["claim"] = pending
    texts = {a.claim.id: f"{a.claim.id}: {a.claim.setup}" for a in assessments}
    return view_filters.choose_row("Claim", texts, key="claim")
