"""The roofs on the page Device: calibration, measured values beside the data sheet, and change between calibrations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pandas as pd
import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import units
from kernelviz.core.run import LIVING, Device, Roof
from kernelviz.hardware.datasheet import DataSheet
from kernelviz.hardware.datasheet_shares import Held, held
from kernelviz.metrics.calibrations import Calibration, Move, change_words, moves
from kernelviz.metrics.roofs import roof_name, roof_value
from kernelviz.ui.device import text
from kernelviz.ui.shared import live_progress, view_filters
from kernelviz.ui.shared.live_progress import Job
from kernelviz.ui.shared.text import plain, when

_PARAM = "calibration"
_WIDTH = 8
"""Mean width of a letter in a table, in pixels, at most."""


def calibration(bench: Bench) -> Job | None:
    """The calibration of the address or of this session, with its progress; None without one."""
    return live_progress.job_to_show(bench, _PARAM)


def heading_and_calibrate_button(bench: Bench, device: Device, calibration: Job | None) -> None:
    """The heading with the button that measures the roofs."""
    running = calibration is not None and calibration[1].status in LIVING
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="roofs_head"):
        st.markdown("##### Roofs: measured and data sheet", width="content")
        live_progress.job_button(
            "Calibrate", bench.calibrate, device, job=_PARAM, key="calibrate_device", icon=":material/straighten:",
            disabled=running or not device.usable, help=text.CALIBRATE_HELP,
        )  # fmt: skip


def calibration_progress(bench: Bench, device: Device, calibration: Job | None) -> None:
    """The running calibration, or how it ended if it did not finish."""
    if calibration is None:
        return
    job, progress = calibration
    if progress.status in LIVING:
        sentence = f"Measuring the roofs of {device.name}: {progress.done} done."
        live_progress.running_job(bench, job, progress, sentence, key="device_calibration", box="calibration_going")
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


def roof_table(roofs: Sequence[Roof], sheet: DataSheet | None, device: Device, calibration: Job | None) -> None:
    """The measured roofs beside the values of the data sheet, and which data sheet that is."""
    if not roofs and (calibration is None or calibration[1].status not in LIVING):
        st.info(text.NOT_CALIBRATED, icon=":material/straighten:")
    lines = held(roofs, sheet)
    if lines:
        frame = pd.DataFrame([_row(line, sheet) for line in lines])
        _table(frame, key="held", alt="Measured roofs beside the data sheet", height="content")
        if sheet is not None:
            st.markdown(text.SHARES)
    if sheet is None:
        st.caption(text.NO_SHEET_CPU if device.kind == "cpu" else text.NO_SHEET)
    else:
        st.caption(plain(f"Data sheet: {sheet.source}."))


def _table(table: pd.DataFrame, *, key: str, alt: str, height: Literal["content", "auto"] = "auto") -> None:
    """A table with names on the left and numbers aligned right.

    Each column is as wide as its longest text: Streamlit measures only the visible rows, and cuts off digits in the others.
    """
    right = {
        name: st.column_config.TextColumn(alignment="right", width=_WIDTH * (2 + max(map(len, (name, *table[name])))))
        for name in table.columns[1:]
    }
    st.dataframe(table, hide_index=True, key=key, alt=alt, height=height, column_config=right)


def _row(line: Held, sheet: DataSheet | None) -> dict[str, str]:
    roof = line.roof
    own = {
        "± 95 %": _interval(roof),
        "clock": units.clock(roof.clock_hz) if roof.clock_hz else "–",
        "when": when(roof.measured_at or None),
    }
    row = {"roof": _label(roof), "measured": roof_value(roof)}
    if sheet is None:
        return row | own
    unit = "B/s" if roof.rate_flop_per_s is None else ("OP/s" if roof.precision == "int8" else "FLOP/s")
    of_sheet = {
        "of data sheet": "–" if line.share is None else units.percent(line.share),
        "at this clock": "–" if line.share_at_clock is None else units.percent(line.share_at_clock),
        "data sheet": "–" if line.promised is None else _sheet_value(line.promised, unit),
        "data-sheet clock": units.clock(line.promised_at_hz) if line.promised_at_hz else "–",
    }
    return row | of_sheet | own


def _sheet_value(value: float, unit: str) -> str:
    """A value of the data sheet in the unit of the measured one."""
    return units.gigabytes_per_s(value) if unit == "B/s" else units.rate(value, unit)


def _label(roof: Roof) -> str:
    unit = {"tensor": ", tensor cores", "vector": ", CUDA cores"}.get(roof.unit or "", "")
    memory = " from memory" if roof.level == "dram" else ""
    return f"{roof_name(roof).replace(' at ', memory + ' at ', 1)}{unit}"


def _interval(roof: Roof) -> str:
    value = roof.rate_flop_per_s or roof.bandwidth_bytes_per_s or roof.time_s
    if roof.low is None or roof.high is None or not value:
        return "none"
    return units.width((roof.high - roof.low) / 2 / value)


def roof_changes(calibrations: Sequence[Calibration]) -> None:
    """How much each roof changed between two calibrations. `calibrations`: newest first."""
    if len(calibrations) < 2:
        st.caption(text.ONE_CALIBRATION if calibrations else text.NOT_CALIBRATED.partition(".")[0] + ".")
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
    rows = [_change(move) for move in moves(newest, earlier[chosen])]
    _table(pd.DataFrame(rows), key="moves", alt="Change of each roof between two calibrations")
    st.markdown(text.MOVES)


def _dated(calibration: Calibration) -> str:
    count = len(calibration.roofs)
    return f"{when(calibration.measured_at or None)} ({count} roof{'s' if count != 1 else ''})"


def _change(move: Move) -> dict[str, str]:
    then = move.then
    return {
        "roof": _label(move.now),
        "then": roof_value(then) if then is not None else "not measured",
        "clock then": units.clock(then.clock_hz) if then is not None and then.clock_hz else "–",
        "now": roof_value(move.now),
        "clock now": units.clock(move.now.clock_hz) if move.now.clock_hz else "–",
        "change": change_words(move),
    }
