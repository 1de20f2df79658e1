"""The roofs on the page Device: calibration, measured values beside the data sheet, and change between calibrations."""

from collections.abc import Sequence

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import LIVING, Device, Roof, units
from kernelviz.hardware.datasheet import DataSheet
from kernelviz.hardware.datasheet_shares import DataSheetShare, data_sheet_shares
from kernelviz.metrics.calibrations import Calibration, Move, change_words, moves
from kernelviz.metrics.roofs import roof_name, roof_value
from kernelviz.tables.column import Column
from kernelviz.ui.device import text
from kernelviz.ui.shared import live_progress, table, view_filters
from kernelviz.ui.shared.live_progress import Activity
from kernelviz.ui.shared.text import plain, when

_PARAM = "calibration"


def calibration(bench: Bench) -> Activity | None:
    """The calibration of the address or of this session, with its progress; None without one."""
    return live_progress.activity_to_show(bench, _PARAM)


def heading_and_calibrate_button(bench: Bench, device: Device, calibration: Activity | None) -> None:
    """The heading with the button that measures the roofs."""
    running = calibration is not None and calibration[1].status in LIVING
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="roofs_head"):
        st.markdown("##### Roofs: measured and data sheet", width="content")
        live_progress.start_button(
            "Calibrate", bench.calibrate, device, kind=_PARAM, key="calibrate_device", icon=":material/straighten:",
            disabled=running or not device.usable, help=text.CALIBRATE_HELP,
        )  # fmt: skip


def calibration_progress(bench: Bench, device: Device, calibration: Activity | None) -> None:
    """The running calibration, or how it ended if it did not finish."""
    if calibration is None:
        return
    name, progress = calibration
    if progress.status in LIVING:
        sentence = f"Measuring the roofs of {device.name}: {progress.done} done."
        live_progress.running_activity(
            bench, name, progress, sentence, key="device_calibration", box="calibration_going"
        )
    elif progress.status == "cancelled":
        st.warning(
            f"The calibration was cancelled. The {progress.done} roofs that it had measured are stored.",
            icon=":material/pause_circle:",
        )
    elif progress.status == "interrupted":
        st.error(
            f"The calibration failed: {plain(progress.message).rstrip('.')}. Press **Calibrate** to try again.",
            icon=":material/error:",
        )


def roof_table(roofs: Sequence[Roof], sheet: DataSheet | None, device: Device, calibration: Activity | None) -> None:
    """The measured roofs beside the values of the data sheet, and which data sheet that is."""
    if not roofs and (calibration is None or calibration[1].status not in LIVING):
        st.info(text.NOT_CALIBRATED, icon=":material/straighten:")
    lines = data_sheet_shares(roofs, sheet)
    if lines:
        columns = [c for c in _SHARES_OF_SHEET if sheet is not None or c.heading not in _OF_SHEET]
        table.show(columns, lines, key="held", alt="Measured roofs beside the data sheet", height="content")
        if sheet is not None:
            st.markdown(text.SHARES)
    if sheet is None:
        st.caption(text.NO_SHEET_CPU if device.kind == "cpu" else text.NO_SHEET)
    else:
        st.caption(plain(f"Data sheet: {sheet.source}."))


def _sheet_value(line: DataSheetShare) -> str | None:
    """A value of the data sheet in the unit of the measured one."""
    if line.promised is None:
        return None
    if line.roof.rate_flop_per_s is None:
        return units.gigabytes_per_s(line.promised)
    return units.rate(line.promised, "OP/s" if line.roof.precision == "int8" else "FLOP/s")


def _clock(roof: Roof | None) -> str | None:
    return units.clock(roof.clock_hz) if roof and roof.clock_hz else None


def _label(roof: Roof) -> str:
    unit = {"tensor": ", tensor cores", "vector": ", CUDA cores"}.get(roof.unit or "", "")
    memory = " from memory" if roof.level == "dram" else ""
    return f"{roof_name(roof).replace(' at ', memory + ' at ', 1)}{unit}"


def _interval(roof: Roof) -> str:
    value = roof.rate_flop_per_s or roof.bandwidth_bytes_per_s or roof.time_s
    if roof.low is None or roof.high is None or not value:
        return "none"
    return units.width((roof.high - roof.low) / 2 / value)


_OF_SHEET = ("Of data sheet", "At this clock", "Data sheet", "Data-sheet clock")
_SHARES_OF_SHEET: tuple[Column[DataSheetShare], ...] = (
    Column("", "Roof", "What was measured.", units.TEXT, lambda line: _label(line.roof)),
    Column("", "Measured", "The highest measured value.", units.OWN_NUMBER, lambda line: roof_value(line.roof)),
    Column("", "Of data sheet", "The measured value as a share of the data sheet's value.", units.OWN_NUMBER,
           lambda line: None if line.share is None else units.percent(line.share)),
    Column("", "At this clock", "The same, with the data sheet's value scaled to the clock of the measurement.", units.OWN_NUMBER,
           lambda line: None if line.share_at_clock is None else units.percent(line.share_at_clock)),
    Column("", "Data sheet", "The value that the vendor states.", units.OWN_NUMBER, _sheet_value),
    Column("", "Data-sheet clock", "The clock for which the vendor states it.", units.OWN_NUMBER,
           lambda line: units.clock(line.promised_at_hz) if line.promised_at_hz else None),
    Column("", "± 95 %", "Half the width of the 95 % interval.", units.OWN_NUMBER, lambda line: _interval(line.roof)),
    Column("", "Clock", "The SM clock during the measurement.", units.OWN_NUMBER, lambda line: _clock(line.roof)),
    Column("", "When", "When it was measured.", units.OWN_NUMBER, lambda line: when(line.roof.measured_at or None)),
)  # fmt: skip
_MOVES: tuple[Column[Move], ...] = (
    Column("", "Roof", "What was measured.", units.TEXT, lambda move: _label(move.now)),
    Column("", "Then", "In the earlier calibration.", units.OWN_NUMBER,
           lambda move: roof_value(move.then) if move.then else "not measured"),
    Column("", "Clock then", "The SM clock in the earlier calibration.", units.OWN_NUMBER, lambda move: _clock(move.then)),
    Column("", "Now", "In the newest calibration.", units.OWN_NUMBER, lambda move: roof_value(move.now)),
    Column("", "Clock now", "The SM clock in the newest calibration.", units.OWN_NUMBER, lambda move: _clock(move.now)),
    Column("", "Change", "≈: the two 95 % intervals overlap, so the change may be chance.", units.OWN_NUMBER, change_words),
)  # fmt: skip


def roof_changes(calibrations: Sequence[Calibration]) -> None:
    """How much each roof changed between two calibrations. `calibrations`: newest first."""
    if len(calibrations) < 2:
        st.caption(text.ONE_CALIBRATION if calibrations else text.NOT_MEASURED)
        return
    newest, earlier = calibrations[0], calibrations[1:]
    chosen = 0
    if len(earlier) > 1:
        stamps = [c.measured_at or str(number) for number, c in enumerate(earlier)]
        view_filters.seed("against_calibration", stamps, stamps[0])
        picked = st.selectbox(
            "Compare with", stamps, key="against_calibration", format_func=lambda s: _dated(earlier[stamps.index(s)])
        )
        view_filters.keep("against_calibration", picked, stamps[0])
        chosen = stamps.index(picked)
    st.markdown(f"{_dated(newest)}, compared with {_dated(earlier[chosen])}.")
    changes = moves(newest, earlier[chosen])
    table.show(_MOVES, changes, key="moves", alt="Change of each roof between two calibrations")
    st.markdown(text.MOVES)


def _dated(calibration: Calibration) -> str:
    count = len(calibration.roofs)
    return f"{when(calibration.measured_at or None)} ({count} roof{'s' if count != 1 else ''})"
