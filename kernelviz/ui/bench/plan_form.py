"""The sidebar form: what to measure. A link can fill it, and the page's address repeats its values."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from kernelviz.bench import Bench, planning
from kernelviz.core import KernelvizError, Plan, Problem, Run, RunQueued, UsageError, units
from kernelviz.core.configuration import base_name, configuration_text
from kernelviz.core.errors import BadSize
from kernelviz.core.sizes import without_suffixes
from kernelviz.core.tuning import tuning_key
from kernelviz.ops import Op, Variant
from kernelviz.plots.marker_images import mark
from kernelviz.text import describe_queue_position, format_refusals, format_variant
from kernelviz.text.text import sentence_case
from kernelviz.ui.bench import link, live_mode, method_form, own_variant
from kernelviz.ui.bench.form import (
    Choice,
    Form,
    choices,
    default_form,
    form_of,
    reconciled,
)
from kernelviz.ui.bench.form_and_run import differences, unavailable
from kernelviz.ui.bench.form_refusals import describe_lacking_variants, describe_too_large
from kernelviz.ui.shared import callbacks, run_in_hand, session
from kernelviz.ui.shared.text import plain
from kernelviz.ui.shared.view_filters import widget_with_value

_FIELDS = {
    "op": "op", "dtype": "dtype", "compute": "compute", "direction": "direction", "sizes_from": "sizes_from",
    "preset": "preset", "budget": "budget_s", "clock": "clock", "load": "load_s", "energy": "energy",
    "naive": "naive",
    "untrusted": "untrusted", "compile_ahead": "compile_ahead", "device": "device", "data": "data", "baseline": "baseline",
}  # fmt: skip
"""The field of the form by the key of its widget; variants and sizes have widgets of their own kind."""
_REQUIRED = ("op", "dtype", "sizes_from", "budget_s", "clock", "load_s", "device", "data", "baseline")
_FORM, _WRITTEN, _RUN, _COMPLAINTS = "form", "written", "run_id", "complaints"
_ADDRESS, _TAKE_OVER = "address", "take_over_plan"


def open_address(bench: Bench) -> tuple[str | None, tuple[link.Complaint, ...]]:
    """Read the address into the session before any widget exists; returns the run that it names and its invalid fields.

    The address is read if this page did not write or replace it itself: a link, a typed change, or the browser's Back button.
    """
    (params, _), actions = _address(), callbacks.actions()
    own = params == st.session_state.get(_WRITTEN) or callbacks.is_stale(_ADDRESS, params)
    in_hand = run_in_hand.current(bench)
    left: Form | None = st.session_state.get(_FORM)
    if not params and run_in_hand.away() and (in_hand is not None or left is not None):
        # The navigation came back: the run in hand, and the form as it was left unless another page took another run.
        same = in_hand in (None, st.session_state.get(_RUN))
        form = left if left is not None and same else _form_of(in_hand, bench)
        st.session_state[_RUN], st.session_state[_COMPLAINTS] = in_hand, ()
    elif _FORM not in st.session_state or not own:
        address = link.read(params, bench)
        form = address.form
        if address.run_id is not None and set(params) == {"run"}:
            # The page itself reports what is wrong with the run; the form then shows the defaults.
            form = _form_of(address.run_id, bench, form)
        st.session_state[_RUN] = address.run_id
        st.session_state[_COMPLAINTS] = address.complaints
        live_mode.off()  # a link must not start a measurement
        actions.run_pressed, actions.started_run = False, None
    elif st.session_state.pop(_TAKE_OVER, False):
        form = _form_of(st.session_state[_RUN], bench, st.session_state[_FORM])
    else:
        before: Form = st.session_state[_FORM]
        form = reconciled(_from_widgets(before, bench), before, bench)
        if form != before:
            st.session_state[_COMPLAINTS] = ()
    st.session_state[_FORM] = form
    _seed(form)
    remember(actions.started_run or st.session_state[_RUN])
    run_in_hand.back()
    return st.session_state[_RUN], st.session_state[_COMPLAINTS]


def _form_of(run_id: str | None, bench: Bench, otherwise: Form | None = None) -> Form:
    """The form that measures a run again; `otherwise`, or else the default, if the run or its op is not here."""
    form = None
    with suppress(KernelvizError):
        form = form_of(bench.load(run_id), bench) if run_id is not None else None
    return form or otherwise or default_form(bench)


def current() -> Form:
    """The current form."""
    form: Form = st.session_state[_FORM]
    return form


def run_action() -> Callable[[], None]:
    """The action of the buttons Run: the next redraw that reaches the form starts its run."""
    return partial(setattr, callbacks.actions(), "run_pressed", True)


def remember(run_id: str | None) -> None:
    """Write the form and the run into the address."""
    st.session_state[_RUN] = run_id
    callbacks.actions().started_run = None
    params, (present, view) = link.write(st.session_state[_FORM], run_id), _address()
    if params != present:
        # First, because a redraw that ends in between must not take the address for a link.
        callbacks.replaced(_ADDRESS, present)
    st.session_state[_WRITTEN] = params
    if params != present:
        st.query_params.from_dict({**params, **view})  # in one step: a part of the parameters would be another link


def _address() -> tuple[dict[str, str], dict[str, str]]:
    """The parameters of the address, divided into those of the plan and run, and those of the view."""
    plan = st.query_params.to_dict()
    view = {name: plan.pop(name) for name in link.VIEW if name in plan}
    return plan, view


def _seed(form: Form) -> None:
    values = {key: getattr(form, field) for key, field in _FIELDS.items()}
    values |= {_size_key(form.op, axis): text for axis, text in form.sizes.items()}
    values["variants"] = list(form.variants)
    for key, value in values.items():
        if value is not None and st.session_state.get(key) != value:
            st.session_state[key] = value


def _size_key(op: str, axis: str) -> str:
    return f"size_{op}_{axis}"


def _from_widgets(before: Form, bench: Bench) -> Form:
    """The form with the current values of the widgets; fields without a widget stay as they were."""
    values = st.session_state
    fields: dict[str, Any] = {field: values.get(key, getattr(before, field)) for key, field in _FIELDS.items()}
    # A widget whose options changed has no value for a moment.
    fields |= {field: getattr(before, field) for field in _REQUIRED if not fields[field]}
    op, sizes = bench.ops()[fields["op"]], before.sizes
    if op.name == before.op:
        sizes = {axis: str(values.get(_size_key(op.name, axis), text)) for axis, text in sizes.items()}
    chosen = set(values.get("variants", before.variants) or ())
    variants = tuple(v.name for v in op.variants if v.name in chosen)
    return replace(before, **fields, sizes=sizes, variants=variants)


def sidebar(bench: Bench, run: Run | None) -> tuple[Plan, Form] | None:
    """Draw the form; returns the plan and the form if Run was pressed and the run has not started. `run`: the run of the
    page."""
    form = current()
    ops = bench.ops()
    op = ops[form.op]
    with st.sidebar:
        with st.container(key="sidebar_title"):
            st.markdown("##### What to measure")
        if run is not None and not live_mode.on():
            _compare_with(run, form, bench)
        widget_with_value(
            st.selectbox, "Op", list(ops), key="op", format_func=lambda n: f"{n} · {ops[n].family}",
            help=f"{plain(op.summary)}  \n{plain(op.formula)}",
        )  # fmt: skip
        offered = choices(bench, op, form.device, form.dtype, form.compute, form.direction)
        _variants(bench, offered, form)
        own_variant.how_to_add(op)
        _precision(op, form)
        plan, refusal = _planned(bench, form)
        _sizes(op, form, refusal)
        method_form.draw(bench, form)
        return _run(bench, form, plan, refusal)


def _planned(bench: Bench, form: Form) -> tuple[Plan | None, UsageError | None]:
    """The plan of the form, or why there is none; neither if no variant is chosen."""
    try:
        return (form.plan(bench) if form.variants else None), None
    except UsageError as error:
        return None, error


def describe_refusal(bench: Bench, form: Form) -> str | None:
    """Why the form cannot be measured, with the remedy, for a place far from its fields; None if it can be measured."""
    plan, refusal = _planned(bench, form)
    if plan is not None:
        return None
    return describe_lacking_variants(bench, form) if refusal is None else f"{sentence_case(str(refusal))}."


def _compare_with(run: Run, form: Form, bench: Bench) -> None:
    """Whether the form shows the plan of the run on the page; nothing if it does."""
    fields, missing = differences(form, run, bench), unavailable(form, run, bench)
    if fields:
        with st.container(gap=None, key="form_and_run"):
            st.caption(f":orange[:material/difference:] Differs from the run shown: {', '.join(fields)}")
            if run.plan.op in bench.ops():
                st.button(
                    "Use its plan", key="take_over", type="tertiary", icon=":material/sync:",
                    on_click=partial(st.session_state.__setitem__, _TAKE_OVER, True),
                )  # fmt: skip
    elif missing:
        every = len({base_name(v) for v in run.plan.variants})
        st.caption(f"The plan of the run shown, without {len(missing)} of its {every} variants, which cannot run here")


def _variants(bench: Bench, offered: tuple[Choice, ...], form: Form) -> None:
    usable = {c.variant.name: c.variant for c in offered if c.usable}
    st.pills(
        "Variants",
        list(usable),
        selection_mode="multi",
        key="variants",
        format_func=lambda n: f"{mark(form.op, n)} {plain(format_variant(n))}",
    )
    for line in describe_tunings(bench, form, [v for v in usable.values() if v.name in form.variants]):
        st.caption(plain(line))
    _excluded(offered)


def _excluded(offered: Sequence[Choice]) -> None:
    """How many variants cannot be chosen and why, on one line; a click lists them with the whole reasons."""
    refusals = [c.refusal for c in offered if c.refusal is not None]
    if not refusals:
        return
    by_reason: dict[str, list[str]] = {}
    for choice in offered:
        if not choice.usable:
            by_reason.setdefault(plain(choice.reason), []).append(plain(format_variant(choice.variant.name)))
    with st.popover(
        plain(format_refusals(refusals)), type="tertiary", icon=":material/block:", key="excluded",
        help="Variants that cannot be chosen: a click lists them with the reasons.",
    ):  # fmt: skip
        st.markdown("\n".join(f"- **{', '.join(names)}**: {reason}" for reason, names in by_reason.items()))


def describe_tunings(bench: Bench, form: Form, variants: Sequence[Variant]) -> list[str]:
    """For each variant that can be tuned: at how many of the form's sizes it was tuned, and with which configuration it runs."""
    tunable = [v for v in variants if v.space]
    try:
        problems = form.plan(bench).problems if tunable else ()
    except UsageError:
        return []
    return [_describe_tuning(bench, form, v, problems) for v in tunable]


def _describe_tuning(bench: Bench, form: Form, variant: Variant, problems: Sequence[Problem]) -> str:
    tunings = bench.tunings.find(form.op, variant=variant.name, device=form.device)
    by_problem = {tuning_key(t.tuning.problem): t for t in tunings}
    matching = [t for p in problems if (t := by_problem.get(tuning_key(p))) is not None]
    used = [t for t in matching if not t.stale]
    name = format_variant(variant.name)
    if not used:
        stale = f"; a stored tuning is not used: {matching[0].stale}" if matching else ""
        return f"{name}: default configuration, {configuration_text(variant.default)}{stale}"
    first = used[0].tuning
    if len(problems) == 1:
        return f"{name}: tuned, {configuration_text(first.configuration)} (run {first.run_id})"
    rest = ", default configuration at the others" if len(used) < len(problems) else ""
    return f"{name}: tuned at {len(used)} of {len(problems)} sizes{rest}"


def _precision(op: Op, form: Form) -> None:
    if form.direction is not None:
        widget_with_value(
            st.segmented_control, "Direction", op.directions, key="direction",
            help="forward: the op itself. backward: the gradients of its inputs, computed from the gradients of its outputs.",
        )  # fmt: skip
    left, right = st.columns(2)
    widget_with_value(left.selectbox, "Data type", op.dtypes, key="dtype")
    computes = op.computes.get(form.dtype)
    if computes:
        widget_with_value(
            right.selectbox,
            "Compute precision",
            computes,
            key="compute",
            help="Precision of the arithmetic: ieee computes in full fp32, tf32 rounds the inputs to 10 mantissa bits. "
            "Of 8-bit floats, fast accumulation leaves all sums to the tensor core, fp32 accumulation only sums of 128 terms.",
        )
    else:
        method_form.input_data(right.selectbox, op)


def _sizes(op: Op, form: Form, refusal: UsageError | None) -> None:
    presets = {p.name: p for p in op.presets}
    modes = ["values", "preset", "sweep"] if presets else ["values", "sweep"]
    widget_with_value(st.segmented_control, "Sizes", modes, key="sizes_from")
    if form.sizes_from == "preset":
        widget_with_value(
            st.selectbox,
            "Model",
            list(presets),
            key="preset",
            format_func=lambda n: presets[n].caption,
            label_visibility="collapsed",
        )
        st.caption(plain(" · ".join(f"{a} = {t}" for a, t in form.sizes.items())))
        return
    size_help = (
        "A number (4096, 4k or 2^20; k is 1,024, M is 2^20, G is 2^30), a list (64,128), a range that doubles (2^10..2^24) or "
        "has a step (128..1024:128), or an expression with other axes (2^27/n)."
    )
    for axis in op.axes:
        key = _size_key(op.name, axis.name)
        # The value is given as the default, too: Streamlit does not send the session's value to a box that is drawn again (after
        # the presets, which have no boxes) if it did not change, and the browser would show an empty box.
        st.text_input(plain(f"{axis.name} ({axis.caption})"), form.sizes[axis.name], key=key, help=size_help)
        if isinstance(refusal, BadSize) and refusal.axis == axis.name:
            st.caption(f":red[:material/error: {plain(sentence_case(refusal.remedy))}.]")
        numbers = without_suffixes(form.sizes[axis.name])
        if numbers != form.sizes[axis.name]:
            st.caption(plain(f"{axis.name} = {numbers}"))
        if live_mode.on():
            live_mode.size_slider(axis, key, form.sizes[axis.name])


def _run(bench: Bench, form: Form, plan: Plan | None, refusal: UsageError | None) -> tuple[Plan, Form] | None:
    """The button that runs the plan, which is drawn below the form; without a plan, why there is none."""
    actions = callbacks.actions()
    with st.container(key="run_bar", gap="xsmall"):  # It stays in sight while the form is scrolled (pages.css).
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            callbacks.button(
                "Run", run_action(), key="run", type="primary", width="stretch", disabled=plan is None,
                icon=":material/play_arrow:",
            )  # fmt: skip
            live_mode.toggle()
        if plan is None:
            actions.run_pressed = False
            st.error(plain(sentence_case(_why_no_plan(bench, form, refusal))), icon=":material/edit:")
            return None
        # In live mode, what is ahead is the run that this change has started; its progress says what it waits for.
        ahead = None if live_mode.on() else bench.ahead_of(session.owner(), form.device)
        st.caption(format_estimate(plan, form, ahead))
        too_large = planning.too_large(bench.ops()[plan.op], bench.device(plan.device), plan.problems)
        if too_large:
            st.caption(plain(describe_too_large(too_large, plan)))
    return (plan, form) if actions.run_pressed else None


def _why_no_plan(bench: Bench, form: Form, refusal: UsageError | None) -> str:
    """Why there is no plan. The remedy for a size stands below its field, which a long sentence here would cover."""
    if refusal is None:
        return describe_lacking_variants(bench, form)
    if isinstance(refusal, BadSize) and form.sizes_from != "preset":
        return f"{refusal.field}: {refusal.value!r} cannot be used"
    return str(refusal)


def format_estimate(plan: Plan, form: Form, ahead: int | None) -> str:
    """How much work the plan is: number of cases, time for the cold times, and its position in the queue. The time is no upper
    limit: a busy machine needs more, because times that are not stable are measured up to three times. `ahead`: not the length
    of the queue, because users alternate, so that of another user's twelve problems only one comes first. None: unknown."""
    cases = len(plan.cases())
    cold_s = len(plan.problems) * form.method.longest_s(len(plan.variants))
    time = f"{cold_s:.3g} s" if cold_s < 90 else f"{cold_s / 60:.0f} min"
    more = "compiling and checking" if form.method.figures == ("cold",) else "other times, compiling and checking"
    queue = "" if ahead is None else f" · {describe_queue_position(RunQueued(ahead=ahead))}"
    return f"{units.counted(cases, 'case')} · up to about {time} for cold times on a quiet machine, plus {more}{queue}"
