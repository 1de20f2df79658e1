"""The issue rate: the most arithmetic that the units of a GPU can begin in a cycle, and the share of it that a case reaches at
the clock that was measured beside it.

A GPU under its power cap lowers its clock, so two runs of one kernel differ in FLOP/s, but not in cycles: the share of the issue
rate at the measured clock is the comparison *at equal clock*.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from kernelviz.core import Cost, Device, Figure, Problem, Roof
from kernelviz.metrics.roofline import contracts
from kernelviz.metrics.statistics import means_by_block

FLOP_PER_SM_AND_CLOCK: Mapping[tuple[int, int], Mapping[str, int]] = MappingProxyType(
    {
        # NVIDIA A100 Tensor Core GPU Architecture (white paper, v1.0), table 4: 108 SMs at 1,410 MHz.
        (8, 0): {"bf16": 2048, "fp16": 2048, "tf32": 1024, "int8": 4096, "fp32": 128, "fp64": 128},
        # NVIDIA Ampere GA102 GPU Architecture (white paper, v2.1), appendix A: RTX A6000, 84 SMs at 1,800 MHz.
        (8, 6): {"bf16": 1024, "fp16": 1024, "tf32": 512, "int8": 2048, "fp32": 256},
        # NVIDIA Ada GPU Architecture (white paper, v2.1), appendices: RTX 6000 Ada, 142 SMs at 2,505 MHz.
        (8, 9): {"bf16": 1024, "fp16": 1024, "tf32": 512, "fp8": 2048, "int8": 2048, "fp32": 256},
        # NVIDIA H100 Tensor Core GPU Architecture (white paper, v1.04), appendix A: 132 SMs at 1,830 MHz (fp32, fp64: 1,980).
        (9, 0): {"bf16": 4096, "fp16": 4096, "tf32": 2048, "fp8": 8192, "int8": 8192, "fp32": 256, "fp64": 256},
        # NVIDIA RTX PRO Blackwell GPU Architecture (white paper, v1.0), table 4: 188 SMs at 2,617 MHz.
        (12, 0): {"bf16": 1024, "fp16": 1024, "tf32": 512, "fp8": 2048, "int8": 2048, "fp32": 256},
    }
)
"""Dense flop per SM and clock by compute capability and precision, with accumulation in fp32 (int8: int32). ``fp32`` is IEEE
arithmetic on the CUDA cores, ``fp64`` uses tensor cores where they exist. What no document states is not here."""
HALF_ON_GEFORCE = frozenset({"bf16", "fp16", "tf32", "fp8"})
"""On GeForce cards, tensor cores accumulate in fp32 at half the rate of the professional cards of the same generation (GA102
white paper, table 2: RTX 3090, 71 TFLOP/s; Ada white paper, appendix: RTX 4090, 165.2; RTX Blackwell white paper: RTX 5090,
209.5)."""
GEFORCE = "NVIDIA GeForce "
"""How the driver names these cards (its README, "Supported NVIDIA GPU Products")."""
CONTRADICTED = frozenset({"NVIDIA L40"})
"""Its documents differ by a factor of two (bf16 181 or 362 TFLOP/s), so its tensor rates are unknown."""


def flop_per_sm_and_clock(device: Device, precision: str) -> int | None:
    """What one SM of the device can begin in a cycle; None if no document states it.

    >>> h200 = Device(id="cuda:0", kind="cuda", name="NVIDIA H200", uuid="", multiprocessors=132, compute_capability=(9, 0))
    >>> flop_per_sm_and_clock(h200, "bf16"), flop_per_sm_and_clock(h200, "fp4")
    (4096, None)
    """
    rates = FLOP_PER_SM_AND_CLOCK.get(device.compute_capability or (0, 0), {})
    rate = rates.get(precision)
    if (
        rate is None
        or device.kind != "cuda"
        or (device.name in CONTRADICTED and precision in HALF_ON_GEFORCE | {"int8"})
    ):
        return None
    return rate // 2 if device.name.startswith(GEFORCE) and precision in HALF_ON_GEFORCE else rate


def issue_rate_flop_per_s(device: Device, precision: str, clock_hz: float) -> float | None:
    """SMs x flop per SM and clock x clock; None if one of them is unknown.

    >>> h200 = Device(id="cuda:0", kind="cuda", name="NVIDIA H200", uuid="", multiprocessors=132, compute_capability=(9, 0))
    >>> round(issue_rate_flop_per_s(h200, "bf16", 1.83e9) / 1e12, 1)
    989.4
    """
    rate = flop_per_sm_and_clock(device, precision)
    return None if rate is None or not device.multiprocessors else device.multiprocessors * rate * clock_hz


@dataclass(frozen=True, slots=True)
class IssueShare:
    """A case compared with the issue rate. `fraction`: its share at the measured clock. `clock_hz`: the mean SM clock of its
    time. `rate_flop_per_s`: the issue rate at this clock."""

    fraction: float
    clock_hz: float
    rate_flop_per_s: float


def issue_share(problem: Problem, cost: Cost | None, figure: Figure | None, device: Device) -> IssueShare | None:
    """The share of the issue rate that a time reaches at the SM clock of its own blocks.

    In each block the time of a call times the clock is its number of cycles; the median of the blocks counts. None if the problem
    is not one of arithmetic, if a block has no clock (measured on the device, `Block.clock_hz`), or if the issue rate is unknown.
    """
    if cost is None or figure is None or not contracts(problem, cost):
        return None
    cycles, time_s = _cycles(figure), figure.estimate
    if cycles is None or time_s <= 0:
        return None
    clock_hz = cycles / time_s
    rate = issue_rate_flop_per_s(device, problem.precision, clock_hz)
    return None if rate is None else IssueShare(cost.work_flop / time_s / rate, clock_hz, rate)


def _cycles(figure: Figure) -> float | None:
    """The SM cycles of a call: the median over the blocks whose clock is known; None if fewer than half of them have one."""
    means_s = means_by_block(figure)
    known = [(mean_s, b.clock_hz) for mean_s, b in zip(means_s, figure.blocks or (), strict=False) if b.clock_hz]
    if not known or 2 * len(known) < len(means_s):
        return None
    return float(np.median([mean_s * clock_hz for mean_s, clock_hz in known]))


def roof_share(roof: Roof, device: Device) -> float | None:
    """The share of the issue rate, at the clock of its own measurement, that a measured arithmetic roof reaches. None for other
    roofs, and for multiply-adds of the vector units in precisions whose rate is that of the tensor cores."""
    if roof.rate_flop_per_s is None or roof.clock_hz is None or roof.precision is None:
        return None
    if roof.name == "fma" and roof.precision != "fp32":
        return None
    rate = issue_rate_flop_per_s(device, roof.precision, roof.clock_hz)
    return None if rate is None else roof.rate_flop_per_s / rate
