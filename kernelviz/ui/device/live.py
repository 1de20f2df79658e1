"""The activity panels of the page Device: what the device reports now and in the last hour, and the user's alerts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import Device, Sample, units
from kernelviz.metrics.alerts import Thresholds, alert_state
from kernelviz.plots import monitor
from kernelviz.text import Tile, describe_alerts
from kernelviz.text.events import describe_under_way
from kernelviz.text.text import sentence_case
from kernelviz.ui.shared import address_messages, charts, session, view_filters
from kernelviz.ui.shared.text import plain
from kernelviz.ui.shared.tiles import draw

WINDOWS = {"5 min": 300.0, "15 min": 900.0, "1 h": 3600.0}
_EVERY_S = 2.0
_EVERY_MEASURING_S = 10.0
"""While a CPU is measured: a redraw takes 0.05 s of the CPU that is measured."""
_QUANTITIES = {
    "cuda": """
- **SMs busy** is the share of the driver's last sampling period in which at least one kernel ran, and **memory** the share
  in which memory was read or written (NVML). One busy thread counts as much as a full GPU, so this is not efficiency.
- **PCIe** counters are not read during a measurement, because each reading takes NVML 20 ms.""",
    "cpu": """
- **Load** is the share of the last second in which a core was not idle (psutil). **Memory in use** is that of the whole
  machine.""",
}
_SAMPLING = """
- The device is sampled once a second, for all open pages together. Sampling stops if no page was open for three minutes and
  nothing is measured.
- The alert on **low utilisation** uses the mean of the last 30 s and appears only during a run. **Memory growth** is the lowest
  value of the last minute minus the lowest value of the first minute, over ten minutes.
"""


def window_control() -> float:
    """How many seconds the charts show."""
    return WINDOWS[view_filters.choose(st.segmented_control, "Show the last", list(WINDOWS), "5 min", key="window")]


def threshold_boxes() -> Thresholds:
    """The user's alert thresholds."""
    default = Thresholds()
    busy = _threshold(
        "Alert: utilisation below, %", "busy", default.least_busy_fraction * 100, 100.0, 5.0,
        "An alert appears if the mean utilisation of the last 30 s of a run is below this.",
    )  # fmt: skip
    grows = _threshold(
        "Alert: memory growth above, GiB", "grows", default.most_growth_bytes / 2**30, 1024.0, 0.5,
        "An alert appears if the memory in use grew by more than this within ten minutes.",
    )  # fmt: skip
    return Thresholds(least_busy_fraction=busy / 100, most_growth_bytes=grows * 2**30)


def _threshold(label: str, key: str, default: float, high: float, step: float, explanation: str) -> float:
    """A number from 0 to `high`, kept in the session, and in the address unless it is the default."""
    if key not in st.session_state or view_filters.moved(key):
        st.session_state[key] = _from_address(key, default, high)
    value: float = st.number_input(
        label, 0.0, high, step=step, key=key, format="%g", width=230, help=explanation,
        on_change=address_messages.remove_all,
    )  # fmt: skip
    address_messages.draw(key)
    view_filters.keep(key, f"{value:g}", f"{default:g}")
    return value


def _from_address(key: str, default: float, high: float) -> float:
    address_messages.remove(key)
    param = st.query_params.get(key)
    if param is None:
        return default
    with suppress(ValueError):
        if 0 <= (value := float(param)) <= high:
            return value
    address_messages.store(key, f"In the address, {key} {param!r} is not a number from 0 to {high:g}", default)
    return default


def activity(bench: Bench, device: Device, window_s: float, thresholds: Thresholds) -> None:
    """State, tiles, alerts and charts; they redraw themselves while the page is open."""
    samples = bench.machine.samples(device.id)
    slow = device.kind == "cpu" and bool(samples) and samples[-1].running

    @st.fragment(run_every=_EVERY_MEASURING_S if slow else _EVERY_S, key="live")
    def live() -> None:
        samples = session.bench().machine.samples(device.id)
        newest = samples[-1] if samples else None
        if device.kind == "cpu" and newest is not None and newest.running != slow:
            st.rerun()
        now = session.bench().under_way(device.id)
        if now is not None:
            own = now.owner == session.owner()
            said = describe_under_way(now.name, now.op, now.done, now.total, own=own, remaining_s=now.remaining_s)
            st.markdown(f":blue[● **{plain(sentence_case(said))}**]")
        elif newest is not None and newest.running:
            st.markdown(":blue[● **A measurement is running**]")
        else:
            st.markdown(":gray[○ No measurement is running]")
        draw([Tile(*tile) for tile in tiles(device, newest)])
        # In a container of their own: a new alert must not move the chart, which would then be drawn from scratch.
        with st.container(key="alerts", gap="small"):
            for sentence in describe_alerts(device, alert_state(samples, thresholds), thresholds):
                st.warning(plain(sentence), icon=":material/notifications_active:")
        values = "; ".join(f"{name} {value}" for name, value, _ in tiles(device, newest)) if newest else "no sample yet"
        charts.draw(
            monitor.reports_by_time(samples, gpu=device.kind == "cuda", window_s=window_s), key="reports",
            alt=f"What {device.name} reported over time. Current values: {values}.",
            picture=charts.picture("What the device reports", device.name, datetime.now(UTC).isoformat()),
        )  # fmt: skip
        st.caption(plain(" ".join(_remarks(device, samples, window_s))))

    live()


def how_to_read(device: Device) -> None:
    """What the reported quantities mean, and how often they are read."""
    with st.expander("How to read these figures", key="how_read", icon=":material/help:"):
        st.markdown(_QUANTITIES[device.kind] + _SAMPLING)


def tiles(device: Device, now: Sample | None) -> tuple[tuple[str, str, str], ...]:
    """Label, value with unit, and a second value of what the device reports now; unknown values say so."""
    sample = now or Sample(at_s=0.0)
    memory = f"of {units.size_bytes(sample.total_bytes)}"
    temperature = "unknown" if sample.temperature_c is None else f"{sample.temperature_c:.0f} °C"
    if device.kind == "cpu":
        cores = sample.cores_fraction
        most_loaded = f"most loaded core {units.percent(max(cores), 0)}" if cores else "load of each core unknown"
        return (
            ("Load", units.percent(sample.busy_fraction, 0), most_loaded),
            ("Memory in use", units.size_bytes(sample.used_bytes), memory),
            ("Clock", units.clock(sample.sm_clock_hz), "reported by the operating system"),
            ("Temperature", temperature, "hottest sensor"),
        )
    return (
        ("SMs busy", units.percent(sample.busy_fraction, 0), f"memory {units.percent(sample.memory_busy_fraction, 0)}"),
        ("Memory in use", units.size_bytes(sample.used_bytes), memory),
        ("PCIe to the device", _traffic(sample, sample.to_device_bytes_per_s),
         f"from the device {_traffic(sample, sample.from_device_bytes_per_s)}"),
        ("SM clock", units.clock(sample.sm_clock_hz), f"memory {units.clock(sample.memory_clock_hz)}"),
        ("Power", "unknown" if sample.power_w is None else f"{sample.power_w:.0f} W", temperature),
        ("Clock limited by", ", ".join(sample.event_reasons) or "nothing", "as the driver reports it"),
    )  # fmt: skip


def _traffic(sample: Sample, rate: float | None) -> str:
    if rate is None:
        return "not read" if sample.running else "unknown"
    return units.rate(rate, "B/s", 3)


def _remarks(device: Device, samples: Sequence[Sample], window_s: float) -> Iterator[str]:
    """What the shading means, what a point is, what the device does not report, and why the driver limited the clock."""
    recent = [s for s in samples if s.at_s > samples[-1].at_s - window_s]
    yield "Shaded: a measurement was running."
    if len(recent) > monitor.MOST_POINTS:
        yield f"Each point is the mean of {-(-len(recent) // monitor.MOST_POINTS)} s."
    _, unknown = monitor.panels(recent, gpu=device.kind == "cuda")
    if unknown and recent:
        yield f"Not reported by this device: {', '.join(unknown)}."
    reasons = Counter(r for s in recent for r in s.event_reasons)
    if reasons:
        durations = ", ".join(f"{reason} {count} s" for reason, count in reasons.most_common())
        yield f"The driver limited the clock: {durations} (of {len(recent)} s)."
