"""The form of a new tuning: op, variant, problem, and how many configurations. The address repeats every value."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.tunable import tunable
from kernelviz.bench.tunings import EARLY_STOP, METHOD
from kernelviz.core import Device, Method, Plan, RunRequest, UsageError, units
from kernelviz.core.command import commands
from kernelviz.core.sizes import values
from kernelviz.ops import Op, Variant
from kernelviz.ops.catalog.space import MOST_IN_PLAN, tuned_keys
from kernelviz.text import describe_reason, format_variant
from kernelviz.text.tuning import describe_plan, describe_space, describe_tunable
from kernelviz.ui.autotune import choice, measuring
from kernelviz.ui.shared import address_messages, device_strip, view_filters
from kernelviz.ui.shared.text import plain

_USUAL_COUNT = 100
_PREFERRED = ("add", "triton_tuned")
"""What the form begins with, where it is offered: it is quick and has several parameters."""


def new_tuning(bench: Bench) -> None:
    """The boxes, what would be measured, and the button that starts."""
    device = view_filters.device_choice(bench)
    tunable = _tunable(bench)
    if not tunable:
        st.info("No variant here has parameters to tune.", icon=":material/info:")
        return
    device_strip.notices(bench.notices(device.id), on_one_line=True)
    _what_can_be_tuned(bench, device)
    with st.container(border=True, key="autotune_form"):
        request, configurations, seed, method, lack = _boxes(bench, tunable, device)
        if lack:
            st.warning(plain(lack), icon=":material/memory:")
            return
        try:
            plan = bench.tuning(request, configurations=configurations, seed=seed)
        except UsageError as error:
            st.error(plain(error), icon=":material/error:")
            return
        _start_row(bench, device, plan, method)


def _what_can_be_tuned(bench: Bench, device: Device) -> None:
    """Which ops can be tuned on the device. Where none can: a recorded tuning to look at."""
    entries = tunable(bench, device.id)
    said = plain(describe_tunable(entries, device.name))
    if any(one.lack is None for one in entries):
        st.caption(said)
        return
    st.info(said, icon=":material/memory:")
    for run_id in bench.tunings.shipped():
        st.button(
            "Open a recorded tuning", key=f"autotune_recorded_{run_id}", icon=":material/inventory_2:", type="primary",
            on_click=choice.choose_run, args=(run_id,), help=plain(bench.history.summary(run_id).title),
        )  # fmt: skip


def _tunable(bench: Bench) -> dict[str, tuple[Op, tuple[Variant, ...]]]:
    """By op, the variants with parameters that can be tuned."""
    tunable = {}
    for name, op in bench.ops().items():
        variants = tuple(v for v in op.variants if v.space and tuned_keys(v))
        if variants:
            tunable[name] = (op, variants)
    return tunable


def _boxes(
    bench: Bench, tunable: Mapping[str, tuple[Op, tuple[Variant, ...]]], device: Device
) -> tuple[RunRequest, int | None, int, Method, str]:
    """The request that the boxes describe, the number of configurations (None: all), seed and method, and what the variant lacks
    here."""
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="autotune_what"):
        op_name = _box("Op", "op", list(tunable), _PREFERRED[0], width=220)
        op, variants = tunable[op_name]
        names = [v.name for v in variants]
        name = _box("Variant", "variant", names, _PREFERRED[1], width=280, format_func=format_variant)
        variant = next(v for v in variants if v.name == name)
        dtypes = [d for d in op.dtypes if variant.dtypes is None or d in variant.dtypes]
        dtype = _box("Number format", "dtype", dtypes, dtypes[0], width=150)
        computes = [c for c in op.computes.get(dtype, ()) if variant.computes is None or c in variant.computes]
        compute = _box("Precision", "compute", computes, computes[0], width=170) if len(computes) > 1 else None
        directions = [d for d in op.directions if d in variant.directions]
        direction = (
            _box("Direction", "direction", directions, directions[0], width=150)
            if len(directions) > 1
            else directions[0]
        )
    st.caption(plain(f"{variant.summary} {describe_space(variant.space)}"))
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="autotune_sizes"):
        sizes = {
            a.name: _text(a.caption or a.name, a.name, f"size_{a.name}", _size(op, a.name, device), op_name)
            for a in op.axes
        }
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="autotune_how"):
        configurations, seed = _count()
        method = _method()
    offer = next((o for o in bench.offers(op_name, device.id) if o.variant.name == name), None)
    lack = ""
    if offer is not None and offer.lack is not None:
        reason = describe_reason(offer.lack)
        lack = (
            f"{format_variant(name)} cannot run on {device.name}: {reason}. Tune it on a machine that has what it needs, and "
            "import the run here."
        )
    request = RunRequest(
        op=op_name, variants=(name,), sizes=sizes, dtype=dtype, compute=compute or next(iter(computes), None),
        direction=direction, device=device.id,
    )  # fmt: skip
    return request, configurations, seed, method, lack


def _size(op: Op, axis: str, device: Device) -> str:
    """The largest size of the default sweep, because a tuning is of one problem; or the default as an expression of other "
    "axes."""
    one = next(a for a in op.axes if a.name == axis)
    text = one.cpu_default if device.kind == "cpu" else one.default
    try:
        return units.typed_size(values(axis, text)[-1])
    except UsageError:  # an expression of other axes
        return text


def _box(
    label: str, name: str, options: Sequence[str], default: str, *, width: int, format_func: Callable[[str], Any] = str
) -> str:
    """A box whose value the address repeats under `name`."""
    key = f"tune_{name}"
    used = default if default in options else options[0]
    given = st.query_params.get(name)
    if st.session_state.get(key) not in options or view_filters.moved(name):
        address_messages.remove(key)
        if given is not None and given not in options:
            address_messages.store(key, f"In the address, {name} {given!r} is not known here", used)
        st.session_state[key] = given if given in options else used
    chosen = view_filters.widget_with_value(
        st.selectbox, label, options, key=key, width=width, format_func=format_func
    ) or used  # fmt: skip
    address_messages.draw(key)
    view_filters.write(name, chosen)
    return chosen


def _text(label: str, short: str, name: str, default: str, about: str, *, help: str = "") -> str:
    """A text whose value the address repeats under `name`. `about`: another one has its own text, as of another op."""
    key = f"tune_{name}_{about}"
    if key not in st.session_state or view_filters.moved(name):
        st.session_state[key] = st.query_params.get(name, default)
    text = st.text_input(
        plain(f"{label} ({short})" if label != short else label), key=key, width=170, help=help or None
    )
    view_filters.write(name, text)
    return text


def _count() -> tuple[int | None, int]:
    """The number of configurations, None for all, and the seed of their choice."""
    key = "tune_search"
    given = st.query_params.get("configurations", str(_USUAL_COUNT))
    if key not in st.session_state or view_filters.moved("configurations"):
        st.session_state[key] = "all" if given == "all" else "random sample"
        st.session_state["tune_count"] = (
            int(given) if given.isdecimal() and 2 <= int(given) <= MOST_IN_PLAN else _USUAL_COUNT
        )
    search = view_filters.widget_with_value(
        st.segmented_control, "Search", ["random sample", "all"], key=key,
        help=f"A sample of the configurations that make sense at this size, or all of them (at most {MOST_IN_PLAN}).",
    ) or "random sample"  # fmt: skip
    if search == "all":
        view_filters.write("configurations", "all")
        view_filters.write("seed", None)
        return None, 0
    count = int(st.number_input("Configurations", 2, MOST_IN_PLAN, key="tune_count", width=140))
    seed_text = _text("Seed", "Seed", "seed", "0", "search", help="The same seed draws the same sample.")
    view_filters.write("configurations", str(count))
    return count, int(seed_text) if seed_text.isdecimal() and len(seed_text) < 10 else 0


def _method() -> Method:
    """Budget and early stop."""
    key = "tune_budget"
    if key not in st.session_state or view_filters.moved("budget"):
        st.session_state[key] = _seconds(st.query_params.get("budget", ""))
        st.session_state["tune_early_stop"] = st.query_params.get("early_stop") != "no"
    budget_s = float(
        st.number_input(
            "Budget each, s", 0.001, 60.0, key=key, step=0.01, format="%.3f", width=140,
            help="Largest device time for each configuration. Most take less, because measuring ends when it is decided whether "
            "one is faster than the default.",
        )
    )  # fmt: skip
    stops = st.toggle(
        "Early stop", key="tune_early_stop",
        help=f"A configuration of which even the fastest call of the first block takes more than {EARLY_STOP:g} times as long as "
        "the best beside it gets no further blocks. Its time is then an estimate without an interval, and it can never be "
        "the best.",
    )  # fmt: skip
    view_filters.write("budget", f"{budget_s:g}")
    view_filters.write("early_stop", None if stops else "no")
    return msgspec.structs.replace(METHOD, budget_s=budget_s, early_stop=EARLY_STOP if stops else msgspec.UNSET)


def _seconds(text: str) -> float:
    try:
        return min(max(float(text), 0.001), 60.0)
    except ValueError:
        return METHOD.budget_s


def _start_row(bench: Bench, device: Device, plan: Plan, method: Method) -> None:
    """What would be measured, the button, and the same as a command."""
    st.markdown(plain(describe_plan(plan, bench.tunings.cost(plan, method))))
    measuring.start_button(bench, device, plan, method)
    with st.expander("The same in a terminal and in Python", icon=":material/terminal:"):
        st.code("\n".join(commands(plan, method)), language=None, wrap_lines=True)
        st.caption("In Python: kernelviz.tune(op, variant, sizes={…}, configurations=…, seed=…).")
