"""Measured roofs against the sheet: like with like, and nothing where the sheet says nothing."""

from __future__ import annotations

import earlier_runs
import pytest

from kernelviz.core.run import Roof
from kernelviz.hardware.datasheet import data_sheet_shares, datasheet

ROOFS = earlier_runs.load("h200-add").environment.roofs


def test_an_h200s_roofs_stand_below_its_sheet() -> None:
    lines = {
        (h.roof.name, h.roof.level, h.roof.precision): h for h in data_sheet_shares(ROOFS, datasheet("NVIDIA H200"))
    }
    read = lines["read", "dram", None]
    assert read.roof.bandwidth_bytes_per_s == max(
        r.bandwidth_bytes_per_s or 0 for r in ROOFS if (r.name, r.level) == ("read", "dram")
    )
    assert read.share == pytest.approx(4.633e12 / 4.8e12, rel=1e-3)
    bf16 = lines["matmul", None, "bf16"]
    assert bf16.share == pytest.approx(784.5 / 989.4, rel=1e-3)
    assert bf16.share_at_clock == pytest.approx(784.5 / (989.4 * 1.625 / 1.83), rel=1e-3)
    assert all(h.share <= 1 for h in lines.values() if h.share is not None)
    for key in (("read", "l2", None), ("h2d", None, None), ("fma", None, "fp64"), ("fma", None, "bf16")):
        assert lines[key].promised is None, "a sheet states nothing of that"
    assert lines["fma", None, "fp32"].share_at_clock == pytest.approx(0.974, abs=0.005)
    assert not [key for key in lines if key[0] == "launch"]


def test_without_a_sheet_roofs_stand_alone() -> None:
    lines = data_sheet_shares(ROOFS, None)
    assert lines
    assert all(h.promised is h.share is h.share_at_clock is None for h in lines)
    assert data_sheet_shares((), datasheet("NVIDIA H200")) == ()


def test_a_sheet_without_clock_gives_no_share_at_the_clock() -> None:
    roof = Roof(name="matmul", precision="bf16", unit="tensor", rate_flop_per_s=600e12, clock_hz=1.6e9)
    (line,) = data_sheet_shares([roof], datasheet("NVIDIA H100 NVL"))
    assert line.share == pytest.approx(600 / 835.5)
    assert line.share_at_clock is line.promised_at_hz is None
