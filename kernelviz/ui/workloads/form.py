"""The form of a new run: devices, preset, axes, variants and budget; what it lacks here; and the button that measures."""

from functools import partial
from math import isfinite

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.workload_plan import (
    LEAST_BUDGET_S,
    MOST_BUDGET_S,
    WorkloadRequest,
    device_choices,
    limits,
    mechanics_only,
    offers,
    preset_of,
    refusal,
)
from kernelviz.core import Device, UsageError, units
from kernelviz.core.workload import AxisValue, Workload, WorkloadAxis, WorkloadPlan, WorkloadPreset
from kernelviz.text import describe_reason
from kernelviz.text.workloads import MECHANICS_ONLY, axis_label
from kernelviz.ui.shared import callbacks, session, view_filters
from kernelviz.ui.shared.text import bullets, plain

STARTED = "workload"
"""Under which kind the session notes the run that it started last."""


def new_run(bench: Bench, workload: Workload) -> None:
    """What can be measured here, what it cannot say, and the form."""
    if workload.name not in bench.workloads.declared():
        st.info(
            "This workload is not installed here: its runs can be read, not measured.", icon=":material/extension_off:"
        )
        return
    choices = device_choices(workload, bench.devices())
    if not choices:
        st.info(
            f"It cannot be measured on this machine: {plain(refusal(workload, bench.devices()) or '')}.",
            icon=":material/memory:",
        )
        return
    with st.expander(
        "Measure here", icon=":material/play_arrow:", key="workload_form", expanded=_open(bench, workload)
    ):
        devices = _devices(workload, choices)
        if mechanics_only(workload, devices[0]):
            st.warning(str(MECHANICS_ONLY), icon=":material/settings:")
        if texts := [limit.text for limit in limits(workload, devices[0])]:
            st.markdown(f"What it cannot say here:\n{bullets(texts)}")
        request = _boxes(workload, devices)
        try:
            plan = bench.workloads.plan(request)
        except UsageError as error:
            st.error(plain(error), icon=":material/error:")
            return
        _start_row(bench, workload, plan)


def _open(bench: Bench, workload: Workload) -> bool:
    """The form is open as long as there is nothing else to see."""
    return not bench.workloads.find(workload.name, limit=1) and not bench.workloads.shipped(workload.name)


def _devices(workload: Workload, choices: tuple[tuple[Device, ...], ...]) -> tuple[Device, ...]:
    """The device or the pair; a box if there are several choices. The address repeats it as `on`."""
    by_key = {"+".join(d.id for d in choice): choice for choice in choices}
    if len(by_key) == 1:
        return choices[0]
    chosen = view_filters.choose(
        st.segmented_control, "Device" if workload.ranks == 1 else "Devices", list(by_key), next(iter(by_key)), key="on",
        format_func=lambda key: " + ".join(f"{d.name} ({d.id})" for d in by_key[key]),
        help="A job of two devices takes both device locks, in the order of their UUIDs.",
    )  # fmt: skip
    return by_key[chosen]


def _boxes(workload: Workload, devices: tuple[Device, ...]) -> WorkloadRequest:
    preset = _preset(workload, devices[0])
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="workload_axes"):
        values = {axis.name: _axis(workload, preset, axis) for axis in workload.axes}
        budget_s = _budget(workload)
    of = offers(workload, devices[0])
    able = [offer.variant.name for offer in of if offer.lack is None and offer.variant.name != workload.baseline]
    usual = [offer.variant.name for offer in of if offer.variant.by_default and offer.variant.name in able]
    captions = {variant.name: variant.caption for variant in workload.variants}
    key = f"workload_variants_{workload.name}"
    given = [name for name in st.query_params.get("variants", "").split(",") if name in able]
    if key not in st.session_state or view_filters.moved("variants"):
        st.session_state[key] = given or usual
    chosen = st.multiselect(
        f"Variants, compared with the baseline {plain(workload.baseline)}", able, key=key,
        format_func=lambda name: f"{name}: {captions[name]}",
        placeholder="only the baseline",
    )  # fmt: skip
    view_filters.keep("variants", ",".join(chosen), ",".join(usual))
    lacking = [f"{offer.variant.name}: {describe_reason(offer.lack)}" for offer in of if offer.lack is not None]
    if lacking:
        st.caption(f"Cannot run on {plain(devices[0].name)}:\n{bullets(lacking)}")
    return WorkloadRequest(
        workload=workload.name,
        variants=tuple(chosen) or (workload.baseline,),
        values=values,
        preset=preset.name,
        devices=tuple(d.id for d in devices),
        budget_s=budget_s,
    )


def _preset(workload: Workload, device: Device) -> WorkloadPreset:
    """The preset; a box if several make sense on the device."""
    default = preset_of(workload, device, None)
    fitting = {p.name: p for p in workload.presets if device.kind in p.device_kinds} or {default.name: default}
    if len(fitting) == 1:
        return default
    name = view_filters.choose(
        st.segmented_control, "Preset", list(fitting), default.name, key="preset",
        format_func=lambda name: fitting[name].title, help="Values of all axes below, which you may change.",
    )  # fmt: skip
    return fitting[name]


def typed(value: AxisValue) -> str:
    """A value as a person types it."""
    return units.typed_size(value) if isinstance(value, int) else value


def _axis(workload: Workload, preset: WorkloadPreset, axis: WorkloadAxis) -> str:
    """The values of an axis as text; the address repeats them as `set_NAME`. Each preset has its own text."""
    name, key = f"set_{axis.name}", f"workload_{workload.name}_{preset.name}_{axis.name}"
    usual = ", ".join(typed(value) for value in preset.values[axis.name])
    if key not in st.session_state or view_filters.moved(name):
        st.session_state[key] = st.query_params.get(name, usual)
    known = f" One or more of {', '.join(axis.choices)}." if axis.choices else " Several: 0, 4, 8 or 2^10..2^20."
    text = st.text_input(plain(axis_label(axis)), key=key, width=190, help=plain(f"{axis.help}{known}"))
    view_filters.write(name, None if text == usual else text)
    return text if text.strip() else usual


def _budget(workload: Workload) -> float:
    key = f"workload_budget_{workload.name}"
    if key not in st.session_state or view_filters.moved("budget"):
        st.session_state[key] = _seconds(st.query_params.get("budget", ""), workload.budget_s)
    budget_s = float(
        st.number_input(
            "Budget each, s", LEAST_BUDGET_S, MOST_BUDGET_S, key=key, step=0.5, width=140,
            help="Time of measuring for each case, more where ten rounds take longer. Starting the process and preparing come on "
            "top.",
        )
    )  # fmt: skip
    view_filters.keep("budget", f"{budget_s:g}", f"{workload.budget_s:g}")
    return budget_s


def _seconds(text: str, default: float) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return default
    return min(max(seconds, LEAST_BUDGET_S), MOST_BUDGET_S) if isfinite(seconds) else default


def _start_row(bench: Bench, workload: Workload, plan: WorkloadPlan) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="workload_start"):
        callbacks.button(
            "Measure", partial(_start, bench, plan, session.owner(), callbacks.actions().activities), key="measure_workload",
            about=workload.name, icon=":material/play_arrow:", type="primary",
            help=plain(f"In a terminal, kernelviz workloads run {workload.name} does the same."),
        )  # fmt: skip
        cases, budgets = len(plan.cases), units.seconds(plan.method.budget_s * len(plan.cases), 3)
        before = bench.workloads.last_duration(workload.name, plan.devices)
        took = (
            ""
            if before is None
            else f" The last run here took {units.seconds(before.seconds, 2)} for "
            f"{units.counted(before.cases, 'case')}."
        )
        st.caption(
            f"{units.counted(cases, 'case')}, {budgets} of measuring (more where ten rounds take longer), plus starting a "
            f"process and preparing, which can take longer than measuring.{took}"
        )


def _start(bench: Bench, plan: WorkloadPlan, owner: str, activities: dict[str, str]) -> None:
    activities[STARTED] = bench.workloads.run(plan, owner=owner)
