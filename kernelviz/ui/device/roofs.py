"""The roofs on the page Device: calibrate, what was measured against what is promised, and how roofs moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pandas as pd
import streamlit as st

from kernelviz.bench import Bench, Progress
from kernelviz.core import units
from kernelviz.core.run import LIVING, Device, Roof
from kernelviz.hardware.datasheet import DataSheet, datasheet
from kernelviz.hardware.datasheet_shares import DataSheetShare, data_sheet_shares
from kernelviz.metrics.calibrations import Calibration, Move, change_words, moves
from kernelviz.metrics.roofs import roof_name, roof_value
from kernelviz.ui.device import text as words
from kernelviz.ui.shared import live_progress, view_filters
from kernelviz.ui.shared.text import plain, when

_PARAM = "calibration"
_WIDTH = 8
"""Pixels of a letter in a table, at most, on the average of a text."""


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
        _shown(_table(lines, sheet), key="held", alt="Measured roofs against the data sheet", height="content")
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


def _table(lines: Sequence[DataSheetShare], sheet: DataSheet | None) -> pd.DataFrame:
    rows = [_row(line, sheet) for line in lines]
    return pd.DataFrame(rows)


def _shown(table: pd.DataFrame, *, key: str, alt: str, height: Literal["content", "auto"] = "auto") -> None:
    """Names left, figures right, so that digits stand below digits.

    Each column has room for its longest text: Streamlit measures only the rows in sight, and cuts digits off the others' left.
    """
    right = {
        name: st.column_config.TextColumn(alignment="right", width=_WIDTH * (2 + max(map(len, (name, *table[name])))))
        for name in table.columns[1:]
    }
    st.dataframe(table, hide_index=True, key=key, alt=alt, height=height, column_config=right)


def _row(line: DataSheetShare, sheet: DataSheet | None) -> dict[str, str]:
    roof = line.roof
    own = {
        "± 95 %": _interval(roof),
        "clock": units.clock(roof.clock_hz) if roof.clock_hz else "–",
        "when": when(roof.measured_at or None),
    }
    row = {"roof": _where(roof), "measured": roof_value(roof)}
    if sheet is None:
        return row | own
    unit = "B/s" if roof.rate_flop_per_s is None else ("OP/s" if roof.precision == "int8" else "FLOP/s")
    promised = {
        "of the sheet": "–" if line.share is None else units.percent(line.share),
        "at this clock": "–" if line.share_at_clock is None else units.percent(line.share_at_clock),
        "data sheet": "–" if line.promised is None else _promised(line.promised, unit),
        "sheet's clock": units.clock(line.promised_at_hz) if line.promised_at_hz else "–",
    }
    return row | promised | own


def _promised(value: float, unit: str) -> str:
    """In the unit of the measured value beside it."""
    return units.gigabytes_per_s(value) if unit == "B/s" else units.rate(value, unit)


def _where(roof: Roof) -> str:
    unit = {"tensor": ", tensor cores", "vector": ", CUDA cores"}.get(roof.unit or "", "")
    memory = " from memory" if roof.level == "dram" else ""
    return f"{roof_name(roof).replace(' at ', memory + ' at ', 1)}{unit}"


def _interval(roof: Roof) -> str:
    value = roof.rate_flop_per_s or roof.bandwidth_bytes_per_s or roof.time_s
    if roof.low is None or roof.high is None or not value:
        return "none"
    return units.width((roof.high - roof.low) / 2 / value)


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
    rows = [_moved(move) for move in moves(newest, earlier[chosen])]
    _shown(pd.DataFrame(rows), key="moves", alt="How each roof moved between two calibrations")
    st.markdown(words.MOVES)


def _dated(calibration: Calibration) -> str:
    count = len(calibration.roofs)
    return f"{when(calibration.measured_at or None)} ({count} roof{'s' if count != 1 else ''})"


def _moved(move: Move) -> dict[str, str]:
    then = move.then
    return {
        "roof": _where(move.now),
        "then": roof_value(then) if then is not None else "not measured",
        "clock then": units.clock(then.clock_hz) if then is not None and then.clock_hz else "–",
        "now": roof_value(move.now),
        "clock now": units.clock(move.now.clock_hz) if move.now.clock_hz else "–",
        "change": change_words(move),
    }
