"""The strip above the page Bench: the device, its state, its roofs, and what impairs measurements on it."""

from collections.abc import Callable, Sequence

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import Conditions, Device, Roof, Run, units
from kernelviz.core.cache_size import CacheSize
from kernelviz.core.notices import Notice
from kernelviz.metrics.roof_checks import RoofRefusal, checked
from kernelviz.text import describe_notice, format_cache_size, format_roof_name
from kernelviz.text.text import sentence_case
from kernelviz.ui.shared import live_progress
from kernelviz.ui.shared.live_progress import Activity
from kernelviz.ui.shared.text import plain, when

CALIBRATION = "bench_calibration"
"""The kind under which the session remembers the calibration that this strip started."""


def device_strip(
    bench: Bench,
    device: Device,
    run: Run | None,
    roofs: Sequence[Roof],
    calibration: Activity | None,
    offer: Callable[[], None] | None = None,
) -> None:
    """One line: device, clock, temperature, power, driver, other processes, roofs; Calibrate where roofs are missing or refused.

    `calibration`: the calibration of this session, read before the roofs. `offer`: draws a button at the end of the line."""
    local = next((d for d in bench.devices() if d.uuid == device.uuid), None)
    facts = [f"**{plain(device.name)}**", *device_facts(device, bench.machine.last_level_cache(device))]
    if local is not None:
        facts += condition_facts(bench.conditions(local.id), device)
    elif run is not None:
        facts.append(f"measured on another machine ({plain(run.environment.host)}), {when(run.created_at)}")
    refused = bench.machine.refused_roofs(local.id) if local is not None else checked(roofs).refused
    facts.append(format_roofs(roofs, refused))
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="strip"):
        st.markdown(" · ".join(facts), width="stretch")
        # Roofs that an earlier version measured have no memory level, so they should be measured again.
        missing = local is not None and (bool(refused) or not any(r.level for r in bench.roofs(local.id)))
        if local is not None and local.usable and missing and calibration is None:
            live_progress.start_button(
                "Calibrate", bench.calibrate, local, kind=CALIBRATION, key="calibrate", icon=":material/straighten:",
                help="Measures the limits (roofs) of this device: memory bandwidth and arithmetic rates.",
            )  # fmt: skip
        if offer is not None:
            offer()
    if local is not None:
        notices(bench.notices(local.id), on_one_line=True)
    if calibration is not None:
        sentence = "Measuring the roofs of this device: bandwidth, arithmetic rates, launches and transfers."
        live_progress.running_activity(bench, *calibration, sentence, key="calibration", box="calibrating")


def notices(entries: Sequence[Notice], *, on_one_line: bool = False) -> None:
    """What impairs measurements on the device, with the remedy. A missing compiler is named beside its variants instead.

    `on_one_line`: without a frame, except for an error, so that the results below stay in sight."""
    for notice in entries:
        if notice.subject == "compiler":
            continue
        sentence, remedy = (str(sentence_case(text)) for text in describe_notice(notice))
        text = f"{plain(sentence)}." + (f" **{plain(remedy)}.**" if remedy else "")
        if on_one_line and notice.severity != "error":
            colour = "orange" if notice.severity == "warning" else "blue"
            st.markdown(f":{colour}[:material/{notice.severity}:] :small[{text}]")
        else:
            show = getattr(st, notice.severity)  # st.error, st.warning or st.info
            show(text, icon=f":material/{notice.severity}:")


def device_facts(device: Device, size: CacheSize | None) -> list[str]:
    """Driver and cache of the device."""
    cache = format_cache_size(size)
    if device.kind == "cpu":
        return [
            units.counted(device.threads, "thread") if device.threads else "threads unknown",
            f"last-level cache {cache}",
        ]
    return [f"driver {plain(device.driver or 'unknown')}", f"L2 {cache}"]


def condition_facts(now: Conditions, device: Device) -> list[str]:
    """The current state of the device. On a GPU, unknown values are listed as unknown."""
    gpu = device.kind == "cuda"
    count = now.other_processes
    clock = None if now.sm_clock_hz is None else f"{'SM ' if gpu else ''}{units.clock(now.sm_clock_hz)}"
    values = {
        "SM clock": clock,
        "temperature": None if now.temperature_c is None else f"{now.temperature_c:.0f} °C",
        "power": None if now.power_w is None else f"{now.power_w:.0f} W",
        "other processes": None if count is None else f"{count} other process{'es' if count != 1 else ''}",
    }
    facts = [value or f"{name} unknown" for name, value in values.items() if value or gpu]
    return facts + [f"**{plain(r)}**" if gpu else plain(r) for r in now.event_reasons]


def format_roofs(roofs: Sequence[Roof], refused: Sequence[RoofRefusal] = ()) -> str:
    """When the roofs were measured, or that they were not measured, and which of them cannot be used."""
    names = ", ".join(dict.fromkeys(format_roof_name(r.roof) for r in refused[:3])) + (
        ", …" if len(refused) > 3 else ""
    )
    unusable = f"; **{len(refused)} cannot be used** ({plain(names)}, see Device)" if refused else ""
    if not roofs:
        return f"roofs **not measured**{unusable}"
    return f"roofs measured {when(max((r.measured_at for r in roofs if r.measured_at), default=None))}{unusable}"
