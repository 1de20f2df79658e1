"""The names that drivers report find the sheet of exactly that card, or none; each name is one that was seen.

Where: logs in public issues (their number behind the name), else the driver's own list of products, NVIDIA/
open-gpu-kernel-modules, README.md of driver 595.45.04, and NVIDIA's virtual GPU documents for the slices.
"""

from __future__ import annotations

import pytest

from kernelviz.core.run import Device
from kernelviz.hardware.datasheet import ceilings, datasheet

SEEN = {
    "NVIDIA H100 80GB HBM3": 3352,
    "NVIDIA H100 PCIe": 2039,
    "NVIDIA H100 NVL": 3900,
    "NVIDIA H200": 4800,  # NVIDIA/mig-parted 120 (PCI device 2335)
    "NVIDIA H200 NVL": 4800,
    "NVIDIA GH200 480GB": 4000,  # marin-community/marin 5446 (97,871 MiB)
    "NVIDIA GH200 144G HBM3e": 4900,
    "NVIDIA B200": 8000,  # vllm-project/vllm 16336
    "NVIDIA GB200": 8000,
    "NVIDIA A100-SXM4-80GB": 2039,  # influxdata/telegraf 5812
    "NVIDIA A100 80GB PCIe": 1935,  # NVIDIA/nvidia-container-toolkit 203
    "NVIDIA A100-SXM4-40GB": 1555,
    "NVIDIA A100-PCIE-40GB": 1555,
    "Tesla T4": 320,
    "NVIDIA GeForce RTX 4090": 1008,
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": 1792,
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": 1597,
}
"""Name and GB/s."""
ANOTHER_CARD = (
    *("NVIDIA H100", "NVIDIA H800", "NVIDIA H800 PCIe", "NVIDIA H20", "NVIDIA H20 NVL16", "NVIDIA B300 SXM6 AC"),
    *("NVIDIA GH200 120GB", "NVIDIA GB300", "NVIDIA GB10", "NVIDIA A100-SXM-64GB", "NVIDIA A100-PG509-200"),
    *("NVIDIA A800-SXM4-80GB", "NVIDIA A10G", "NVIDIA A10M", "NVIDIA L20", "NVIDIA L2", "NVIDIA RTX A4000H"),
    *("NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 5090 D", "NVIDIA GeForce RTX 5090 D v2", "Quadro RTX 4000"),
    *("NVIDIA GeForce RTX 4080 SUPER", "NVIDIA GeForce RTX 4070 Ti SUPER", "NVIDIA GeForce RTX 3070 Ti"),
)
LAPTOPS = (
    *(f"NVIDIA GeForce RTX {n} Laptop GPU" for n in ("3070", "3080 Ti", "4080", "4090", "5070 Ti", "5080", "5090")),
    *("NVIDIA RTX A4000 Laptop GPU", "NVIDIA RTX 5000 Ada Generation Laptop GPU"),
    *("NVIDIA GeForce RTX 2080 with Max-Q Design", "NVIDIA GeForce RTX 2070 with Max-Q Design"),
)
NAMES_OF_SEVERAL_CARDS = {
    "NVIDIA GeForce RTX 2080": "PCI 1E87 is a desktop's, 1E90 a laptop's (boost 1,590 MHz)",
    "NVIDIA GeForce RTX 2070": "PCI 1F07 is a desktop's, 1F10 a laptop's (boost 1,440 MHz)",
    "Quadro RTX 6000": "PCI 1E30 has 672 GB/s, the passive 1E78 624 GB/s",
    "NVIDIA GeForce RTX 3080": "PCI 2206 has 760 GB/s, 220A 912 GB/s",
    "NVIDIA GeForce RTX 3060": "12 GB at 360 GB/s or 8 GB at 240 GB/s",
    "NVIDIA GeForce RTX 3060 Ti": "PCI 2486 has 448 GB/s, 24C9 608 GB/s",
    "NVIDIA GeForce RTX 4070": "504 GB/s (GDDR6X) or 480 GB/s (GDDR6)",
}
NOT_A_WHOLE_CARDS_NAME = (
    *("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "NVIDIA H200 MIG 1g.18gb", "NVIDIA H100 80GB HBM3 MIG 7g.80gb"),
    *("NVIDIA A100-40C", "GRID T4-16Q", "NVIDIA RTX Pro 6000 Blackwell DC-1-24Q"),
    *("NVIDIA A100 80G...", "NVIDIA RTX PRO 6000 Blac...", "GeForce RTX 3090", "A100-SXM4-40GB"),
    *("", "H200", "nvidia h200", "NVIDIA H200 ", "NVIDIA GPU", "AMD EPYC", "AMD Instinct MI300X"),
)


@pytest.mark.parametrize(("name", "gigabytes_per_s"), SEEN.items())
def test_a_seen_name_finds_its_own_card(name: str, gigabytes_per_s: int) -> None:
    found = datasheet(name)
    assert found is not None
    assert found.bandwidth_bytes_per_s == gigabytes_per_s * 1e9


@pytest.mark.parametrize("name", [*ANOTHER_CARD, *LAPTOPS, *NAMES_OF_SEVERAL_CARDS, *NOT_A_WHOLE_CARDS_NAME])
def test_any_other_name_has_no_sheet_and_no_roof(name: str) -> None:
    assert datasheet(name) is None
    assert ceilings(name) == ()


def test_a_default_device_has_no_sheet() -> None:
    assert datasheet(Device(id="cuda:0", kind="cuda", name="NVIDIA GPU", uuid="").name) is None
