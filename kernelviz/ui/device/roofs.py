"""The roofs on the page Device: calibration, measured values beside the data sheet, and change between calibrations."""

from collections.abc import Sequence

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import LIVING, Device, Roof, units
from kernelviz.hardware.datasheet import DataSheet, DataSheetShare, data_sheet_shares
from kernelviz.metrics.calibrations import Calibration, Move
from kernelviz.metrics.issue_rate import roof_share
from kernelviz.metrics.roof_checks import RoofRefusal
from kernelviz.tables.column import Column
from kernelviz.text import describe_refusal, format_move, format_roof_name, format_roof_value
from kernelviz.text.roofs import REFUSED_REMEDY, describe_above_sheet
from kernelviz.ui.shared import live_progress, table, view_filters
from kernelviz.ui.shared.live_progress import Activity
from kernelviz.ui.shared.text import plain, when

_NOT_MEASURED = "The roofs of this device were not measured yet."
PARAM = "calibration"
"""The parameter of the address that names the calibration to follow."""


def heading_and_calibrate_button(bench: Bench, device: Device, calibration: Activity | None) -> None:
    """The heading with the button that measures the roofs."""
    running = calibration is not None and calibration[1].status in LIVING
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="roofs_head"):
        st.markdown("##### Roofs: measured and data sheet", width="content")
        live_progress.start_button(
            "Calibrate", bench.calibrate, device, kind=PARAM, key="calibrate_device", icon=":material/straighten:",
            disabled=running or not device.usable,
            help="Measures bandwidth, arithmetic rates, kernel launches and transfers. In a terminal: "
            "kernelviz device --calibrate",
        )  # fmt: skip


def calibration_progress(bench: Bench, device: Device, calibration: Activity | None) -> None:
    """The running calibration, or how it ended if it did not finish."""
    if calibration is not None:
        count = calibration[1].done
        live_progress.activity_progress(
            bench, calibration, f"Measuring the roofs of {device.name}: {count} done.", what="calibration",
            cancelled=f"The calibration was cancelled. The {count} roofs that it had measured are stored.",
            again="Calibrate", key="device_calibration", box="calibration_going",
        )  # fmt: skip


def refused_roofs(refused: Sequence[RoofRefusal]) -> None:
    """Which roofs of the newest calibration cannot be used, and why."""
    if refused:
        listed = "".join(f"\n- {plain(describe_refusal(r))}" for r in refused)
        st.warning(
            f"{units.counted(len(refused), 'roof')} of the newest calibration cannot be used. {REFUSED_REMEDY}{listed}",
            icon=":material/rule:",
        )


def roof_table(
    roofs: Sequence[Roof],
    sheet: DataSheet | None,
    device: Device,
    calibration: Activity | None,
    cache_bytes: int | None = None,
) -> None:
    """The measured roofs beside the values of the data sheet, and which data sheet that is."""
    if not roofs and (calibration is None or calibration[1].status not in LIVING):
        st.info(
            f"{_NOT_MEASURED} Press **Calibrate** to measure them; other measurements wait until it is done.",
            icon=":material/straighten:",
        )
    lines = data_sheet_shares(roofs, sheet, cache_bytes)
    if lines:
        columns = [c for c in _SHARES_OF_SHEET if sheet is not None or c.heading not in _OF_SHEET]
        if any(roof_share(line.roof, device) is not None for line in lines):
            columns.insert(columns.index(_MEASURED) + 1, _of_issue_rate(device))
        table.show(columns, lines, key="held", alt="Measured roofs beside the data sheet", height="content")
    if sheet is not None:
        if lines:
            st.markdown(
                "**Of data sheet**: the measured value as a share of the data sheet's. **At this clock**: the same, with the "
                "data sheet's value scaled to the clock of the measurement; if it is much higher, power or temperature limited "
                "the clock. Data-sheet rates are dense, without sparsity."
            )
        for line in lines:
            if line.promised is not None and (line.share or 0.0) > 1:
                st.caption(
                    plain(f"{describe_above_sheet(line.roof, line.promised, line.promised_at_hz, cache_bytes)}.")
                )
        st.caption(plain(f"Data sheet: {sheet.source}."))
    elif device.kind == "cpu":
        st.caption(
            "kernelviz has data sheets of NVIDIA GPUs only, so the measured roofs of a CPU are shown without a comparison."
        )
    else:
        st.caption(
            "kernelviz has no data sheet of a GPU with exactly this name, so the measured roofs are shown without a comparison."
        )


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
    return f"{format_roof_name(roof).replace(' at ', memory + ' at ', 1)}{unit}"


def _interval(roof: Roof) -> str:
    value = roof.rate_flop_per_s or roof.bandwidth_bytes_per_s or roof.time_s
    if roof.low is None or roof.high is None or not value:
        return "none"
    return units.width((roof.high - roof.low) / 2 / value)


def _of_issue_rate(device: Device) -> Column[DataSheetShare]:
    def share(line: DataSheetShare) -> str | None:
        fraction = roof_share(line.roof, device)
        return None if fraction is None else units.percent(fraction)

    return Column("", "Of issue rate", "Arithmetic rate divided by SMs × FLOP per SM and clock × the clock of its measurement.",
                  units.OWN_NUMBER, share)  # fmt: skip


_MEASURED: Column[DataSheetShare] = Column(
    "", "Measured", "The highest measured value.", units.OWN_NUMBER, lambda line: format_roof_value(line.roof)
)
_OF_SHEET = ("Of data sheet", "At this clock", "Data sheet", "Data-sheet clock")
_SHARES_OF_SHEET: tuple[Column[DataSheetShare], ...] = (
    Column("", "Roof", "What was measured.", units.TEXT, lambda line: _label(line.roof)),
    _MEASURED,
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
           lambda move: format_roof_value(move.then) if move.then else "not measured"),
    Column("", "Clock then", "The SM clock in the earlier calibration.", units.OWN_NUMBER, lambda move: _clock(move.then)),
    Column("", "Now", "In the newest calibration.", units.OWN_NUMBER, lambda move: format_roof_value(move.now)),
    Column("", "Clock now", "The SM clock in the newest calibration.", units.OWN_NUMBER, lambda move: _clock(move.now)),
    Column("", "Change", "≈: the two 95 % intervals overlap, so the change may be chance.", units.OWN_NUMBER, format_move),
)  # fmt: skip


def roof_changes(bench: Bench, device: Device) -> None:
    """How much each roof of a device changed between two of its calibrations."""
    calibrations = bench.machine.calibrations(device.id)
    if not calibrations:
        st.caption(_NOT_MEASURED)
        return
    newest, *earlier = calibrations
    if not earlier:
        st.caption(
            "There is only one calibration. Calibrate again, for example after a driver update, to see what changed."
        )
        return
    then = earlier[0]
    if len(earlier) > 1:
        by_stamp = {c.measured_at or str(number): c for number, c in enumerate(earlier)}
        chosen = view_filters.choose(
            st.selectbox, "Compare with", list(by_stamp), next(iter(by_stamp)), key="against_calibration",
            format_func=lambda stamp: _dated(by_stamp[stamp]),
        )  # fmt: skip
        then = by_stamp[chosen]
    st.markdown(f"{_dated(newest)}, compared with {_dated(then)}.")
    table.show(
        _MOVES,
        bench.machine.roof_changes(device.id, newest, then),
        key="moves",
        alt="Change of each roof between two calibrations",
    )
    st.markdown(
        "Each roof is compared with the chosen earlier calibration. **≈**: the two 95 % intervals overlap, so no change can be "
        "stated. **cannot be used**: one of the two values contradicts another one, or its interval is too wide. For kernel "
        "launches, a lower time is better."
    )


def _dated(calibration: Calibration) -> str:
    return f"{when(calibration.measured_at or None)} ({units.counted(len(calibration.roofs), 'roof')})"
