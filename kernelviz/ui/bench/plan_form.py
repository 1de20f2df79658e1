"""The sidebar: what to measure. Its widgets hold a `Form`, which a link can seed and which the page's address repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core.configuration import configuration_text
from kernelviz.core.errors import KernelvizError, UsageError
from kernelviz.core.problem import Clock, Plan, Problem
from kernelviz.core.reasons import Refusal
from kernelviz.core.tuning import tuning_key
from kernelviz.ops import Op, Variant
from kernelviz.plots.marker_images import mark
from kernelviz.plots.variant_styles import variant_words
from kernelviz.text.failures import describe_reason
from kernelviz.ui.bench import link, live_mode
from kernelviz.ui.bench.form import BUDGET_S, CLOCKS, Choice, Form, SizesFrom, choices, data_kinds, form_of, reconciled
from kernelviz.ui.shared import callbacks
from kernelviz.ui.shared.text import plain

_SIZE_HELP = (
    "A number (4096, 2^20), a list (64,128), a sweep that doubles (2^10..2^24) or steps (128..1024:128), "
    "or an expression of other axes (2^27/n)."
)
_FORM, _WRITTEN, _RUN, _COMPLAINTS = "form", "written", "run_id", "complaints"
_ADDRESS = "address"


def opened(bench: Bench) -> tuple[str | None, tuple[link.Complaint, ...]]:
    """Take the address into the session before any widget exists; returns the run that it names and what was wrong with it.

    The address counts when it is not one that this page wrote or replaced itself: a link, a typed change, or the browser's Back.
    """
    (params, _), kept = _address(), callbacks.kept()
    own = params == st.session_state.get(_WRITTEN) or callbacks.is_stale(_ADDRESS, params)
    if _FORM not in st.session_state or not own:
        asked = link.read(params, bench)
        form = asked.form
        if asked.run_id is not None and set(params) == {"run"}:
            form = _form_of_run(bench, asked.run_id) or form
        st.session_state[_FORM] = form
        st.session_state[_RUN] = asked.run_id
        st.session_state[_COMPLAINTS] = asked.complaints
        live_mode.off()  # a link measures nothing by itself
        kept.asked, kept.begun = False, None
        _seed(form)
    else:
        before: Form = st.session_state[_FORM]
        form = reconciled(_from_widgets(before, bench), before, bench)
        if form != before:
            st.session_state[_COMPLAINTS] = ()
        st.session_state[_FORM] = form
        _seed(form)
    remember(kept.begun or st.session_state[_RUN])
    return st.session_state[_RUN], st.session_state[_COMPLAINTS]


def current() -> Form:
    """The form as it stands."""
    form: Form = st.session_state[_FORM]
    return form


def asking() -> Callable[[], None]:
    """What the buttons Run do: the next redraw that comes as far as the form measures what it says."""
    kept = callbacks.kept()

    def act() -> None:
        kept.asked = True

    return act


def remember(run_id: str | None) -> None:
    """Write form and run into the address."""
    st.session_state[_RUN] = run_id
    callbacks.kept().begun = None
    params, (present, view) = link.write(st.session_state[_FORM], run_id), _address()
    if params != present:
        callbacks.replaced(_ADDRESS, present)  # before it is: a redraw that ends in between must not find a link
    st.session_state[_WRITTEN] = params
    if params != present:
        st.query_params.from_dict({**params, **view})  # at once: half of it would be a link


def _address() -> tuple[dict[str, str], dict[str, str]]:
    """What the address says of the plan and the run, and of how they are looked at."""
    everything = st.query_params.to_dict()
    return (
        {k: v for k, v in everything.items() if k not in link.VIEW},
        {k: v for k, v in everything.items() if k in link.VIEW},
    )


def _form_of_run(bench: Bench, run_id: str) -> Form | None:
    try:
        return form_of(bench.load(run_id), bench)
    except KernelvizError:  # The page itself says what is wrong with the run; the form then shows the defaults.
        return None


def _seed(form: Form) -> None:
    values: dict[str, object] = {
        "op": form.op,
        "variants": list(form.variants),
        "dtype": form.dtype,
        "sizes_from": form.sizes_from,
        "budget": form.budget_s,
        "clock": form.clock,
        "energy": form.energy,
        "device": form.device,
        "data": form.data,
        "baseline": form.baseline,
        **{_size_key(form.op, axis): text for axis, text in form.sizes.items()},
    }
    if form.compute is not None:
        values["compute"] = form.compute
    if form.direction is not None:
        values["direction"] = form.direction
    if form.preset is not None:
        values["preset"] = form.preset
    for key, value in values.items():
        if st.session_state.get(key) != value:
            st.session_state[key] = value


def _size_key(op: str, axis: str) -> str:
    return f"size_{op}_{axis}"


def _from_widgets(before: Form, bench: Bench) -> Form:
    """The form as the widgets have it now; what a widget does not hold stays as it was."""
    held = st.session_state
    op: str = held.get("op") or before.op
    sizes: Mapping[str, str] = before.sizes
    if op == before.op:
        sizes = {a: str(held.get(_size_key(op, a), t)) for a, t in before.sizes.items()}
    return replace(
        before,
        device=held.get("device") or before.device,
        op=op,
        variants=_in_ladder_order(bench.ops()[op], held.get("variants", before.variants)),
        dtype=held.get("dtype") or before.dtype,
        compute=held.get("compute", before.compute),
        direction=held.get("direction", before.direction),
        sizes_from=cast(SizesFrom, held.get("sizes_from") or before.sizes_from),
        preset=held.get("preset", before.preset),
        sizes=sizes,
        budget_s=float(held.get("budget") or before.budget_s),
        clock=cast(Clock, held.get("clock") or before.clock),
        energy=bool(held.get("energy", before.energy)),
        data=held.get("data") or before.data,
        baseline=held.get("baseline") or before.baseline,
    )


def _in_ladder_order(op: Op, names: object) -> tuple[str, ...]:
    picked = set(cast("list[str]", names or []))
    return tuple(v.name for v in op.variants if v.name in picked)


def sidebar(bench: Bench) -> tuple[Plan, Form] | None:
    """Draw the form; the plan and its form when a button Run was pressed and the run has not begun."""
    form = current()
    ops = bench.ops()
    op = ops[form.op]
    with st.sidebar:
        with st.container(key="sidebar_title"):
            st.markdown("##### kernelviz · what to measure")
        st.selectbox("Op", list(ops), key="op", format_func=lambda n: f"{n} · {ops[n].family}", help=plain(op.summary))
        st.caption(plain(op.formula))
        offered = choices(bench, op, form.device, form.dtype, form.compute, form.direction)
        _variants(bench, offered, form)
        _precision(op, form)
        _sizes(op, form)
        _method(bench, form)
        return _run(bench, form)


def _variants(bench: Bench, offered: tuple[Choice, ...], form: Form) -> None:
    usable = {c.variant.name: c.variant for c in offered if c.usable}
    st.pills(
        "Variants",
        list(usable),
        selection_mode="multi",
        key="variants",
        format_func=lambda n: f"{mark(form.op, n)} {plain(variant_words(n))}",
    )
    for line in tuned_words(bench, form, [v for v in usable.values() if v.name in form.variants]):
        st.caption(plain(line))
    excluded: dict[Refusal, list[str]] = {}
    for choice in offered:
        if choice.refusal is not None:
            excluded.setdefault(choice.refusal, []).append(choice.variant.name)
    if excluded:
        with st.container(horizontal=True, gap="xsmall", key="excluded"):
            for refusal, names in excluded.items():
                reason = str(describe_reason(refusal))
                for name in names:
                    st.badge(plain(variant_words(name)), color="gray", icon=":material/block:", help=plain(reason))
        for refusal, names in excluded.items():
            which = "" if len(excluded) == 1 else f"{', '.join(plain(variant_words(n)) for n in names)}: "
            st.caption(f"{which}{plain(describe_reason(refusal))}")


def tuned_words(bench: Bench, form: Form, variants: Sequence[Variant]) -> list[str]:
    """Of each variant that has something to tune: at which of the form's sizes it was, and what then holds."""
    tunable = [v for v in variants if v.space]
    if not tunable:
        return []
    try:
        problems = form.plan(bench).problems
    except UsageError:
        return []
    return [_tuned_line(bench, form, v, problems) for v in tunable]


def _tuned_line(bench: Bench, form: Form, variant: Variant, problems: Sequence[Problem]) -> str:
    kept = bench.tunings.find(form.op, variant=variant.name, device=form.device)
    by_problem = {tuning_key(k.tuning.problem): k for k in kept}
    found = [k for p in problems if (k := by_problem.get(tuning_key(p))) is not None]
    used = [k for k in found if not k.stale]
    name = variant_words(variant.name)
    if not used:
        stale = f"; a tuning is not used: {found[0].stale}" if found else ""
        return f"{name}: default configuration, {configuration_text(variant.default)}{stale}"
    first = used[0].tuning
    if len(problems) == 1:
        return f"{name}: tuned, {configuration_text(first.configuration)} (run {first.run_id})"
    rest = len(problems) - len(used)
    return f"{name}: tuned at {len(used)} of {len(problems)} sizes" + (
        ", default configuration elsewhere" if rest else ""
    )


def _precision(op: Op, form: Form) -> None:
    computes = op.computes.get(form.dtype, ())
    if form.direction is not None:
        st.segmented_control(
            "Direction", op.directions, key="direction", required=True,
            help="forward: the op itself. backward: the gradients of its inputs, from those of its outputs.",
        )  # fmt: skip
    left, right = st.columns(2)
    left.selectbox("dtype", op.dtypes, key="dtype")
    if computes:
        right.selectbox(
            "Compute",
            computes,
            key="compute",
            help="Precision of the arithmetic: ieee keeps fp32, tf32 rounds the inputs.",
        )
    else:
        right.selectbox("Input data", data_kinds(op), key="data", format_func=lambda n: n.replace("_", " "))


def _sizes(op: Op, form: Form) -> None:
    modes = ["values", "preset", "sweep"] if op.presets else ["values", "sweep"]
    st.segmented_control("Sizes", modes, key="sizes_from", required=True)
    if form.sizes_from == "preset":
        presets = {p.name: p for p in op.presets}
        st.selectbox(
            "Model", list(presets), key="preset", format_func=lambda n: presets[n].caption, label_visibility="collapsed"
        )
        st.caption(plain(" · ".join(f"{a} = {t}" for a, t in form.sizes.items())))
        return
    for axis in op.axes:
        key = _size_key(op.name, axis.name)
        st.text_input(plain(f"{axis.name} ({axis.caption})"), key=key, help=_SIZE_HELP)
        if live_mode.on():
            live_mode.knob(axis, key, form.sizes[axis.name])


def _method(bench: Bench, form: Form) -> None:
    with st.expander("Method", key="method_expander"):
        low, high = BUDGET_S
        st.number_input(
            "Budget a case, s", min_value=low, max_value=high, step=0.25, key="budget",
            help="The most measuring time that a case may take; it ends sooner when its interval is narrow enough.",
        )  # fmt: skip
        st.segmented_control(
            "Load", CLOCKS, key="clock", required=True,
            help="burst: short bursts at the clock that the device begins with. sustained: calls back to back behind a second of "
            "the same load, as in a long job. Two questions; their times are never compared.",
        )  # fmt: skip
        if bench.device(form.device).kind == "cuda":
            st.toggle(
                "Energy of a call", key="energy", help="By the board's counter over two seconds: three seconds a case."
            )
        if form.variants:
            st.selectbox(
                "Baseline",
                form.variants,
                key="baseline",
                format_func=variant_words,
                help="Speed-ups divide by its time.",
            )
        if bench.ops()[form.op].computes.get(form.dtype):
            kinds = data_kinds(bench.ops()[form.op])
            st.selectbox("Input data", kinds, key="data", format_func=lambda n: n.replace("_", " "))
        devices = {d.id: d for d in bench.devices()}
        st.selectbox("Device", list(devices), key="device", format_func=lambda n: f"{n} · {devices[n].name}")


def _run(bench: Bench, form: Form) -> tuple[Plan, Form] | None:
    plan, wrong, kept = None, "", callbacks.kept()
    try:
        plan = form.plan(bench) if form.variants else None
        wrong = "" if plan else "Choose at least one variant."
    except UsageError as error:
        wrong = str(error)
    callbacks.button(
        "Run", asking(), key="run", type="primary", width="stretch", disabled=plan is None, icon=":material/play_arrow:"
    )
    live_mode.toggle()
    if plan is None:
        kept.asked = False
        st.error(plain(wrong), icon=":material/edit:")
        return None
    st.caption(estimate_words(plan, form, waiting(bench, form.device)))
    return (plan, form) if kept.asked else None


def estimate_words(plan: Plan, form: Form, ahead: int | None) -> str:
    """How much work the plan is: cases, the most measuring time, and how much is queued."""
    cases = len(plan.cases())
    most_s = cases * form.budget_s
    time = f"{most_s:.3g} s" if most_s < 90 else f"{most_s / 60:.0f} min"
    # Not "before you": turns are by person, so that of a sweep of twelve problems one comes first. The run itself says its place.
    some = f" · {ahead} problem{'s' if ahead != 1 else ''} queued, people take turns"
    queue = {None: "", 0: " · nothing queued"}.get(ahead, some)
    return f"{cases} case{'s' if cases != 1 else ''} · at most {time} of measuring, compiling apart{queue}"


def waiting(bench: Bench, device_id: str) -> int | None:
    """Problems that wait for the device or are on it, None when the bench does not say."""
    devices = bench.health().get("devices")
    state = devices.get(device_id) if isinstance(devices, dict) else None
    queued = state.get("queued") if isinstance(state, dict) else None
    return queued if isinstance(queued, int) else None
