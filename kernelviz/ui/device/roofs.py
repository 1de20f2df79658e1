"""The roofs on the page Device: calibrate, what was measured against what is promised, and how roofs moved."""

from __future__ import annotations

import streamlit as st

from kernelviz.bench import Bench, Progress
from kernelviz.core import units
from kernelviz.core.run import LIVING, Device, Roof
from kernelviz.hardware.datasheet import DataSheet, datasheet
from kernelviz.hardware.datasheet_shares import DataSheetShare, data_sheet_shares
from kernelviz.metrics.calibrations import Calibration, Move, change_words, moves
from kernelviz.metrics.roofs import roof_name, roof_value
from kernelviz.tables.column import Column
from kernelviz.ui.device import text as words
from kernelviz.ui.shared import live_progress, table, view_filters
from kernelviz.ui.shared.text import plain, when

_PARAM = "calibration"


def show(bench: Bench, device: Device) -> None:
    """Button, progress, the roofs against the sheet."""
    asked = live_progress.asked_for(bench, _PARAM)
    going = asked is not None and asked[1].status in LIVING
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="roofs_head"):
        st.markdown("##### Roofs: measured and promised", width="content")
        live_progress.button(
            "Calibrate", bench.calibrate, device, job=_PARAM, key="calibrate_device", icon=":material/straighten:",
            disabled=going or not device.usable, help=words.CALIBRATE_HELP,
        )  # fmt: skip
    if asked is not None:
        _asked(bench, *asked, device)
    roofs, sheet = bench.roofs(device.id), datasheet(device.name)
    if not roofs and not going:
        st.info(words.NOT_CALIBRATED, icon=":material/straighten:")
    lines = data_sheet_shares(roofs, sheet)
    if lines:
        columns = [c for c in _SHARES_OF_SHEET if sheet is not None or c.heading not in _OF_SHEET]
        table.show(columns, lines, key="held", alt="Measured roofs against the data sheet", height="content")
        if sheet is not None:
            st.markdown(words.SHARES)
    _sheet(device, sheet)


def _asked(bench: Bench, name: str, progress: Progress, device: Device) -> None:
    if progress.status in LIVING:
        said = f"Measuring the roofs of {device.name}: {progress.done} done."
        live_progress.job(bench, name, progress, said, key="device_calibration", box="calibration_going")
    elif progress.status == "cancelled":
        st.warning(
            f"The calibration was cancelled; the {progress.done} roofs that it measured are kept.",
            icon=":material/pause_circle:",
        )
    elif progress.status == "interrupted":
        st.error(f"The calibration broke off: {plain(progress.message)}", icon=":material/error:")


def _promised(line: DataSheetShare) -> str | None:
    """In the unit of the measured value beside it."""
    if line.promised is None:
        return None
    if line.roof.rate_flop_per_s is None:
        return units.gigabytes_per_s(line.promised)
    return units.rate(line.promised, "OP/s" if line.roof.precision == "int8" else "FLOP/s")


def _clock(roof: Roof | None) -> str | None:
    return units.clock(roof.clock_hz) if roof and roof.clock_hz else None


def _where(roof: Roof) -> str:
    unit = {"tensor": ", tensor cores", "vector": ", CUDA cores"}.get(roof.unit or "", "")
    memory = " from memory" if roof.level == "dram" else ""
    return f"{roof_name(roof).replace(' at ', memory + ' at ', 1)}{unit}"


def _interval(roof: Roof) -> str:
    value = roof.rate_flop_per_s or roof.bandwidth_bytes_per_s or roof.time_s
    if roof.low is None or roof.high is None or not value:
        return "none"
    return units.width((roof.high - roof.low) / 2 / value)


_OF_SHEET = ("Of the sheet", "At this clock", "Data sheet", "Sheet's clock")
_SHARES_OF_SHEET: tuple[Column[DataSheetShare], ...] = (
    Column("", "Roof", "What was measured.", units.TEXT, lambda line: _where(line.roof)),
    Column("", "Measured", "The best that was reached.", units.OWN_NUMBER, lambda line: roof_value(line.roof)),
    Column("", "Of the sheet", "The measured value over the data sheet's, as stated there.", units.OWN_NUMBER,
           lambda line: None if line.share is None else units.percent(line.share)),
    Column("", "At this clock", "The same, with the data sheet's value at the clock that was measured.", units.OWN_NUMBER,
           lambda line: None if line.share_at_clock is None else units.percent(line.share_at_clock)),
    Column("", "Data sheet", "What the vendor promises.", units.OWN_NUMBER, _promised),
    Column("", "Sheet's clock", "The clock for which it is promised.", units.OWN_NUMBER,
           lambda line: units.clock(line.promised_at_hz) if line.promised_at_hz else None),
    Column("", "± 95 %", "Half the 95 % interval.", units.OWN_NUMBER, lambda line: _interval(line.roof)),
    Column("", "Clock", "The SM clock while it was measured.", units.OWN_NUMBER, lambda line: _clock(line.roof)),
    Column("", "When", "When it was measured.", units.OWN_NUMBER, lambda line: when(line.roof.measured_at or None)),
)  # fmt: skip
_MOVES: tuple[Column[Move], ...] = (
    Column("", "Roof", "What was measured.", units.TEXT, lambda move: _where(move.now)),
    Column("", "Then", "In the earlier calibration.", units.OWN_NUMBER,
           lambda move: roof_value(move.then) if move.then else "not measured"),
    Column("", "Clock then", "The SM clock in the earlier calibration.", units.OWN_NUMBER, lambda move: _clock(move.then)),
    Column("", "Now", "In the newest calibration.", units.OWN_NUMBER, lambda move: roof_value(move.now)),
    Column("", "Clock now", "The SM clock in the newest calibration.", units.OWN_NUMBER, lambda move: _clock(move.now)),
    Column("", "Change", "Of the value. ≈: the two intervals touch, so that it may be chance.", units.OWN_NUMBER, change_words),
)  # fmt: skip


def _sheet(device: Device, sheet: DataSheet | None) -> None:
    if sheet is None:
        st.caption(words.NO_SHEET_CPU if device.kind == "cpu" else words.NO_SHEET)
        return
    st.caption(plain(f"Data sheet: {sheet.source}."))


def history(bench: Bench, device: Device) -> None:
    """How roofs moved between two calibrations."""
    st.markdown("##### How roofs moved")
    kept = bench.machine.calibrations(device.id)
    if len(kept) < 2:
        st.caption(words.ONE_CALIBRATION if kept else words.NOT_MEASURED)
        return
    newest, earlier = kept[0], kept[1:]
    chosen = 0
    if len(earlier) > 1:
        stamps = [made.measured_at or str(number) for number, made in enumerate(earlier)]
        view_filters.seed("against_calibration", stamps, stamps[0])
        picked = st.selectbox(
            "Against", stamps, key="against_calibration", format_func=lambda s: _dated(earlier[stamps.index(s)])
        )
        view_filters.keep("against_calibration", picked, stamps[0])
        chosen = stamps.index(picked)
    st.markdown(f"{_dated(newest)}, against {_dated(earlier[chosen])}.")
    moved = moves(newest, earlier[chosen])
    table.show(_MOVES, moved, key="moves", alt="How each roof moved between two calibrations")
    st.markdown(words.MOVES)


def _dated(calibration: Calibration) -> str:
    count = len(calibration.roofs)
    return f"{when(calibration.measured_at or None)} ({count} roof{'s' if count != 1 else ''})"
