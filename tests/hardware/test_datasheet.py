"""Every cited sheet is complete and consistent with itself; a GPU that is not listed has none."""

from __future__ import annotations

import pytest

from kernelviz.core.dtypes import DTYPES
from kernelviz.hardware.datasheet import SHEETS, DataSheet, datasheet


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda s: s.names[0])
def test_a_sheet_cites_its_source_and_its_numbers_are_plausible(sheet: DataSheet) -> None:
    assert "NVIDIA" in sheet.source
    assert 5e11 < sheet.bandwidth_bytes_per_s < 1e13
    assert sheet.peaks.keys() <= {*DTYPES, "tf32"}
    assert sheet.peaks["fp32"].rate_flop_per_s <= sheet.peaks["tf32"].rate_flop_per_s
    assert sheet.peaks["bf16"].rate_flop_per_s == pytest.approx(2 * sheet.peaks["tf32"].rate_flop_per_s, rel=0.01)
    for peak in sheet.peaks.values():
        assert peak.at(None) == peak.at(peak.at_clock_hz / 2) == peak.rate_flop_per_s, "a slow clock lowers no promise"


def test_names_are_unique_and_exact() -> None:
    names = [name for sheet in SHEETS for name in sheet.names]
    assert len(names) == len(set(names))
    for name in names:
        assert datasheet(name) is not None
    for unknown in ("", "NVIDIA H200 NVL", "NVIDIA B200", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "AMD EPYC"):
        assert datasheet(unknown) is None
