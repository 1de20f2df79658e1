"""The live part of the page Device: what the device reports now and did in the last hour, and the user's alerts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import units
from kernelviz.core.device_sample import Sample
from kernelviz.core.run import Device
from kernelviz.metrics.alerts import Standing, Thresholds, alert_words, standing
from kernelviz.plots import monitor
from kernelviz.plots.tiles import Tile
from kernelviz.ui.device import text as words
from kernelviz.ui.shared import session, view_filters
from kernelviz.ui.shared.text import plain
from kernelviz.ui.shared.tiles import draw

WINDOWS = {"5 min": 300.0, "15 min": 900.0, "1 h": 3600.0}
_EVERY_S = 2.0
_EVERY_MEASURING_S = 10.0
"""On a processor that is being measured: a redraw of this part takes it 0.05 s."""


def show(bench: Bench, device: Device) -> None:
    """The section: thresholds, tiles, charts; it redraws itself while the page is open."""
    st.markdown("##### Now and in the last hour")
    with st.container(horizontal=True, vertical_alignment="top", gap="small", key="live_choices"):
        view_filters.seed("window", list(WINDOWS), "5 min")
        window = st.segmented_control("Show the last", list(WINDOWS), key="window", required=True)
        thresholds = _thresholds()
    view_filters.keep("window", window, "5 min")
    samples = bench.machine.samples(device.id)
    slow = device.kind == "cpu" and bool(samples) and samples[-1].running
    _live(device, WINDOWS[window or "5 min"], thresholds, slow=slow)
    said = (words.LOAD,) if device.kind == "cpu" else (words.BUSY, words.PCIE)
    with st.expander("How these are read", key="how_read", icon=":material/help:"):
        st.markdown("\n".join(f"- {sentence}" for sentence in (*said, words.SAMPLED, words.ALERTS)))


def _live(device: Device, window_s: float, thresholds: Thresholds, *, slow: bool) -> None:
    @st.fragment(run_every=_EVERY_MEASURING_S if slow else _EVERY_S, key="live")
    def live() -> None:
        samples = session.bench().machine.samples(device.id)
        if device.kind == "cpu" and samples and samples[-1].running != slow:
            st.rerun()
        _tiles(device, samples[-1] if samples else None)
        _alerts(device, standing(samples, thresholds), thresholds)
        figure = monitor.reports_by_time(samples, gpu=device.kind == "cuda", window_s=window_s)
        st.plotly_chart(figure, key="reports", config=view_filters.CHART, alt=_alt(device, samples))
        _below(device, samples, window_s)

    live()


def _thresholds() -> Thresholds:
    default = Thresholds()
    busy = _number("Alert below, % busy", "busy", default.least_busy_fraction * 100, 0.0, 100.0, 5.0)
    grows = _number("Alert above, GiB grown", "grows", default.most_growth_bytes / 2**30, 0.0, 1024.0, 0.5)
    return Thresholds(least_busy_fraction=busy / 100, most_growth_bytes=grows * 2**30)


def _number(label: str, key: str, default: float, low: float, high: float, step: float) -> float:
    """A threshold: kept in the session, and in the address unless it is at its default."""
    if key not in st.session_state:
        st.session_state[key] = _asked(key, default, low, high)
    value: float = st.number_input(label, low, high, step=step, key=key, format="%g", width=180, help=words.ALERTS)
    view_filters.keep(key, f"{value:g}", f"{default:g}")
    return value


def _asked(key: str, default: float, low: float, high: float) -> float:
    text = st.query_params.get(key)
    if text is None:
        return default
    try:
        asked = float(text)
    except ValueError:
        asked = float("nan")
    if low <= asked <= high:
        return asked
    st.caption(f":orange[{key} {plain(repr(text))} is no number from {low:g} to {high:g}: using {default:g}]")
    return default


def tiles(device: Device, now: Sample | None) -> tuple[tuple[str, str, str], ...]:
    """Name, value with unit, and a second value, of what the device reports now; unknown stays unknown."""
    sample = now or Sample(at_s=0.0)
    memory = f"of {units.size_bytes(sample.total_bytes)}"
    if device.kind == "cpu":
        cores = sample.cores_fraction
        most = f"most loaded core {units.percent(max(cores), 0)}" if cores else "each core unknown"
        return (
            ("Load", units.percent(sample.busy_fraction, 0), most),
            ("Memory in use", units.size_bytes(sample.used_bytes), memory),
            ("Clock", units.clock(sample.sm_clock_hz), "as the kernel reports it"),
            ("Temperature", _temperature(sample), "hottest sensor"),
        )
    power = "unknown" if sample.power_w is None else f"{sample.power_w:.0f} W"
    memory_clock = f"memory {units.clock(sample.memory_clock_hz)}"
    traffic = f"from it {_traffic(sample, sample.from_device_bytes_per_s)}"
    return (
        ("SMs busy", units.percent(sample.busy_fraction, 0), f"memory {units.percent(sample.memory_busy_fraction, 0)}"),
        ("Memory in use", units.size_bytes(sample.used_bytes), memory),
        ("PCIe to the device", _traffic(sample, sample.to_device_bytes_per_s), traffic),
        ("SM clock", units.clock(sample.sm_clock_hz), memory_clock),
        ("Power", power, _temperature(sample)),
        ("Clock held by", ", ".join(sample.event_reasons) or "nothing", "the driver's event reasons"),
    )


def _temperature(sample: Sample) -> str:
    return "unknown" if sample.temperature_c is None else f"{sample.temperature_c:.0f} °C"


def _traffic(sample: Sample, rate: float | None) -> str:
    if rate is None:
        return "not asked" if sample.running else "unknown"
    return units.rate(rate, "B/s", 3)


def _tiles(device: Device, now: Sample | None) -> None:
    if now is not None and now.running:
        st.markdown(":blue[● **measuring**]: figures below are of a device at work.")
    else:
        st.markdown(":gray[○ nothing is being measured]")
    draw([Tile(*told) for told in tiles(device, now)])


def _alerts(device: Device, found: Standing, thresholds: Thresholds) -> None:
    # In a place of their own: an alert that comes would move the chart, which is then drawn anew.
    with st.container(key="alerts", gap="small"):
        for sentence in alert_words(device, found, thresholds):
            st.warning(plain(sentence), icon=":material/notifications_active:")


def _below(device: Device, samples: Sequence[Sample], window_s: float) -> None:
    recent = [s for s in samples if s.at_s > samples[-1].at_s - window_s] if samples else []
    said = [words.SHAPES]
    if len(recent) > monitor.MOST_POINTS:
        said.append(f"Each point is the mean of {-(-len(recent) // monitor.MOST_POINTS)} s.")
    _, unknown = monitor.panels(recent, gpu=device.kind == "cuda")
    if unknown and recent:
        said.append(f"Not reported here: {', '.join(unknown)}.")
    reasons = Counter(r for s in recent for r in s.event_reasons)
    if reasons:
        told = ", ".join(f"{reason} {count} s" for reason, count in reasons.most_common())
        said.append(f"The driver held the clock by: {told} of {len(recent)} s.")
    st.caption(plain(" ".join(said)))


def _alt(device: Device, samples: Sequence[Sample]) -> str:
    now = "; ".join(f"{name} {value}" for name, value, _ in tiles(device, samples[-1])) if samples else "no sample yet"
    return f"What {device.name} reported over time. Now: {now}."
