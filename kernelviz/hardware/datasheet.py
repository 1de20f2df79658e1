"""What the makers' data sheets promise. A GPU that is not listed has no promise: nothing here is a guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True, slots=True)
class Peak:
    """A dense peak rate and the clock for which the sheet states it; a GPU that runs faster than that can pass it."""

    rate_flop_per_s: float
    at_clock_hz: float

    def at(self, clock_hz: float | None) -> float:
        """The same peak at a clock, never below the sheet's.

        >>> round(Peak(rate_flop_per_s=989.4e12, at_clock_hz=1.83e9).at(1.98e9) / 1e12)
        1070
        """
        return self.rate_flop_per_s * max(1.0, (clock_hz or 0.0) / self.at_clock_hz)


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSheet:
    """Theoretical ceilings of a GPU. `peaks` by precision, without sparsity, with the fastest accumulation that the
    hardware offers; ``fp32`` is IEEE arithmetic on CUDA cores, ``fp64`` uses tensor cores where they exist."""

    names: tuple[str, ...]
    bandwidth_bytes_per_s: float
    l2_bytes: int
    peaks: Mapping[str, Peak]
    source: str


def datasheet(name: str) -> DataSheet | None:
    """The sheet of the GPU with exactly that name, as its driver spells it; None for a slice of one or an unknown GPU.

    >>> datasheet("NVIDIA H200").bandwidth_bytes_per_s
    4800000000000.0
    >>> datasheet("NVIDIA H200 MIG 1g.18gb") is None
    True
    """
    return next((sheet for sheet in SHEETS if name in sheet.names), None)


def _peaks(*, clock_hz: float, **tera_flop_per_s: float) -> dict[str, Peak]:
    return {p: Peak(rate_flop_per_s=rate * 1e12, at_clock_hz=clock_hz) for p, rate in tera_flop_per_s.items()}


# Hopper's sheets state tensor-core peaks of fp16, bf16 and tf32 at a lower boost clock than the others.
_HOPPER_SXM = MappingProxyType(
    _peaks(clock_hz=1.83e9, fp16=989.4, bf16=989.4, tf32=494.7) | _peaks(clock_hz=1.98e9, fp32=66.9, fp64=66.9)
)
_HOPPER_PAPER = "NVIDIA H100 Tensor Core GPU Architecture (white paper, v1.04), appendix A"
_AMPERE = MappingProxyType(_peaks(clock_hz=1.41e9, fp16=311.9, bf16=311.9, tf32=155.9, fp32=19.5, fp64=19.5))
_AMPERE_SHEET = "NVIDIA A100 Tensor Core GPU data sheet; NVIDIA A100 Tensor Core GPU Architecture (white paper, v1.0)"
_ADA_PAPER = "NVIDIA Ada GPU Architecture (white paper, v2.02), appendix A"

SHEETS = (
    DataSheet(
        names=("NVIDIA H200",),
        bandwidth_bytes_per_s=4.8e12,
        l2_bytes=60 * 2**20,  # as its driver reports it (measured for this project)
        peaks=_HOPPER_SXM,
        source=f"NVIDIA H200 Tensor Core GPU data sheet (SXM): 4.8 TB/s; the same GPU as the H100 SXM: {_HOPPER_PAPER}",
    ),
    DataSheet(
        names=("NVIDIA H100 80GB HBM3",),
        bandwidth_bytes_per_s=3.352e12,
        l2_bytes=50 * 2**20,
        peaks=_HOPPER_SXM,
        source=_HOPPER_PAPER,
    ),
    DataSheet(
        names=("NVIDIA H100 PCIe",),
        bandwidth_bytes_per_s=2.039e12,
        l2_bytes=50 * 2**20,
        peaks=MappingProxyType(
            _peaks(clock_hz=1.62e9, fp16=756.4, bf16=756.4, tf32=378.2) | _peaks(clock_hz=1.755e9, fp32=51.2, fp64=51.2)
        ),
        source=_HOPPER_PAPER,
    ),
    DataSheet(
        names=("NVIDIA A100-SXM4-80GB",),
        bandwidth_bytes_per_s=2.039e12,
        l2_bytes=40 * 2**20,
        peaks=_AMPERE,
        source=_AMPERE_SHEET,
    ),
    DataSheet(
        names=("NVIDIA A100 80GB PCIe",),
        bandwidth_bytes_per_s=1.935e12,
        l2_bytes=40 * 2**20,
        peaks=_AMPERE,
        source=_AMPERE_SHEET,
    ),
    DataSheet(
        names=("NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB"),
        bandwidth_bytes_per_s=1.555e12,
        l2_bytes=40 * 2**20,
        peaks=_AMPERE,
        source=_AMPERE_SHEET,
    ),
    DataSheet(
        names=("NVIDIA GeForce RTX 4090",),
        bandwidth_bytes_per_s=1.008e12,
        l2_bytes=72 * 2**20,
        # fp16 with fp16 accumulation; with fp32 accumulation it is half of that.
        peaks=MappingProxyType(_peaks(clock_hz=2.52e9, fp16=330.3, bf16=165.2, tf32=82.6, fp32=82.6)),
        source=_ADA_PAPER,
    ),
    DataSheet(
        names=("NVIDIA GeForce RTX 3090 Ti",),
        bandwidth_bytes_per_s=1.008e12,
        l2_bytes=6 * 2**20,
        peaks=MappingProxyType(_peaks(clock_hz=1.86e9, fp16=160.0, bf16=80.0, tf32=40.0, fp32=40.0)),
        source=_ADA_PAPER,
    ),
    DataSheet(
        names=("NVIDIA GeForce RTX 3090",),
        bandwidth_bytes_per_s=936.2e9,
        l2_bytes=6 * 2**20,
        peaks=MappingProxyType(_peaks(clock_hz=1.695e9, fp16=142.0, bf16=71.0, tf32=35.6, fp32=35.6)),
        source="NVIDIA Ampere GA102 GPU Architecture (white paper, v2.1), appendix A",
    ),
)
