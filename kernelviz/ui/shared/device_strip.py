"""The trust strip: on what the figures were measured, in which state it is, and against which roofs they are held."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from kernelviz.bench import Bench, Progress
from kernelviz.core import units
from kernelviz.core.result import Conditions
from kernelviz.core.run import Device, Roof, Run
from kernelviz.hardware.notice import Notice
from kernelviz.ui.shared import live_progress
from kernelviz.ui.shared.text import plain, when

_CALIBRATION = "bench_calibration"


def strip(
    bench: Bench, device: Device, run: Run | None, roofs: Sequence[Roof], calibrating: tuple[str, Progress] | None
) -> None:
    """One line: device, clocks, temperature, power, driver, other processes, roofs; a button where roofs are missing.

    `calibrating`: what `calibration` returned before the roofs were read."""
    local = next((d for d in bench.devices() if d.uuid == device.uuid), None)
    facts = [f"**{plain(device.name)}**", *device_facts(device)]
    if local is not None:
        facts += condition_facts(bench.conditions(local.id), device)
    elif run is not None:
        facts.append(f"measured on {plain(run.environment.host)} {when(run.created_at)}, not on this machine")
    facts.append(roof_words(roofs))
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="strip"):
        st.markdown(" · ".join(facts), width="stretch")
        # Roofs of an earlier version know no levels: they are offered to be measured again.
        lacking = local is not None and not any(r.level for r in bench.roofs(local.id))
        can = local is not None and local.usable and lacking and calibrating is None
        if can and local is not None:
            _calibrate_button(bench, local)
    if local is not None:
        notices(bench.notices(local.id))
    if calibrating is not None:
        words = "Measuring the roofs of this device: streams of bytes, arithmetic, launches and transfers."
        live_progress.job(bench, *calibrating, words, key="calibration", box="calibrating")


def calibration(bench: Bench) -> tuple[str, Progress] | None:
    """The calibration that this browser session began, while it goes on: its name and where it stands."""
    return live_progress.begun(bench, _CALIBRATION)


def notices(found: Sequence[Notice]) -> None:
    """What hampers measuring on the device, with its remedy; compilers are said where their variants are greyed out."""
    boxes = {
        "error": (st.error, ":material/error:"),
        "warning": (st.warning, ":material/warning:"),
        "info": (st.info, ":material/info:"),
    }
    for notice in found:
        if notice.subject != "compiler":
            show, icon = boxes[notice.severity]
            show(f"{plain(notice.sentence)}. **{plain(notice.remedy)}**", icon=icon)


def _calibrate_button(bench: Bench, device: Device) -> None:
    live_progress.button(
        "Calibrate", bench.calibrate, device, job=_CALIBRATION, key="calibrate", icon=":material/straighten:",
        help="Measure this device's roofs.",
    )  # fmt: skip


def device_facts(device: Device) -> list[str]:
    """What the driver says of the device."""
    if device.kind == "cpu":
        threads = f"{device.threads} threads" if device.threads else "threads unknown"
        return [threads, f"last-level cache {units.size_bytes(device.last_level_cache_bytes)}"]
    return [f"driver {plain(device.driver or 'unknown')}", f"L2 {units.size_bytes(device.last_level_cache_bytes)}"]


def condition_facts(now: Conditions, device: Device) -> list[str]:
    """Its state now; on a GPU every fact is named, also when it is unknown."""
    others = "other processes unknown"
    if now.other_processes is not None:
        others = f"{now.other_processes} other process{'es' if now.other_processes != 1 else ''}"
    temperature = None if now.temperature_c is None else f"{now.temperature_c:.0f} °C"
    power = None if now.power_w is None else f"{now.power_w:.0f} W"
    clock = (
        None if now.sm_clock_hz is None else f"{'SM ' if device.kind == 'cuda' else ''}{units.clock(now.sm_clock_hz)}"
    )
    if device.kind == "cpu":
        known = [clock, temperature, power, others if now.other_processes is not None else None]
        return [f for f in known if f] + [plain(r) for r in now.event_reasons]
    facts = [clock or "SM clock unknown", temperature or "temperature unknown", power or "power unknown", others]
    return facts + [f"**{plain(r)}**" for r in now.event_reasons]


def roof_words(roofs: Sequence[Roof]) -> str:
    """When the roofs were measured, or that they were not."""
    stamps = [r.measured_at for r in roofs if r.measured_at]
    if not roofs:
        return "roofs **not calibrated**"
    return f"roofs measured {when(max(stamps, default=None))}"
