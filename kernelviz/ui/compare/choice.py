"""The boxes of the page Compare: two runs (from the address, the boxes or a file), and one variant of each or all of them."""

from collections.abc import Mapping
from functools import partial

import streamlit as st

from kernelviz.bench import Bench, RunSummary
from kernelviz.bench.comparison import EXAMPLE, counterpart, newest_two, variants
from kernelviz.bench.roofline import offered, unknown
from kernelviz.core import KernelvizError
from kernelviz.formats import MAX_BYTES
from kernelviz.text import format_variant
from kernelviz.ui.shared import missing_run, run_in_hand, site, view_filters
from kernelviz.ui.shared.text import distinct_labels, plain, run_label

SIDES = ("a", "b")
_EVERY = "every"
_UPLOAD_NUMBER, _UPLOAD_ERRORS = "compare_uploads", "compare_said"


def run_boxes(bench: Bench) -> tuple[str, str] | None:
    """The ids of the two chosen runs, None until both are chosen. Runs of the address that are not here are listed."""
    params = {side: st.query_params.get(side, "") for side in SIDES} | _listed_runs()
    missing = unknown(bench, [r for r in params.values() if r])
    if missing:
        missing_run.say(*missing)
    runs = offered(bench, [r for r in (*params.values(), *run_in_hand.last_selection("compare", bench)) if r])
    _seed(bench, params, runs)
    run_name = distinct_labels(runs, lambda r: run_label(runs[r]))
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="sides"):
        for side, label in zip(SIDES, ("Run A (baseline)", "Run B (compared with A)"), strict=True):
            st.selectbox(
                label, list(runs), index=None, key=side, format_func=run_name,
                placeholder="Choose a run", width="stretch",
            )  # fmt: skip
        st.button("Swap", key="swap", icon=":material/swap_horiz:", on_click=_swap, help="Makes B the baseline.")
        # A new key after each file closes the popover.
        number = st.session_state.setdefault(_UPLOAD_NUMBER, 0)
        with st.popover("Open a file", icon=":material/upload:", key=f"compare_upload_popover_{number}"):
            _upload(bench, number)
    for name, reason in st.session_state.pop(_UPLOAD_ERRORS, []):
        st.error(f"{plain(name)} could not be imported: {plain(reason)}", icon=":material/error:")
    chosen = [st.session_state.get(side) for side in SIDES]
    for side, run_id in zip(SIDES, chosen, strict=True):
        if run_id is not None or params[side] not in missing:
            view_filters.write(side, run_id)
    run_in_hand.keep_selection("compare", [str(run_id) for run_id in chosen if run_id])
    return (str(chosen[0]), str(chosen[1])) if all(chosen) else None


def _listed_runs() -> dict[str, str]:
    """The runs of an address that lists them in `runs`, as that of the page Roofline does: the first is A, the second is B. One
    alone is B. Says which of them are not compared. The address then has `a` and `b` instead."""
    listed = [r for r in st.query_params.pop("runs", "").split(",") if r]
    if not listed:
        return {}
    if any(st.query_params.get(side) for side in SIDES):
        st.caption(":orange[In the address, runs was left out: a and b name the two runs of this page.]")
        return {}
    if len(listed) > len(SIDES):
        st.caption(
            f":orange[This page compares two runs: the first two of the {len(listed)} in the address are shown.]"
        )
    first, second = listed[:2] if len(listed) > 1 else ("", listed[0])
    return {"a": first, "b": second}


def _seed(bench: Bench, params: Mapping[str, str], runs: Mapping[str, RunSummary]) -> None:
    """Fill the boxes from the address: before they exist, and when the browser went back to another address. An address without
    runs is the navigation's, which opens the run in hand. If B alone is known, A is the run of its op before it."""
    opening = "b" not in st.session_state  # later, an empty box was emptied by the user
    if opening and not any(params.values()):
        *before, last = ("", *run_in_hand.last_selection("compare", bench))
        params = {"a": before[-1] if before else "", "b": last}
    for side in SIDES:
        if side not in st.session_state or view_filters.moved(side):
            st.session_state[side] = params[side] if params[side] in runs else None
        elif st.session_state[side] not in runs:  # deleted meanwhile
            st.session_state[side] = None
    if opening and st.session_state["b"] is not None and not params["a"]:
        st.session_state["a"] = counterpart(bench, st.session_state["b"], list(runs.values()))


def _swap() -> None:
    for first, second in (("a", "b"), ("variant_a", "variant_b")):
        values = st.session_state.get(first), st.session_state.get(second)
        st.session_state[second], st.session_state[first] = values


def _upload(bench: Bench, number: int) -> None:
    """Import a file and choose its run: as B, or as A while A is empty."""
    st.markdown(
        "Import a run from a file. It is verified, stored on this server, and chosen as B (as A if A is empty)."
    )
    file = st.file_uploader(
        "Run file", max_upload_size=MAX_BYTES // 2**20, key=f"compare_upload_{number}", label_visibility="collapsed"
    )
    if file is None:
        return
    st.session_state[_UPLOAD_NUMBER] = number + 1
    side = "a" if st.query_params.get("a") is None else "b"
    try:
        run_id = bench.history.take_in(file.getvalue(), file=file.name)
    except KernelvizError as error:
        st.session_state[_UPLOAD_ERRORS] = [(file.name, str(error))]
    else:
        st.query_params[side] = run_id
        for name in SIDES:
            st.session_state.pop(name, None)
    st.rerun()


def variant_boxes(bench: Bench, run_a: str, run_b: str) -> tuple[str | None, str | None]:
    """One variant of each side, None for all of them. A variant that is chosen on one side only is used for both."""
    options = {"variant_a": [_EVERY, *variants(bench, run_a)], "variant_b": [_EVERY, *variants(bench, run_b)]}
    for key, names in options.items():
        view_filters.seed(key, names, _EVERY)
    selection = []
    for key, other in (("variant_a", "variant_b"), ("variant_b", "variant_a")):
        every = "all variants, each with itself" if st.session_state[other] == _EVERY else "same as on the other side"
        chosen = view_filters.choose(
            st.selectbox, f"Variant of {key[-1].upper()}", options[key], _EVERY, key=key, width=250,
            format_func=partial(_variant_label, every),
        )  # fmt: skip
        selection.append(None if chosen == _EVERY else chosen)
    return selection[0], selection[1]


def _variant_label(every: str, variant: str) -> str:
    return every if variant == _EVERY else format_variant(variant)


def empty_state(bench: Bench) -> None:
    """What to do while A or B is not chosen, with a button that shows a comparison."""
    with st.container(border=True, key="nothing_chosen"):
        st.markdown(
            "**Choose two runs above.** A is the baseline and B is compared with it: two runs of this server, or a file from "
            "another machine and a run of yours. To compare two variants of one run, choose that run twice."
        )
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            newest = newest_two(bench.runs())
            if newest is not None:
                st.button(
                    "Compare the two newest runs", key="newest_two", type="primary", icon=":material/compare_arrows:",
                    on_click=_choose, args=({"a": newest[0], "b": newest[1]},),
                )  # fmt: skip
            st.button(
                "Show an example", key="example", type="secondary" if newest else "primary", icon=":material/play_arrow:",
                on_click=_choose, args=(EXAMPLE,),
            )  # fmt: skip
            st.page_link(site.page("bench"), label="Measure a run", icon=":material/speed:")


def _choose(values: Mapping[str, str]) -> None:
    for key in ("a", "b", "variant_a", "variant_b"):
        st.session_state[key] = values.get(key, None if key in SIDES else _EVERY)
