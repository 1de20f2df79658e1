"""Every cited sheet is complete and consistent with itself; a GPU that is not listed has none."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from kernelviz.core.dtypes import DTYPES
from kernelviz.hardware.datasheet import DataSheet, Peak, datasheet, sheets

PRECISIONS = {*DTYPES, "tf32", "fp8", "int8"}


@pytest.mark.parametrize("sheet", sheets(), ids=lambda s: s.names[0])
def test_a_sheet_cites_its_sources_and_its_numbers_are_plausible(sheet: DataSheet) -> None:
    assert set(sheet.sources) == {"bandwidth", "peaks"} | ({"l2"} if sheet.l2_bytes else set())
    assert all("NVIDIA" in title or "H200" in title for title in sheet.sources.values())
    assert 3e11 <= sheet.bandwidth_bytes_per_s < 1e13
    assert sheet.peaks.keys() <= PRECISIONS
    rates = {precision: peak.rate_flop_per_s for precision, peak in sheet.peaks.items()}
    assert 5e12 < rates["fp32"] < 2e14
    if "tf32" in rates:
        assert rates["fp32"] <= rates["tf32"]
        assert rates["bf16"] == pytest.approx(2 * rates["tf32"], rel=0.03)
    if "fp8" in rates:
        assert rates["int8"] == rates["fp8"] == pytest.approx(2 * rates["fp16"], rel=0.02)
    assert sheet.l2_bytes is None or 2 * 2**20 < sheet.l2_bytes <= 128 * 2**20


def test_a_peak_grows_with_the_clock_and_a_slow_clock_lowers_no_promise() -> None:
    stated = Peak(rate_flop_per_s=1e14, at_clock_hz=1e9)
    assert stated.at(None) == stated.at(5e8) == 1e14
    assert stated.at(1.5e9) == 1.5e14
    assert Peak(rate_flop_per_s=1e14, at_clock_hz=None).at(1.5e9) is None, "a limit at an unknown clock refuses nothing"


def test_names_are_unique_and_exact() -> None:
    names = [name for sheet in sheets() for name in sheet.names]
    assert len(names) == len(set(names))
    assert len(sheets()) >= 30
    for name in names:
        found = datasheet(name)
        assert found is not None
        assert name in found.names
    for name in names:
        assert datasheet(f"{name} MIG 1g.10gb") is None, "the whole GPU's sheet does not hold for a slice"
        assert datasheet(f"{name} MIG slice") is None


def test_form_factors_are_kept_apart() -> None:
    def bandwidth(name: str) -> float:
        found = datasheet(name)
        assert found is not None, name
        return found.bandwidth_bytes_per_s / 1e9

    assert [bandwidth(f"NVIDIA {n}") for n in ("H100 80GB HBM3", "H100 PCIe", "H100 NVL")] == [3352, 2039, 3900]
    assert [bandwidth(f"NVIDIA {n}") for n in ("A100-SXM4-80GB", "A100 80GB PCIe", "A100-PCIE-40GB")] == [
        2039,
        1935,
        1555,
    ]
    assert [bandwidth(f"NVIDIA GH200 {n}") for n in ("480GB", "144G HBM3e")] == [4000, 4900]
    architectures = {s.architecture for s in sheets()}
    assert architectures == {
        "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell", "blackwell_rtx"
    }  # fmt: skip


def test_the_gpus_of_the_source_documents_are_listed() -> None:
    """A100 80 GB, V100 16 GB, A6000 and RTX 3090 Ti with the figures of that table, rounded as it rounds them."""
    stated = {
        "NVIDIA A100-SXM4-80GB": (2039, 19.5, 312),
        "Tesla V100-SXM2-16GB": (900, 15.7, 125),
        "NVIDIA RTX A6000": (768, 38.7, 155),
        "NVIDIA GeForce RTX 3090 Ti": (1008, 40, 160),
    }
    for name, (bandwidth, fp32, fp16) in stated.items():
        found = datasheet(name)
        assert found is not None, name
        assert found.bandwidth_bytes_per_s == bandwidth * 1e9
        assert found.peaks["fp32"].rate_flop_per_s == pytest.approx(fp32 * 1e12, rel=0.001)
        assert found.peaks["fp16"].rate_flop_per_s == pytest.approx(fp16 * 1e12, rel=0.003)


def test_every_title_of_the_table_is_used() -> None:
    table = tomllib.loads((files("kernelviz") / "hardware" / "datasheets.toml").read_text(encoding="utf-8"))
    used = {title for sheet in sheets() for title in sheet.sources.values()}
    assert used == set(table["sources"].values())
