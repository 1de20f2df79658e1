"""The strip above the page Bench: the device, its state, its roofs, and what impairs measurements on it."""

from collections.abc import Sequence

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import Conditions, Device, Roof, Run, units
from kernelviz.core.notices import Notice
from kernelviz.text.notices import describe_notice
from kernelviz.ui.shared import live_progress
from kernelviz.ui.shared.live_progress import Activity
from kernelviz.ui.shared.text import plain, when

_CALIBRATION = "bench_calibration"


def device_strip(
    bench: Bench, device: Device, run: Run | None, roofs: Sequence[Roof], calibration: Activity | None
) -> None:
    """One line: device, clock, temperature, power, driver, other processes, roofs; and Calibrate where roofs are missing.

    `calibration`: what `running_calibration` returned before the roofs were read."""
    local = next((d for d in bench.devices() if d.uuid == device.uuid), None)
    facts = [f"**{plain(device.name)}**", *device_facts(device)]
    if local is not None:
        facts += condition_facts(bench.conditions(local.id), device)
    elif run is not None:
        facts.append(f"measured on another machine, {plain(run.environment.host)}, {when(run.created_at)}")
    facts.append(format_roofs(roofs))
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="strip"):
        st.markdown(" · ".join(facts), width="stretch")
        # Roofs that an earlier version measured have no memory level, so they should be measured again.
        missing = local is not None and not any(r.level for r in bench.roofs(local.id))
        if local is not None and local.usable and missing and calibration is None:
            _calibrate_button(bench, local)
    if local is not None:
        notices(bench.notices(local.id))
    if calibration is not None:
        sentence = "Measuring the roofs of this device: bandwidth, arithmetic rates, launches and transfers."
        live_progress.running_activity(bench, *calibration, sentence, key="calibration", box="calibrating")


def running_calibration(bench: Bench) -> Activity | None:
    """The calibration that this browser session started, as long as it runs."""
    return live_progress.activity_of_session(bench, _CALIBRATION)


def notices(entries: Sequence[Notice]) -> None:
    """What impairs measurements on the device, with the remedy. A missing compiler is named beside its variants instead."""
    boxes = {
        "error": (st.error, ":material/error:"),
        "warning": (st.warning, ":material/warning:"),
        "info": (st.info, ":material/info:"),
    }
    for notice in entries:
        if notice.subject != "compiler":
            show, icon = boxes[notice.severity]
            sentence, remedy = describe_notice(notice)
            show(f"{plain(sentence)}. **{plain(remedy)}**", icon=icon)


def _calibrate_button(bench: Bench, device: Device) -> None:
    live_progress.start_button(
        "Calibrate", bench.calibrate, device, kind=_CALIBRATION, key="calibrate", icon=":material/straighten:",
        help="Measures the limits (roofs) of this device: memory bandwidth and arithmetic rates.",
    )  # fmt: skip


def device_facts(device: Device) -> list[str]:
    """Driver and cache of the device."""
    if device.kind == "cpu":
        threads = f"{device.threads} threads" if device.threads else "threads unknown"
        return [threads, f"last-level cache {units.size_bytes(device.last_level_cache_bytes)}"]
    return [f"driver {plain(device.driver or 'unknown')}", f"L2 {units.size_bytes(device.last_level_cache_bytes)}"]


def condition_facts(now: Conditions, device: Device) -> list[str]:
    """The current state of the device. On a GPU, unknown values are listed as unknown."""
    processes = "other processes unknown"
    if now.other_processes is not None:
        processes = f"{now.other_processes} other process{'es' if now.other_processes != 1 else ''}"
    temperature = None if now.temperature_c is None else f"{now.temperature_c:.0f} °C"
    power = None if now.power_w is None else f"{now.power_w:.0f} W"
    clock = (
        None if now.sm_clock_hz is None else f"{'SM ' if device.kind == 'cuda' else ''}{units.clock(now.sm_clock_hz)}"
    )
    if device.kind == "cpu":
        known = [clock, temperature, power, processes if now.other_processes is not None else None]
        return [f for f in known if f] + [plain(r) for r in now.event_reasons]
    facts = [clock or "SM clock unknown", temperature or "temperature unknown", power or "power unknown", processes]
    return facts + [f"**{plain(r)}**" for r in now.event_reasons]


def format_roofs(roofs: Sequence[Roof]) -> str:
    """When the roofs were measured, or that they were not measured."""
    stamps = [r.measured_at for r in roofs if r.measured_at]
    if not roofs:
        return "roofs **not measured**"
    return f"roofs measured {when(max(stamps, default=None))}"
