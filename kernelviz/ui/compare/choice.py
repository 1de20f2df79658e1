"""What the page Compare compares: two runs from the address, the boxes or a file, and one variant of each or all of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import streamlit as st

from kernelviz.bench import Bench, RunSummary
from kernelviz.bench.comparison import EXAMPLE, HEADLINES, counterpart, newest_two, offered, unknown, variants
from kernelviz.core.errors import KernelvizError
from kernelviz.formats import MAX_BYTES
from kernelviz.metrics.roofline import Headline
from kernelviz.plots.variant_styles import variant_words
from kernelviz.ui.compare import text as words
from kernelviz.ui.shared import site, view_filters
from kernelviz.ui.shared.text import plain, when

SIDES = ("a", "b")
_EVERY = "every"
_TURN, _SAID = "compare_uploads", "compare_said"


def runs(bench: Bench) -> tuple[str, str] | None:
    """The two runs; None until both are chosen. What the address names and is not here is said."""
    asked = {side: st.query_params.get(side, "") for side in SIDES}
    gone = unknown(bench, [r for r in asked.values() if r])
    if gone:
        st.error(
            f"No run **{plain(', '.join(gone))}** here: it was deleted, or measured on another machine. Ask for its document, "
            "and open that.",
            icon=":material/error:",
        )
    known = offered(bench, [r for r in asked.values() if r])
    _seed(bench, asked, known)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="sides"):
        for side, label in zip(SIDES, ("A, the baseline", "B, compared with it"), strict=True):
            st.selectbox(
                label, list(known), index=None, key=side, format_func=lambda r: run_words(known[r]),
                placeholder="Choose a run", width="stretch",
            )  # fmt: skip
        st.button("Swap", key="swap", icon=":material/swap_horiz:", on_click=_swap, help="Makes B the baseline.")
        # A new key behind each file closes it.
        turn = st.session_state.setdefault(_TURN, 0)
        with st.popover("Open a file", icon=":material/upload:", key=f"compare_upload_popover_{turn}"):
            _upload(bench, turn)
    for name, why in st.session_state.pop(_SAID, []):
        st.error(f"{plain(name)} was not taken in: {plain(why)}", icon=":material/error:")
    chosen = [st.session_state.get(side) for side in SIDES]
    for side, run_id in zip(SIDES, chosen, strict=True):
        if run_id is not None:
            st.query_params[side] = run_id
        elif asked[side] not in gone:
            st.query_params.pop(side, None)
    return (str(chosen[0]), str(chosen[1])) if all(chosen) else None


def _seed(bench: Bench, asked: Mapping[str, str], known: Mapping[str, RunSummary]) -> None:
    """Before the boxes exist: what the address says. A run that it names alone is held against the one before it."""
    opening = "b" not in st.session_state  # afterwards, who empties a box means it
    for side in SIDES:
        if side not in st.session_state:
            st.session_state[side] = asked[side] if asked[side] in known else None
        elif st.session_state[side] not in known:  # deleted meanwhile
            st.session_state[side] = None
    if opening and st.session_state["b"] is not None and not asked["a"]:
        st.session_state["a"] = counterpart(bench, st.session_state["b"], list(known.values()))


def run_words(run: RunSummary) -> str:
    """A run in a list: name, device where the name does not say it, when."""
    came = "came with kernelviz" if run.shipped else when(run.created_at)
    device = "" if run.device.removeprefix("NVIDIA ") in run.name else f" · {run.device}"
    return f"{run.name}{device} · {came}"


def _swap() -> None:
    for first, second in (("a", "b"), ("variant_a", "variant_b")):
        held = st.session_state.get(first), st.session_state.get(second)
        st.session_state[second], st.session_state[first] = held


def _upload(bench: Bench, turn: int) -> None:
    """A document from elsewhere, kept here and chosen at once: as B, or as A while that is empty."""
    st.markdown("A run as a file: it is checked, kept here, and compared as B (as A while no A is chosen).")
    file = st.file_uploader(
        "Document", max_upload_size=MAX_BYTES // 2**20, key=f"compare_upload_{turn}", label_visibility="collapsed"
    )
    if file is None:
        return
    st.session_state[_TURN] = turn + 1
    side = "a" if st.query_params.get("a") is None else "b"
    try:
        taken_in = bench.history.take_in(file.getvalue())
    except KernelvizError as error:
        st.session_state[_SAID] = [(file.name, str(error))]
    else:
        st.query_params[side] = taken_in
        for name in SIDES:
            st.session_state.pop(name, None)
    st.rerun()


def chosen_variants(bench: Bench, run_a: str, run_b: str) -> tuple[str | None, str | None]:
    """One variant of each side, None for all of them. One alone stands for both sides."""
    keys = {"variant_a": run_a, "variant_b": run_b}
    options = {key: [_EVERY, *variants(bench, run_id)] for key, run_id in keys.items()}
    for key in keys:
        view_filters.seed(key, options[key], _EVERY)
    found: list[str | None] = []
    for key, other in (("variant_a", "variant_b"), ("variant_b", "variant_a")):
        every = words.EVERY if st.session_state[other] == _EVERY else words.ALSO
        chosen = st.selectbox(
            f"Variant of {key[-1].upper()}",
            options[key],
            key=key,
            width=250,
            format_func=partial(_variant_words, every),
        )
        view_filters.keep(key, chosen, _EVERY)
        found.append(None if chosen == _EVERY else chosen)
    return found[0], found[1]


def _variant_words(every: str, variant: str) -> str:
    return every if variant == _EVERY else variant_words(variant)


def headline() -> Headline:
    """Which of the two device times is compared."""
    view_filters.seed("l2", HEADLINES, "cold")
    options: list[str] = list(HEADLINES)
    chosen = st.segmented_control(
        "L2 cache", options, key="l2", required=True, format_func=lambda h: f"L2 {h}", help=words.L2_HELP
    )
    view_filters.keep("l2", chosen, "cold")
    return "warm" if chosen == "warm" else "cold"


def nothing_chosen(bench: Bench) -> None:
    """What to do while A or B is missing."""
    with st.container(border=True, key="nothing_chosen"):
        st.markdown(words.CHOOSE)
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            own = newest_two(bench.runs())
            if own is not None:
                st.button(
                    "Compare the newest two", key="newest_two", type="primary", icon=":material/compare_arrows:",
                    on_click=_show, args=({"a": own[0], "b": own[1]},),
                )  # fmt: skip
            st.button(
                "Show an example", key="example", type="secondary" if own else "primary", icon=":material/play_arrow:",
                on_click=_show, args=(EXAMPLE,),
            )  # fmt: skip
            st.page_link(site.page("bench"), label="Measure something", icon=":material/speed:")


def _show(asked: Mapping[str, str]) -> None:
    for key in ("a", "b", "variant_a", "variant_b"):
        st.session_state[key] = asked.get(key, None if key in SIDES else _EVERY)
