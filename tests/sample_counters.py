"""Hardware counters made by hand for results of a run; no GPU counted them."""

from __future__ import annotations

import msgspec

from kernelviz.core.counters import Counters, KernelCounters
from kernelviz.core.result import Result


def kernel(name: str = "k", **values: object) -> KernelCounters:
    """A kernel that moves bytes, as of 2^24 floats that are copied with one load per warp too many sectors."""
    known = {
        "grid": (65536, 1, 1), "block": (256, 1, 1), "registers_per_thread": 16, "duration_s": 50e-6, "clock_hz": 1.98e9,
        "dram_read_bytes": 67_108_864, "dram_written_bytes": 67_108_864, "l2_bytes": 140_000_000, "l2_read_bytes": 67_108_864,
        "l2_written_bytes": 67_108_864, "l2_hit_fraction": 0.5, "l1_bytes": 134_217_728, "l1_hit_fraction": 0.0,
        "load_requests": 524_288, "load_sectors": 2_097_152, "store_requests": 524_288, "store_sectors": 2_097_152,
        "fma_fraction": 0.05, "alu_fraction": 0.1, "xu_fraction": 0.0, "lsu_fraction": 0.2, "tensor_fraction": 0.0,
        "issue_fraction": 0.15, "active_warps": 14.0, "eligible_warps": 0.2,
        "stalls": {"long_scoreboard": 20.0, "lg_throttle": 5.0, "wait": 2.0, "selected": 1.0, "not_selected": 0.1},
    }  # fmt: skip
    return msgspec.convert({"kernel": name, **known, **values}, KernelCounters)


def counters(*kernels: KernelCounters) -> Counters:
    """As `kernelviz counters` stores them."""
    return Counters(
        kernels=kernels or (kernel(),),
        version="2025.3.1.0",
        measured_at="2026-11-25T12:00:00+00:00",
        cold=True,
        replay="application",
    )


def counted(result: Result, *kernels: KernelCounters) -> Result:
    """The result with counters."""
    return msgspec.structs.replace(result, counters=counters(*kernels))
