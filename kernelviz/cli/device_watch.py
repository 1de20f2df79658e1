"""`kernelviz device --watch`: the telemetry of a device, one line each second."""

import json
import sys
from contextlib import suppress
from datetime import datetime

import msgspec

from kernelviz.bench import Bench
from kernelviz.cli import console
from kernelviz.core import Device, Sample, units
from kernelviz.metrics.alerts import Thresholds, alert_state
from kernelviz.text import describe_alerts


def watch(bench: Bench, device_id: str | None, thresholds: Thresholds, *, as_json: bool) -> None:
    """Print samples until Ctrl-C, which is the normal end (exit code 0). Each alert is printed on stderr when it begins.

    `as_json`: one JSON object on each line. Errors: UnknownName.
    """
    device = bench.device(device_id or bench.default_device())
    active: set[str] = set()
    with suppress(KeyboardInterrupt):
        for sample in bench.machine.watch(device.id):
            text = json.dumps(msgspec.to_builtins(sample)) if as_json else line(device, sample)
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
            state = alert_state(bench.machine.samples(device.id), thresholds)
            alerts = {name for name, is_on in (("busy", state.too_idle), ("grown", state.growing)) if is_on}
            if alerts - active:
                for sentence in describe_alerts(device, state, thresholds):
                    console.err().print(f"! {sentence}", style="yellow")
            active = alerts


def line(device: Device, sample: Sample) -> str:
    """One sample on one line, each figure with its unit. A figure that the device does not report is "unknown".

    >>> device = Device(id="cpu", kind="cpu", name="x", uuid="x")
    >>> line(device, Sample(at_s=0.0, busy_fraction=0.5, used_bytes=2**30, total_bytes=2**31))[10:]
    'load 50 %  memory 1.00 GiB of 2.00 GiB  clock unknown  temperature unknown'
    """
    parts = [f"{datetime.fromtimestamp(sample.at_s):%H:%M:%S}"]
    memory = f"memory {units.size_bytes(sample.used_bytes)} of {units.size_bytes(sample.total_bytes)}"
    clock = units.clock(sample.sm_clock_hz)
    heat = "temperature unknown" if sample.temperature_c is None else f"{sample.temperature_c:.0f} °C"
    if device.kind == "cpu":
        return "  ".join([*parts, f"load {units.percent(sample.busy_fraction, 0)}", memory, clock, heat])
    parts += [
        f"SMs busy {units.percent(sample.busy_fraction, 0)}",
        f"memory busy {units.percent(sample.memory_busy_fraction, 0)}",
        memory,
        f"PCIe to {_traffic(sample.to_device_bytes_per_s, sample)} from {_traffic(sample.from_device_bytes_per_s, sample)}",
        f"SM {clock}",
        f"memory {units.clock(sample.memory_clock_hz)}",
        "power unknown" if sample.power_w is None else f"{sample.power_w:.0f} W",
        heat,
        *sample.event_reasons,
    ]
    return "  ".join([*parts, "measuring"] if sample.running else parts)


def _traffic(rate: float | None, sample: Sample) -> str:
    return ("not asked" if sample.running else "unknown") if rate is None else units.rate(rate, "B/s", 3)
