"""The activity panels of the page Device: what the device reports now and in the last hour, and the user's alerts."""

from collections import Counter
from collections.abc import Sequence

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import Device, Sample, units
from kernelviz.metrics.alerts import AlertState, Thresholds, alert_state
from kernelviz.plots import monitor
from kernelviz.plots.tiles import Tile
from kernelviz.text.alerts import describe_alerts
from kernelviz.ui.device import text
from kernelviz.ui.shared import session, view_filters
from kernelviz.ui.shared.text import plain
from kernelviz.ui.shared.tiles import draw

WINDOWS = {"5 min": 300.0, "15 min": 900.0, "1 h": 3600.0}
_EVERY_S = 2.0
_EVERY_MEASURING_S = 10.0
"""While a CPU is measured: a redraw takes 0.05 s of the CPU that is measured."""


def window_control() -> float:
    """How many seconds the charts show."""
    view_filters.seed("window", list(WINDOWS), "5 min")
    window = st.segmented_control("Show the last", list(WINDOWS), key="window", required=True)
    view_filters.keep("window", window, "5 min")
    return WINDOWS[window or "5 min"]


def threshold_boxes() -> Thresholds:
    """The user's alert thresholds."""
    default = Thresholds()
    busy = _threshold(
        "Alert: utilisation below, %", "busy", default.least_busy_fraction * 100, 100.0, 5.0, text.LOW_UTILISATION_HELP
    )
    grows = _threshold(
        "Alert: memory growth above, GiB",
        "grows",
        default.most_growth_bytes / 2**30,
        1024.0,
        0.5,
        text.MEMORY_GROWTH_HELP,
    )
    return Thresholds(least_busy_fraction=busy / 100, most_growth_bytes=grows * 2**30)


def _threshold(label: str, key: str, default: float, high: float, step: float, explanation: str) -> float:
    """A number from 0 to `high`, kept in the session, and in the address unless it is the default."""
    if key not in st.session_state:
        st.session_state[key] = _from_address(key, default, high)
    value: float = st.number_input(label, 0.0, high, step=step, key=key, format="%g", width=230, help=explanation)
    view_filters.keep(key, f"{value:g}", f"{default:g}")
    return value


def _from_address(key: str, default: float, high: float) -> float:
    param = st.query_params.get(key)
    if param is None:
        return default
    try:
        value = float(param)
    except ValueError:
        value = float("nan")
    if 0 <= value <= high:
        return value
    st.caption(f":orange[{key} {plain(repr(param))} is not a number from 0 to {high:g}: using {default:g}]")
    return default


def activity(bench: Bench, device: Device, window_s: float, thresholds: Thresholds) -> None:
    """State, tiles, alerts and charts; they redraw themselves while the page is open."""
    samples = bench.machine.samples(device.id)
    slow = device.kind == "cpu" and bool(samples) and samples[-1].running

    @st.fragment(run_every=_EVERY_MEASURING_S if slow else _EVERY_S, key="live")
    def live() -> None:
        samples = session.bench().machine.samples(device.id)
        if device.kind == "cpu" and samples and samples[-1].running != slow:
            st.rerun()
        _state_and_tiles(device, samples[-1] if samples else None)
        _alerts(device, alert_state(samples, thresholds), thresholds)
        figure = monitor.reports_by_time(samples, gpu=device.kind == "cuda", window_s=window_s)
        st.plotly_chart(figure, key="reports", config=view_filters.CHART, alt=_alt(device, samples))
        _caption(device, samples, window_s)

    live()


def how_to_read(device: Device) -> None:
    """What the reported quantities mean, and how often they are read."""
    quantities = (text.LOAD,) if device.kind == "cpu" else (text.BUSY, text.PCIE)
    with st.expander("How to read these figures", key="how_read", icon=":material/help:"):
        st.markdown("\n".join(f"- {sentence}" for sentence in (*quantities, text.SAMPLED, text.ALERTS)))


def tiles(device: Device, now: Sample | None) -> tuple[tuple[str, str, str], ...]:
    """Label, value with unit, and a second value of what the device reports now; unknown values say so."""
    sample = now or Sample(at_s=0.0)
    memory = f"of {units.size_bytes(sample.total_bytes)}"
    if device.kind == "cpu":
        cores = sample.cores_fraction
        most = f"most loaded core {units.percent(max(cores), 0)}" if cores else "load of each core unknown"
        return (
            ("Load", units.percent(sample.busy_fraction, 0), most),
            ("Memory in use", units.size_bytes(sample.used_bytes), memory),
            ("Clock", units.clock(sample.sm_clock_hz), "reported by the operating system"),
            ("Temperature", _temperature(sample), "hottest sensor"),
        )
    power = "unknown" if sample.power_w is None else f"{sample.power_w:.0f} W"
    memory_clock = f"memory {units.clock(sample.memory_clock_hz)}"
    traffic = f"from the device {_traffic(sample, sample.from_device_bytes_per_s)}"
    return (
        ("SMs busy", units.percent(sample.busy_fraction, 0), f"memory {units.percent(sample.memory_busy_fraction, 0)}"),
        ("Memory in use", units.size_bytes(sample.used_bytes), memory),
        ("PCIe to the device", _traffic(sample, sample.to_device_bytes_per_s), traffic),
        ("SM clock", units.clock(sample.sm_clock_hz), memory_clock),
        ("Power", power, _temperature(sample)),
        ("Clock limited by", ", ".join(sample.event_reasons) or "nothing", "as the driver reports it"),
    )


def _temperature(sample: Sample) -> str:
    return "unknown" if sample.temperature_c is None else f"{sample.temperature_c:.0f} °C"


def _traffic(sample: Sample, rate: float | None) -> str:
    if rate is None:
        return "not read" if sample.running else "unknown"
    return units.rate(rate, "B/s", 3)


def _state_and_tiles(device: Device, now: Sample | None) -> None:
    if now is not None and now.running:
        st.markdown(":blue[● **A measurement is running**], so the values below are those of a device under load.")
    else:
        st.markdown(":gray[○ No measurement is running]")
    draw([Tile(*tile) for tile in tiles(device, now)])


def _alerts(device: Device, state: AlertState, thresholds: Thresholds) -> None:
    # In a container of their own: a new alert must not move the chart, which would then be drawn from scratch.
    with st.container(key="alerts", gap="small"):
        for sentence in describe_alerts(device, state, thresholds):
            st.warning(plain(sentence), icon=":material/notifications_active:")


def _caption(device: Device, samples: Sequence[Sample], window_s: float) -> None:
    recent = [s for s in samples if s.at_s > samples[-1].at_s - window_s] if samples else []
    sentences = [text.SHADED]
    if len(recent) > monitor.MOST_POINTS:
        sentences.append(f"Each point is the mean of {-(-len(recent) // monitor.MOST_POINTS)} s.")
    _, unknown = monitor.panels(recent, gpu=device.kind == "cuda")
    if unknown and recent:
        sentences.append(f"Not reported by this device: {', '.join(unknown)}.")
    reasons = Counter(r for s in recent for r in s.event_reasons)
    if reasons:
        durations = ", ".join(f"{reason} {count} s" for reason, count in reasons.most_common())
        sentences.append(f"The driver limited the clock: {durations} (of {len(recent)} s).")
    st.caption(plain(" ".join(sentences)))


def _alt(device: Device, samples: Sequence[Sample]) -> str:
    now = "; ".join(f"{name} {value}" for name, value, _ in tiles(device, samples[-1])) if samples else "no sample yet"
    return f"What {device.name} reported over time. Current values: {now}."
