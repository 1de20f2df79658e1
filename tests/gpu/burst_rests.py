"""Times and clocks of calls with a rest before each batch of blocks, and without any: whether a burst needs its rests.

    python tests/gpu/burst_rests.py [SECONDS [TIMES]]

Each call is measured for so many seconds (by default 0.9) with rests and without, TIMES times (2) in turn; then calls that the
host times, with rests, without, and as a run decides. docs/measuring.md, "Rests between bursts", has such figures.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from types import SimpleNamespace
from typing import Any

from kernelviz.core import Method
from kernelviz.hardware import telemetry
from kernelviz.measure.session.binding import BoundVariant
from kernelviz.measure.session.device_session import DeviceSession, open_session
from kernelviz.measure.timing import burst
from kernelviz.measure.timing.capture import CudaTimed
from kernelviz.measure.timing.secondary import SecondaryTimings
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


def prepared(session: DeviceSession, op: str, sizes: dict[str, int], dtype: str, variant: str) -> BoundVariant:
    """The call, ready to be timed."""
    problem = op_named(op).problem(sizes, dtype)
    of_problem = op_named(op).of(problem)
    bound = session._bound(of_problem, problem)
    return bound.prepare(of_problem.variant_named(variant), session.timer, 1, lambda: None)


def measured(timer: Any, timed: CudaTimed, seconds: float, *, rests: bool) -> tuple[list[float], list[float]]:
    """The median of each block in us, and its clock in MHz."""
    timed.pace = pace(rests=rests)
    rounds = max(1, min(10, int(BATCH_S / timer.block_s(timed))))
    until_s = time.perf_counter() + seconds
    times_us: list[float] = []
    clocks_mhz: list[float] = []
    while time.perf_counter() < until_s:
        for (block,) in timer.collect([[timed]] * rounds):
            times_us.append(median(block.samples) * 1e6)
            clocks_mhz.append((block.clock_hz or 0.0) / 1e6)
    return times_us, clocks_mhz


def pace(*, rests: bool) -> burst.Pace:
    """Of a call that always rests, or never: no clock is lower than that of its blocks behind a rest."""
    return burst.Pace(rested_hz=[1.0] * burst.LEAST_RESTED, needs_rests=rests)


def called(session: DeviceSession, bound: BoundVariant, only: burst.Pace | None) -> str:
    """The times of the host's blocks as text: of a call from idle to done, of its graph, and of calls back to back. `only`: rest
    always or never, by this pace; None: as in a run."""
    timer: Any = session.timer
    paces: list[burst.Pace] = []

    def paced(pace: burst.Pace, coming_s: float, work: Any) -> object:
        paces.append(only or pace)
        return type(timer).paced(timer, paces[-1], coming_s, work)

    method = Method(budget_s=10.0, figures=("call", "graph", "loop"))
    watch: Any = SimpleNamespace(look=lambda: False)
    timings = SecondaryTimings(session.state, method, lambda: False, lambda fraction, only=None: None, watch)
    timer.paced = paced
    try:
        began_s = time.perf_counter()
        timing = timings.take([bound], bound.variant.name)[bound.variant.name]
        took_s = time.perf_counter() - began_s
    finally:
        del timer.paced
    figures = (timing.call_eager_s, timing.call_graph_s, timing.loop_s)
    times = ", ".join("none" if f is None else f"{f.estimate * 1e6:.2f}" for f in figures)
    if only is not None:
        return f"{times} us in {took_s:.2f} s"
    # The first pace is of the calls with which the device wakes; then one of each kind.
    kinds = list({id(pace): pace for pace in paces}.values())[1:]
    clocks = "; ".join(
        f"{'rests' if pace.needs_rests else 'no rests'}, {min(pace.rested_hz, default=0.0) / 1e6:.1f} to "
        f"{max(pace.rested_hz, default=0.0) / 1e6:.1f} MHz behind {len(pace.rested_hz)}"
        for pace in kinds
    )
    return f"{times} us in {took_s:.2f} s; {clocks}"


def main(arguments: list[str]) -> int:
    seconds = float(arguments[0]) if arguments else 0.9
    turns = int(arguments[1]) if len(arguments) > 1 else 2
    session = open_session("cuda:0")
    ready = [(f"{op} {dtype} {sizes} {variant}", (op, sizes, dtype, variant)) for op, sizes, dtype, variant in CALLS]
    calls = {name: prepared(session, *call) for name, call in ready}
    for rests in (True, False) * turns:
        for name, bound in calls.items():
            assert isinstance(bound.timed, CudaTimed)
            time.sleep(0.3)
            times_us, clocks_mhz = measured(session.timer, bound.timed, seconds, rests=rests)
            power_w = telemetry.read(session.device, pcie=False).power_w
            print(  # noqa: T201
                f"{'with' if rests else 'without'} rests, {name}: {median(times_us):.3f} us, {median(clocks_mhz):.0f} MHz, "
                f"{power_w} W, {len(times_us)} blocks",
                flush=True,
            )
    for how in ("with rests", "without rests", "as in a run") * turns:
        for name, bound in calls.items():
            time.sleep(0.3)
            told = called(session, bound, None if how == "as in a run" else pace(rests=how == "with rests"))
            print(f"{how}, by the host, {name}: {told}", flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
