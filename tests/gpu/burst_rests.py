"""Times and clocks of calls with a rest before each batch of blocks, and without any: whether a burst needs its rests.

    python tests/gpu/burst_rests.py [SECONDS]

Each call is measured for so many seconds (by default 0.9) with rests, without, and both once more. docs/measuring.md, "Rests
between bursts", has such figures.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import Any

from kernelviz.hardware import telemetry
from kernelviz.measure.session.device_session import DeviceSession, open_session
from kernelviz.measure.timing import burst
from kernelviz.measure.timing.capture import CudaTimed
from kernelviz.ops import op_named

CALLS: tuple[tuple[str, dict[str, int], str, str], ...] = (
    ("add", {"n": 2**12}, "fp32", "cuda_scalar"),
    ("add", {"n": 2**20}, "fp32", "triton_block"),
    ("add", {"n": 2**28}, "fp32", "triton_block"),
    ("softmax", {"m": 4096, "n": 4096}, "bf16", "torch_eager"),
    ("gelu", {"n": 2**26}, "fp16", "cuda_fast_math"),
    ("copy", {"n": 2**30, "o": 0}, "fp32", "cuda_vec16"),
    ("matmul", {"m": 1024, "n": 1024, "k": 1024}, "bf16", "torch_eager"),
    ("matmul", {"m": 4096, "n": 4096, "k": 4096}, "bf16", "torch_eager"),
    ("matmul", {"m": 8192, "n": 8192, "k": 8192}, "bf16", "torch_eager"),
)
BATCH_S = 0.04


def prepared(session: DeviceSession, op: str, sizes: dict[str, int], dtype: str, variant: str) -> CudaTimed:
    """The call, ready to be timed."""
    problem = op_named(op).problem(sizes, dtype)
    of_problem = op_named(op).of(problem)
    bound = session._bound(of_problem, problem)
    timed = bound.prepare(of_problem.variant_named(variant), session.timer, 1, lambda: None).timed
    assert isinstance(timed, CudaTimed)
    return timed


def measured(timer: Any, timed: CudaTimed, seconds: float, *, rests: bool) -> tuple[list[float], list[float]]:
    """The median of each block in us, and its clock in MHz."""
    timed.pace = burst.Pace(rested_hz=[1.0] * burst.LEAST_RESTED, needs_rests=rests)  # no clock is lower
    rounds = max(1, min(10, int(BATCH_S / timer.block_s(timed))))
    until_s = time.perf_counter() + seconds
    times_us: list[float] = []
    clocks_mhz: list[float] = []
    while time.perf_counter() < until_s:
        for (block,) in timer.collect([[timed]] * rounds):
            times_us.append(median(block.samples) * 1e6)
            clocks_mhz.append((block.clock_hz or 0.0) / 1e6)
    return times_us, clocks_mhz


def main(arguments: list[str]) -> int:
    seconds = float(arguments[0]) if arguments else 0.9
    session = open_session("cuda:0")
    ready = [(f"{op} {dtype} {sizes} {variant}", (op, sizes, dtype, variant)) for op, sizes, dtype, variant in CALLS]
    calls = {name: prepared(session, *call) for name, call in ready}
    for rests in (True, False) * 2:
        for name, timed in calls.items():
            time.sleep(0.3)
            times_us, clocks_mhz = measured(session.timer, timed, seconds, rests=rests)
            power_w = telemetry.read(session.device, pcie=False).power_w
            print(  # noqa: T201
                f"{'with' if rests else 'without'} rests, {name}: {median(times_us):.3f} us, {median(clocks_mhz):.0f} MHz, "
                f"{power_w} W, {len(times_us)} blocks",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
