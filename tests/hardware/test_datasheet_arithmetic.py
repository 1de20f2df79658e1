"""Every figure of a sheet follows from the board: bandwidth from bus and data rate, peaks from multiprocessors and clock.

`BOARDS` is written down apart from the sheets, from what others report of the boards, so that a slip in a sheet (a factor of
two, a rate with sparsity, the wrong form factor) shows.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kernelviz.hardware.datasheet import DataSheet, datasheet, sheets

# Dense operations of one multiprocessor in a clock, with the fastest accumulation: the architectures' white papers,
# and the CUDA C++ Programming Guide, "Arithmetic Instructions", for the CUDA cores.
GEFORCE = {"fp32": 256, "fp16": 1024, "bf16": 512, "tf32": 256, "int8": 2048, "fp8": 2048}
WORKSTATION = {**GEFORCE, "bf16": 1024, "tf32": 512}
PER_CLOCK = {
    "pascal": {"fp32": 256, "int8": 1024},
    "volta": {"fp32": 128, "fp64": 64, "fp16": 1024},
    "turing": {"fp32": 128, "fp16": 1024, "int8": 2048},
    "hopper": {"fp32": 256, "fp64": 256, "fp16": 4096, "bf16": 4096, "tf32": 2048, "fp8": 8192, "int8": 8192},
    "blackwell": {"fp32": 256, "fp64": 128, "fp16": 8192, "bf16": 8192, "tf32": 4096, "fp8": 16384, "int8": 16384},
}
GP100 = {"fp32": 128, "fp64": 64, "fp16": 256}
GA100 = {"fp32": 128, "fp64": 128, "fp16": 2048, "bf16": 2048, "tf32": 1024, "int8": 4096}


@dataclass(frozen=True)
class Board:
    """Multiprocessors, boost clock, memory bus and what one of its pins moves; L2 where reports agree. Tolerances: of the
    bandwidth; of fp32 and fp64, `peaks`; of the other rates, `tensor`."""

    multiprocessors: int
    boost_mhz: float
    bus_bits: int
    pin_gbit_per_s: float
    l2_mib: float | None
    bandwidth: float = 0.03
    peaks: float = 0.07
    tensor: float = 0.07


# TechPowerUp's GPU Database by way of the RightNow GPU Database (2025-12), with these exceptions. L4: 7,424 cores are 58
# multiprocessors, not its 60. A100 80 GB PCIe: 40 MiB, as every A100. GH200 is not in it: clocks of the H100 SXM, memory of
# the H100 NVL and of the H200. B200, GB200: multiprocessors and clocks as public logs have them from the driver (148 and
# 152, 1,965 MHz, memory 3,996 MHz; the database lists one die of the B200). V100 SXM2: its 32 GB board.
# H100 NVL and H200 NVL: their tensor rates are stated for 1,545 MHz (835.5 TFLOP/s), their fp32 for the boost clock.
# RTX PRO 6000 Server: the maker states 1,597 GB/s and 120 TFLOP/s, the database has the workstation card's figures.
BOARDS = {
    "Tesla P100-SXM2-16GB": Board(56, 1480, 4096, 1.43, 4),
    "Tesla P100-PCIE-16GB": Board(56, 1329, 4096, 1.43, 4),
    "Tesla P40": Board(30, 1531, 384, 7.232, 3),
    "Quadro P6000": Board(30, 1645, 384, 9.016, 3),
    "NVIDIA GeForce GTX 1080 Ti": Board(28, 1582, 352, 11.008, 2.75),
    "Tesla V100-SXM2-16GB": Board(80, 1530, 4096, 1.754, 6),
    "Tesla V100-PCIE-16GB": Board(80, 1380, 4096, 1.752, 6),
    "Tesla V100S-PCIE-32GB": Board(80, 1597, 4096, 2.214, 6),
    "Tesla T4": Board(40, 1590, 256, 10.0, 4),
    "NVIDIA GeForce RTX 2080 Ti": Board(68, 1545, 352, 14.0, 5.5),
    "NVIDIA A100-SXM4-80GB": Board(108, 1410, 5120, 3.186, 40),
    "NVIDIA A100 80GB PCIe": Board(108, 1410, 5120, 3.024, 40),
    "NVIDIA A100-SXM4-40GB": Board(108, 1410, 5120, 2.43, 40),
    "NVIDIA A100-PCIE-40GB": Board(108, 1410, 5120, 2.43, 40),
    "NVIDIA A30": Board(56, 1440, 3072, 2.43, 24),
    "NVIDIA A40": Board(84, 1740, 384, 14.496, 6),
    "NVIDIA A10": Board(72, 1695, 384, 12.504, 6),
    "NVIDIA RTX A6000": Board(84, 1800, 384, 16.0, 6),
    "NVIDIA RTX A4000": Board(48, 1560, 256, 14.0, 4),
    "NVIDIA GeForce RTX 3090 Ti": Board(84, 1860, 384, 21.0, 6),
    "NVIDIA GeForce RTX 3090": Board(82, 1695, 384, 19.5, 6),
    "NVIDIA GeForce RTX 3070": Board(46, 1725, 256, 14.0, 4),
    "NVIDIA L4": Board(58, 2040, 192, 12.504, 48),
    "NVIDIA L40": Board(142, 2490, 384, 18.0, 96),
    "NVIDIA L40S": Board(142, 2520, 384, 18.0, None),
    "NVIDIA RTX 6000 Ada Generation": Board(142, 2505, 384, 20.0, 96),
    "NVIDIA GeForce RTX 4090": Board(128, 2520, 384, 21.0, 72),
    "NVIDIA GeForce RTX 4080": Board(76, 2505, 256, 22.4, 64),
    "NVIDIA GeForce RTX 4070 Ti": Board(60, 2610, 192, 21.0, 48),
    "NVIDIA H100 80GB HBM3": Board(132, 1980, 5120, 5.25, 50, tensor=0.09),
    "NVIDIA H100 PCIe": Board(114, 1755, 5120, 3.186, 50, tensor=0.09),
    "NVIDIA H100 NVL": Board(132, 1785, 6016, 5.24, None, tensor=0.15),
    "NVIDIA H200": Board(132, 1980, 6144, 6.372, None, tensor=0.09),
    "NVIDIA H200 NVL": Board(132, 1785, 6144, 6.372, None, tensor=0.15),
    "NVIDIA GH200 480GB": Board(132, 1980, 6144, 5.24, None, tensor=0.09),
    "NVIDIA GH200 144G HBM3e": Board(132, 1980, 6144, 6.372, None, tensor=0.09),
    "NVIDIA B200": Board(148, 1965, 8192, 7.992, None),
    "NVIDIA GB200": Board(152, 1965, 8192, 7.992, None),
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": Board(188, 2617, 512, 28.0, 128),
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": Board(188, 2280, 512, 28.0, 128),
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": Board(188, 2617, 512, 28.0, 128, bandwidth=0.12),
    "NVIDIA GeForce RTX 5090": Board(170, 2407, 512, 28.0, 96),
    "NVIDIA GeForce RTX 5080": Board(84, 2617, 256, 30.0, 64),
    "NVIDIA GeForce RTX 5070 Ti": Board(70, 2452, 256, 28.0, 48),
    "NVIDIA GeForce RTX 5070": Board(48, 2512, 192, 28.0, 48),
}
FORM_FACTORS = (
    ("Tesla P100-SXM2-16GB", "Tesla P100-PCIE-16GB"),
    ("Tesla V100-SXM2-16GB", "Tesla V100-PCIE-16GB", "Tesla V100S-PCIE-32GB"),
    ("NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "NVIDIA A100-SXM4-40GB"),
    ("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA GH200 480GB", "NVIDIA H200"),
    ("NVIDIA H200", "NVIDIA H200 NVL"),
    ("NVIDIA GH200 480GB", "NVIDIA GH200 144G HBM3e"),
    tuple(f"NVIDIA RTX PRO 6000 Blackwell {kind} Edition" for kind in ("Workstation", "Max-Q Workstation")),
)


def _per_clock(sheet: DataSheet) -> dict[str, int]:
    name = sheet.names[0]
    if "P100" in name:
        return GP100
    if "A100" in name or name == "NVIDIA A30":
        return GA100
    return PER_CLOCK.get(sheet.architecture) or (GEFORCE if "GeForce" in name else WORKSTATION)


def _slips(sheet: DataSheet, board: Board, factor: float = 1.0) -> list[str]:
    """What of the sheet, times the factor, does not follow from the board."""
    made = {"bandwidth": board.bus_bits / 8 * board.pin_gbit_per_s * 1e9}
    stated = {"bandwidth": sheet.bandwidth_bytes_per_s}
    tolerance = {"bandwidth": board.bandwidth}
    for precision, peak in sheet.peaks.items():
        made[precision] = board.multiprocessors * _per_clock(sheet)[precision] * board.boost_mhz * 1e6
        stated[precision] = peak.rate_flop_per_s
        tolerance[precision] = board.peaks if precision in ("fp32", "fp64") else board.tensor
    return [what for what in made if abs(stated[what] * factor / made[what] - 1) > tolerance[what]]


def _sheet(name: str) -> DataSheet:
    found = datasheet(name)
    assert found is not None, name
    return found


def test_every_sheet_has_its_board() -> None:
    assert {sheet.names[0] for sheet in sheets()} == BOARDS.keys()


@pytest.mark.parametrize("name", BOARDS)
def test_a_sheet_follows_from_its_board(name: str) -> None:
    sheet, board = _sheet(name), BOARDS[name]
    assert _slips(sheet, board) == []
    if sheet.l2_bytes is not None and board.l2_mib is not None:
        assert sheet.l2_bytes == board.l2_mib * 2**20
    if sheet.multiprocessors is not None:
        assert sheet.multiprocessors == board.multiprocessors
    if sheet.bus_bits is not None:
        assert sheet.bus_bits == board.bus_bits


@pytest.mark.parametrize("name", BOARDS)
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_factor_of_two_would_show_in_each_figure(name: str, factor: float) -> None:
    sheet = _sheet(name)
    assert _slips(sheet, BOARDS[name], factor) == ["bandwidth", *sheet.peaks]


@pytest.mark.parametrize("names", FORM_FACTORS, ids=lambda n: n[0])
def test_another_form_factor_would_show(names: tuple[str, ...]) -> None:
    for name in names:
        assert [other for other in names if not _slips(_sheet(name), BOARDS[other])] == [name]


@pytest.mark.parametrize("sheet", [s for s in sheets() if s.bus_bits], ids=lambda s: s.names[0])
def test_the_bandwidth_is_that_of_the_sheets_own_bus_and_data_rate(sheet: DataSheet) -> None:
    assert sheet.bus_bits
    assert sheet.bits_per_s_of_a_pin
    assert sheet.bandwidth_bytes_per_s == pytest.approx(sheet.bus_bits / 8 * sheet.bits_per_s_of_a_pin, rel=0.003)


@pytest.mark.parametrize("sheet", [s for s in sheets() if s.multiprocessors], ids=lambda s: s.names[0])
def test_the_peaks_are_those_of_the_multiprocessors_at_the_sheets_clock(sheet: DataSheet) -> None:
    assert sheet.multiprocessors
    for precision, peak in sheet.peaks.items():
        assert peak.at_clock_hz, precision
        made = sheet.multiprocessors * _per_clock(sheet)[precision] * peak.at_clock_hz
        assert peak.rate_flop_per_s == pytest.approx(made, rel=0.006), precision
