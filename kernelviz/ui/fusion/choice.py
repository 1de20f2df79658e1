"""The boxes of the page Fusion: device, family, op, run, the axis of the chart, and the case that is described."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import streamlit as st

from kernelviz.bench import Bench, RunSummary
from kernelviz.bench import fusion as use_case
from kernelviz.core import LIVING, Device, UnknownRun
from kernelviz.core.fusion import FusionFamily
from kernelviz.metrics.fusion import FusionRow
from kernelviz.ops import Op
from kernelviz.text import format_sizes
from kernelviz.text.fusion import FAMILIES
from kernelviz.ui.shared import missing_run, run_in_hand, view_filters
from kernelviz.ui.shared.text import distinct_labels, run_label

_Option = TypeVar("_Option", bound=str)
_LAST_OP = "fusion_op_shown"
_LAST_CASE = "fusion_case_shown"
RUN = "of_run"
"""The parameter of the address that names the run. `run` opens a run on the page Bench."""
PENDING = "fusion_case_clicked"
_SHORT = {"family": "fusion_family", "op": "fusion_op", "run": RUN}
_KNOWN = ("fusion_family", "fusion_op", RUN, "fusion_case", "along", "compositions", "on")
"""The parameters of the address of this page, and the short names that are read as these."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The family and the op that the page is about."""

    family: FusionFamily
    op: Op


def device(bench: Bench) -> Device:
    """The device on which the page measures; a box if there are several."""
    return view_filters.device_choice(bench)


def selection(bench: Bench) -> Selection:
    """The family and the op, which the address repeats. A family begins with the op of its newest run."""
    for short, key in _SHORT.items():
        view_filters.adopt(short, key)
    view_filters.report_unknown(_KNOWN)
    pending = st.session_state.pop("family_pending", None)
    if pending is not None:
        st.session_state["fusion_family"] = pending
        view_filters.forget("fusion_op")
        view_filters.write(RUN, None)
    families = [family for family, ops in use_case.fused_ops(bench).items() if ops]
    _family_of_named_op(bench)
    begin = _first_run(bench)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="fusion_choice"):
        family = _box(
            "Family", families, _family_of(bench, begin) or _first_family(bench, families), "fusion_family", 320,
            FAMILIES.__getitem__,
        )  # fmt: skip
        ops = {op.name: op for op in use_case.fused_ops(bench)[family]}
        newest = use_case.newest_of(bench, family)
        likely = [run.op for run in (begin, newest) if run is not None and run.op in ops]
        if st.session_state.get("fusion_op") not in (None, *ops):
            view_filters.forget("fusion_op")
        op = _box("Op", list(ops), (*likely, *ops)[0], "fusion_op", 280, str)
    if st.session_state.get(_LAST_OP, op) != op:
        view_filters.forget("fusion_case", "along")  # they are about the op that was shown before
    st.session_state[_LAST_OP] = op
    return Selection(family, ops[op])


def _family_of_named_op(bench: Bench) -> None:
    """An address that names an op and no family means the family of the op."""
    named = st.query_params.get("fusion_op")
    if named is None or "fusion_family" in st.query_params or "fusion_family" in st.session_state:
        return
    for family, ops in use_case.fused_ops(bench).items():
        if named in [op.name for op in ops]:
            st.query_params["fusion_family"] = family


def _box(
    label: str, options: list[_Option], default: _Option, key: str, width: int, format_func: Callable[[_Option], str]
) -> _Option:
    """A box whose value the address always names, because its default depends on the runs of this machine."""
    return view_filters.choose(
        st.selectbox, label, options, default, key=key, always_named=True, width=width, format_func=format_func
    )


def _first_run(bench: Bench) -> RunSummary | None:
    """The run that the address names, else the run in hand, if it shows a fusion."""
    for run_id in (st.query_params.get(RUN), run_in_hand.current(bench)):
        try:
            run = bench.history.openable(run_id) if run_id else None
        except UnknownRun:
            continue
        if run is not None and use_case.shows_fusion(bench, run):
            return run
    return None


def _family_of(bench: Bench, run: RunSummary | None) -> FusionFamily | None:
    """The family of the op of a run that shows a fusion."""
    if run is None:
        return None
    return next(family for family, ops in use_case.fused_ops(bench).items() if run.op in [op.name for op in ops])


def _first_family(bench: Bench, families: Sequence[FusionFamily]) -> FusionFamily:
    """The first family with a run, so that the first visit shows a result."""
    return next((family for family in families if use_case.newest_of(bench, family) is not None), families[0])


def choose_family(family: FusionFamily) -> None:
    """Show another family from the next redraw on."""
    st.session_state["family_pending"] = family


def choose_op(bench: Bench, op: str) -> None:
    """Show an op and its family in this redraw, before their boxes are drawn."""
    for family, ops in use_case.fused_ops(bench).items():
        if op in [one.name for one in ops]:
            view_filters.forget("fusion_op")
            st.session_state["fusion_family"], st.session_state["fusion_op"] = family, op


def check_run(bench: Bench, chosen: Selection) -> None:
    """Name a run of the address that is not here or shows no fusion, and offer the runs that there are. The page shows none of
    them until one is chosen, so that nobody takes it for the run that the address names."""
    runs = _runs_of(bench, chosen)
    wanted = st.query_params.get(RUN)
    named = _first_run(bench)
    if not wanted or wanted in runs:
        return
    if named is not None and named.id == wanted:  # another family or op was chosen
        view_filters.write(RUN, None)
        return
    missing_run.say(wanted, of=chosen.op.name, without="a fused variant, a composition or a forward pass")
    if not runs:
        return
    other = st.selectbox(
        f"Show another run of {chosen.op.name}", list(runs), index=None, key="fusion_run_instead",
        placeholder="Choose a run", format_func=distinct_labels(runs, lambda r: run_label(runs[r])),
    )  # fmt: skip
    if other is None:
        st.stop()
    st.session_state[_key_of_run(chosen)] = other
    view_filters.write(RUN, other)
    st.rerun()


def _runs_of(bench: Bench, chosen: Selection) -> dict[str, RunSummary]:
    return {run.id: run for run in use_case.offered(bench, chosen.op.name)}


def _key_of_run(chosen: Selection) -> str:
    return f"fusion_run_{chosen.op.name}"


def run_box(bench: Bench, chosen: Selection) -> RunSummary | None:
    """The run that is shown, from the address or the box; None if there is none."""
    runs = _runs_of(bench, chosen)
    wanted = st.query_params.get(RUN)
    if not runs:
        return None
    with_results = [run.id for run in runs.values() if run.done or run.status in LIVING]
    first = next((i for i in (run_in_hand.current(bench), *with_results) if i in runs), next(iter(runs)))
    key = _key_of_run(chosen)
    if view_filters.moved(RUN) or st.session_state.get(key) not in runs:
        st.session_state[key] = wanted if wanted in runs else first
    selected: str = st.selectbox(
        "Run", list(runs), key=key, format_func=distinct_labels(runs, lambda r: run_label(runs[r])),
        help="Runs of this op that measured a composition and a fused variant: those of this machine, then those that came with "
        "kernelviz.",
    )  # fmt: skip
    view_filters.write(RUN, selected)
    return runs[selected]


def axis(axes: Sequence[str], through: Sequence[str], case: str) -> str:
    """The axis along which the chart runs. `through`: the axes with a sweep through the described case, whose key is `case`.
    Another case changes an axis that has no sweep through it; an axis that is chosen afterwards stays."""
    if len(axes) == 1:
        return axes[0]
    default = next(iter(through), axes[0])
    other_case = st.session_state.get(_LAST_CASE, case) != case
    if st.session_state.get("along") not in (None, *(through if other_case and through else axes)):
        view_filters.forget("along")
    st.session_state[_LAST_CASE] = case
    return view_filters.choose(
        st.segmented_control, "Sweep along", list(axes), default, key="along", always_named=True,
        help="The first axis scales the intermediate tensor; the other one the arithmetic for each byte that fusing saves.",
    )  # fmt: skip


def case(rows: Sequence[FusionRow], default: FusionRow) -> FusionRow:
    """The case that is described; a click in the chart or the table chooses it, too."""
    by_key = {row.problem.key: row for row in rows}
    pending = st.session_state.pop(PENDING, None)
    if pending in by_key:
        st.session_state["fusion_case"] = pending
    elif st.session_state.get("fusion_case") not in (None, *by_key):
        view_filters.forget("fusion_case")
    key = view_filters.choose(
        st.selectbox, "Sizes", list(by_key), default.problem.key, key="fusion_case", width="stretch",
        format_func=lambda k: f"{format_sizes(by_key[k].problem)} · {by_key[k].problem.precision}",
    )  # fmt: skip
    return by_key[key]


def follow_click(key: str | None) -> None:
    """Describe the case of a clicked point."""
    if key is not None:
        st.session_state[PENDING] = key


def compositions() -> bool:
    """Whether the table shows all compositions, or only the fastest one of each problem."""
    return (
        view_filters.choose(
            st.segmented_control, "Compositions", ["fastest", "all"], "fastest", key="compositions",
            help="Several variants launch the steps one after the other. The fastest one is what fusing is compared with.",
        )
        == "all"
    )  # fmt: skip
