"""Runs as a machine would have measured them, made without one: for charts, pages and documents."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from kernelviz.core.problem import Method, Plan, Problem
from kernelviz.core.result import (
    Accuracy,
    Block,
    Conditions,
    Failure,
    Figure,
    Kernel,
    Preparation,
    Result,
    Stage,
    Timing,
)
from kernelviz.core.run import Device, Environment, Roof, Run, Status
from kernelviz.ops import catalogue

H200 = Device(
    id="cuda:0",
    kind="cuda",
    name="NVIDIA H200",
    uuid="GPU-00000000-0000-0000-0000-000000000001",
    memory_bytes=150_000_000_000,
    last_level_cache_bytes=60 * 2**20,
    multiprocessors=132,
    compute_capability=(9, 0),
    driver="580.159",
    driver_cuda="13.0",
)
CPU = Device(
    id="cpu",
    kind="cpu",
    name="AMD EPYC 9654",
    uuid="cpu-sample",
    memory_bytes=32 * 2**30,
    last_level_cache_bytes=32 * 2**20,
    threads=2,
)
H200_ROOFS = (
    Roof(name="read", bandwidth_bytes_per_s=4.46e12, measured_at="2026-11-21T10:42:00+00:00", timer="cupti"),
    Roof(name="copy", bandwidth_bytes_per_s=4.40e12, measured_at="2026-11-21T10:42:00+00:00", timer="cupti"),
    Roof(name="matmul", precision="bf16", rate_flop_per_s=798e12, measured_at="2026-11-21T10:42:00+00:00"),
    Roof(name="matmul", precision="fp32", rate_flop_per_s=51e12, measured_at="2026-11-21T10:42:00+00:00"),
)
LADDER: Mapping[str, float] = {
    "composite_eager": 0.16,
    "torch_eager": 0.60,
    "torch_compile": 0.93,
    "triton_block_per_row": 0.91,
    "triton_persistent": 0.96,
}
"""Share of the roof that each rmsnorm variant reaches in these samples."""


@functools.cache
def figure(
    time_s: float, *, blocks: int = 24, size: int = 20, seed: int = 0, clock_hz: float | None = 1.98e9
) -> Figure:
    """A time with samples in blocks, all variants sharing the rounds 0, 1, 2, …"""
    rng = np.random.default_rng(seed)
    samples = time_s * (1 + np.abs(rng.normal(0, 0.004, blocks * size)))
    means = samples.reshape(blocks, size).mean(axis=1)
    return Figure(
        estimate=float(np.median(means)),
        low=float(np.median(means) * 0.998),
        high=float(np.median(means) * 1.002),
        samples=tuple(float(s) for s in samples),
        blocks=tuple(Block(size=size, started_s=0.01 * i, clock_hz=clock_hz, round=i) for i in range(blocks)),
        timer="cupti" if clock_hz else "host",
        launch="graph" if clock_hz else "call",
    )


def timed(problem: Problem, variant: str, share: float, *, device: Device = H200, again: bool = False) -> Result:
    """A correct result at that share of the device's bandwidth plus a launch, whichever is longer."""
    cost = catalogue()[problem.op].cost_of(problem)
    bandwidth, rate = (4.40e12, 600e12) if device.kind == "cuda" else (2.0e10, 1.0e11)
    floor_s = 1.5e-6 if device.kind == "cuda" else 1.2e-5
    time_s = floor_s + max(cost.moved_bytes / bandwidth, cost.work_flop / rate) / share
    clock = 1.98e9 if device.kind == "cuda" else None
    seed = sum(variant.encode()) + sum(problem.sizes.values())
    return Result(
        problem=problem,
        variant=variant,
        outcome=Timing(
            device_cold_s=figure(time_s, seed=seed, clock_hz=clock),
            again_s=figure(time_s, seed=seed + 1, clock_hz=clock) if again else None,
        ),
        accuracy=Accuracy(passed=True, relative_l2=1.2e-3, max_abs=0.015, worst_of_bound=0.41, seeds=3, rule="sample"),
        cost=cost,
        conditions=Conditions(sm_clock_hz=clock, temperature_c=41.0, power_w=320.0, other_processes=0),
        kernels=(
            Kernel(
                name=f"{variant}_kernel",
                duration_s=time_s,
                grid=(132, 1, 1),
                block=(256, 1, 1),
                registers_per_thread=40,
                shared_memory_bytes=1024,
            ),
        )
        if device.kind == "cuda"
        else (),
        preparation=Preparation(bind_s=2.4 if variant == "torch_compile" else 0.004, first_call_s=0.003, check_s=0.02),
        backend="torch",
        source_digest="0123456789abcdef",
    )


def failed(problem: Problem, variant: str, stage: Stage, message: str = "") -> Result:
    """A failure; a wrong one keeps the (good) time that it took."""
    cost = catalogue()[problem.op].cost_of(problem)
    wrong = stage == "wrong"
    return Result(
        problem=problem,
        variant=variant,
        outcome=Failure(
            stage=stage,
            message=message or f"sample of the stage {stage}",
            timing=Timing(device_cold_s=figure(cost.moved_bytes / 4.4e12)) if wrong else None,
        ),
        accuracy=Accuracy(passed=False, relative_l2=0.9, max_abs=3.0, worst_of_bound=812.0, seeds=3) if wrong else None,
        cost=cost,
    )


def problems(op: str, sizes: Sequence[Mapping[str, int]], dtype: str = "bf16") -> tuple[Problem, ...]:
    return tuple(Problem(op=op, sizes=dict(s), dtype=dtype) for s in sizes)


RMSNORM_SWEEP = tuple({"m": 2**27 // n, "n": n} for n in (1024, 2048, 4096, 8192, 16384, 32768))


def run(
    results: Sequence[Result] | None = None,
    *,
    id: str = "sample",
    op: str = "rmsnorm",
    sizes: Sequence[Mapping[str, int]] = RMSNORM_SWEEP,
    dtype: str = "bf16",
    shares: Mapping[str, float] = LADDER,
    device: Device = H200,
    roofs: tuple[Roof, ...] = H200_ROOFS,
    status: Status = "finished",
    title: str = "",
) -> Run:
    """A run of `shares` over `sizes`, or with exactly the given results."""
    asked = problems(op, sizes, dtype)
    baseline = catalogue()[op].baseline
    made = (
        [timed(p, v, share, device=device, again=v == baseline) for p in asked for v, share in shares.items()]
        if results is None
        else list(results)
    )
    variants = tuple(dict.fromkeys([*shares, *(r.variant for r in made)]))
    return Run(
        id=id,
        title=title,
        created_at="2026-11-21T11:00:00+00:00",
        status=status,
        environment=Environment(
            device=device,
            host="bench-01",
            platform="Linux",
            python="3.12.3",
            kernelviz="0.1.0",
            versions={"torch": "2.13.0", "triton": "3.7.1"},
            roofs=roofs,
        ),
        method=Method(),
        plan=Plan(problems=asked, variants=variants, baseline=baseline, device=device.id),
        results=tuple(made),
    )


def mixed() -> Run:
    """Every look a case can have: right, wrong (and faster than all), each other failure, and one without a result."""
    made: list[Result] = []
    for problem in problems("rmsnorm", RMSNORM_SWEEP):
        made.append(timed(problem, "composite_eager", 0.16))
        made.append(timed(problem, "torch_eager", 0.60, again=True))
        made.append(timed(problem, "torch_compile", 0.93))
        made.append(failed(problem, "triton_block_per_row", "wrong", "y[0, 3] is 0.25, should be 1.25"))
        stage: Stage = "out_of_memory" if problem.sizes["n"] >= 16384 else "compile"
        made.append(failed(problem, "triton_persistent", stage, "ptxas fatal: <b>too much</b> shared memory"))
    return run(made, id="mixed")
