"""The boxes of the page Ladder: op, run, problem, backend, metric, and the rung that is described. The address repeats them."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kernelviz.bench import Bench, RunSummary
from kernelviz.bench import ladder as use_case
from kernelviz.core import Problem, Run, UnknownRun
from kernelviz.core.errors import nearest
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.ladder import BackendLadder, Ladder, Metric, Step
from kernelviz.metrics.ladder_summary import summary_of
from kernelviz.text import format_sizes, format_variant
from kernelviz.text.ladder import METRICS, format_backend
from kernelviz.ui.shared import address_messages, missing_run, run_in_hand, view_filters
from kernelviz.ui.shared.text import distinct_labels, plain, run_label

_Option = TypeVar("_Option", bound=str)
_CLICKED = "ladder_step_clicked"
WARM_FIELD = "warm"


def op(bench: Bench, notices: DeltaGenerator) -> str:
    """The op: that of the run in the address, else the one that the address names, else that of the run in hand. `notices`: where
    it is said that the address names none."""
    options = use_case.ladder_ops(bench)
    named = _run_of_address(bench)
    in_hand = None if named is not None else _openable(bench, run_in_hand.current(bench))
    first = next((run.op for run in (named, in_hand) if run is not None and run.op in options), None)
    of_address = st.query_params.get("op")
    if first is None or (named is None and of_address in options):
        first = of_address if of_address in options else use_case.default_op(bench)
    if view_filters.moved("run") or view_filters.moved("op"):
        st.session_state.pop("ladder_op", None)
        address_messages.remove("ladder_op")
    if of_address is not None and of_address not in options and named is None:
        first = nearest(of_address, options) or first
        address_messages.store("ladder_op", f"In the address, the op {of_address!r} has no ladder", first)
    st.session_state.setdefault("ladder_op", first)
    address_messages.draw("ladder_op", notices)
    chosen = view_filters.widget_with_value(st.selectbox, "Op", options, key="ladder_op", width=280) or first
    if named is not None and named.op != chosen:  # another op was chosen in the box
        for name in ("run", "problem", "ladder", "rung", "measured"):
            view_filters.write(name, None)
    return chosen


def _run_of_address(bench: Bench) -> RunSummary | None:
    return _openable(bench, st.query_params.get("run"))


def _openable(bench: Bench, run_id: str | None) -> RunSummary | None:
    try:
        return bench.history.openable(run_id) if run_id else None
    except UnknownRun:
        return None


def run(bench: Bench, op_name: str) -> RunSummary | None:
    """The run that is shown, from the address or the box; None if there is none. A run that is not here, or that shows no ladder,
    is named."""
    runs = {run.id: run for run in use_case.offered(bench, op_name)}
    wanted = st.query_params.get("run")
    if not runs:
        view_filters.write("run", None)
        view_filters.write("op", op_name)
        return None
    default = use_case.default_run(bench, op_name)
    in_hand = run_in_hand.current(bench)
    first = in_hand if in_hand in runs else default.id if default is not None else next(iter(runs))
    key = f"ladder_run_{op_name}"
    if view_filters.moved("run") or st.session_state.get(key) not in runs:
        st.session_state[key] = wanted if wanted in runs else first
    chosen = view_filters.widget_with_value(
        st.selectbox, "Run", list(runs), key=key, format_func=distinct_labels(runs, lambda r: run_label(runs[r])),
        help="Runs with at least two rungs of a ladder: those of this machine, the newest first, then those that came with "
        "kernelviz. To add a run of another machine, upload its file on the page History.",
    ) or first  # fmt: skip
    if not wanted or wanted in runs or chosen != first:
        view_filters.write("run", chosen)
        view_filters.write("op", None)
    return runs[chosen]


def say_missing(bench: Bench) -> None:
    """That the run of the address is not here, or shows no ladder."""
    wanted, named = st.query_params.get("run"), _run_of_address(bench)
    if not wanted or (named is not None and use_case.shows_ladder(bench, named)):
        return
    if named is None:
        missing_run.say(wanted)
    else:
        st.warning(
            f"The run **{plain(named.name)}** shows no ladder: it has fewer than two rungs of one backend, or it is a tuning. "
            "Another run is shown.",
            icon=":material/warning:",
        )


def problem(bench: Bench, document: Run, notices: DeltaGenerator) -> Problem:
    """The problem: its sizes, number format and direction. `notices`: where unknown values of the address are named."""
    by_key = {p.key: p for p in use_case.problems_of(document)}
    default = use_case.default_problem(bench, document).key
    several = len({(p.dtype, p.compute, p.direction, p.data) for p in by_key.values()}) > 1
    key = _box(
        st.selectbox, "Size", list(by_key), default, param="problem", name="problem", notices=notices, width=320,
        format_func=lambda k: _problem_label(by_key[k], whole=several),
        help="The sizes of this run, with number format and direction where they differ.",
    )  # fmt: skip
    return by_key[key]


def _problem_label(of: Problem, *, whole: bool) -> str:
    parts = [format_sizes(of), of.precision if whole else None, of.direction if whole else None]
    return " · ".join(part for part in parts if part) + (
        f" · {of.data} data" if of.data not in (None, "normal") else ""
    )


def headline(document: Run, notices: DeltaGenerator) -> Headline:
    """Cold or warm times, if the run has both. `notices`: where unknown values of the address are named."""
    if WARM_FIELD not in document.method.figures:
        return "cold"
    names: tuple[Headline, ...] = get_args(Headline)
    return _box(
        st.segmented_control, "Cache", list(names), "cold", param="l2", name="l2", notices=notices,
        help="Cold: the caches are flushed before each call. Warm: calls repeat on the same data.",
    )  # fmt: skip


def metric(ladder: Ladder, notices: DeltaGenerator) -> Metric:
    """What the chart and the rungs show. `notices`: where unknown values of the address are named."""
    names: list[Metric] = list(get_args(Metric))
    return _box(
        st.segmented_control, "Show", names, ladder.metric, param="metric", name="metric", notices=notices,
        format_func=lambda name: METRICS[name],
        help="Bandwidth: the least bytes of the problem per second. Arithmetic rate: its operations per second.",
    )  # fmt: skip


def backend(ladder: Ladder, notices: DeltaGenerator) -> BackendLadder | None:
    """Which backend's ladder is shown: those with a correct time first. `notices`: where unknown values of the address are
    named."""
    ladders = {of.backend: of for of in ladder.ladders}
    main = ladder.main
    if main is None:
        return None
    if len(ladders) == 1:
        return main
    chosen = _box(
        st.segmented_control, "Ladder", list(ladders), main.backend, param="ladder", name="backend", notices=notices,
        format_func=lambda name: f"{format_backend(name)} ({len(ladders[name].correct)} of {len(ladders[name].steps)})",
        help="Each backend has a ladder of its own. In brackets: rungs with a correct time, of all rungs.",
    )  # fmt: skip
    return ladders[chosen]


def step(ladder: Ladder, of: BackendLadder) -> Step:
    """The rung that is described beside the chart; a click in the chart chooses it, too. By default the one with the largest
    gain."""
    by_name = {s.variant: s for s in of.steps}
    summary = summary_of(ladder, of)
    largest = summary.largest.variant if summary is not None and summary.largest is not None else of.steps[0].variant
    key = f"ladder_chosen_{of.backend}"
    clicked = st.session_state.pop(_CLICKED, None)
    if clicked in by_name:
        st.session_state[key] = clicked
    name = _box(
        st.selectbox, "What changed at", list(by_name), largest, param="rung", name=f"chosen_{of.backend}",
        format_func=lambda v: f"{by_name[v].number} {format_variant(v)}",
    )  # fmt: skip
    return by_name[name]


def follow_click(variant: str | None) -> None:
    """Describe the rung of a clicked point."""
    if variant is not None:
        st.session_state[_CLICKED] = variant


def _box(
    widget: Callable[..., Any],
    label: str,
    options: Sequence[_Option],
    default: _Option,
    *,
    param: str,
    name: str,
    notices: DeltaGenerator | None = None,
    **look: Any,
) -> _Option:
    """A widget whose value the address always names as `param`, because its default depends on the run. An unknown value of the
    address is reported, in `notices` or here, and the default is used."""
    key, of_address = f"ladder_{name}", st.query_params.get(param)
    followed = f"{key}_followed"
    present = st.session_state.get(key)
    # Until somebody chooses, the box follows its default, which changes while a run is measured.
    if present in options and present == st.session_state.get(followed) and not view_filters.moved(param):
        address_messages.follow(key, present, default)
        st.session_state[key] = default
    elif view_filters.moved(param) or present not in options:
        address_messages.remove(key)
        if of_address and of_address not in options:
            address_messages.store(key, f"In the address, {param} {of_address!r} is unknown", default)
        st.session_state[key] = of_address if of_address in options else default
    address_messages.draw(key, notices)
    chosen: _Option = view_filters.widget_with_value(widget, label, options, key=key, **look) or default
    st.session_state[followed] = default
    view_filters.write(param, chosen)
    return chosen
