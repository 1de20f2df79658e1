"""Runs of compositions and fused variants with times that follow from planted bandwidths, made without a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from zlib import crc32

import msgspec
import sample_runs as samples

from kernelviz.bench.fusion import declared_at
from kernelviz.core import Figure, Plan, Problem, Result, Roof, Run
from kernelviz.core.result import Accuracy, Kernel, Timing
from kernelviz.metrics.fusion import FusionRow, fusion_rows
from kernelviz.metrics.fusion_prediction import LaunchCost
from kernelviz.ops import catalogue

BANDWIDTH = 4.0e12
CACHED = 8.0e12
LAUNCH = LaunchCost(1e-6, "empty_kernel")
ROOFS = (
    *(Roof(name="copy", level="dram", moved_bytes=2**size, bandwidth_bytes_per_s=BANDWIDTH) for size in (27, 32)),
    *(
        Roof(name="read2_write1", level="dram", moved_bytes=2**size, bandwidth_bytes_per_s=BANDWIDTH)
        for size in (27, 32)
    ),
    *(Roof(name="read", level="dram", moved_bytes=2**size, bandwidth_bytes_per_s=BANDWIDTH) for size in (27, 32)),
    Roof(name="copy", level="l2", moved_bytes=2**23, bandwidth_bytes_per_s=CACHED),
    Roof(name="matmul", precision="bf16", unit="tensor", rate_flop_per_s=800e12),
    Roof(name="fma", precision="bf16", unit="vector", rate_flop_per_s=120e12),
    Roof(name="launch", what="empty_kernel", time_s=1e-6),
)
"""Roofs that leave nothing to interpolate in memory."""
LARGE = {"m": 16384, "n": 8192}
"""An intermediate tensor of 256 MiB, more than four times the cache of 60 MiB."""


def result(problem: Problem, variant: str, time_s: float, *, kernels: int = 1, local_bytes: int = 0) -> Result:
    """A correct result of that time."""
    op = catalogue()[problem.op]
    seed = crc32(f"{problem.key} {variant} {time_s}".encode())  # whatever the order of the tests
    return Result(
        problem=problem,
        variant=variant,
        outcome=Timing(device_cold_s=samples.figure(time_s, seed=seed)),
        accuracy=Accuracy(passed=True, relative_l2=1e-3, max_abs=0.01, worst_of_bound=0.4, seeds=3),
        cost=op.cost_of(problem),
        kernels=tuple(
            Kernel(name=f"k{i}", duration_s=time_s / kernels, local_memory_bytes=local_bytes) for i in range(kernels)
        ),
        backend=op.variant_named(variant).backend,
    )


def run(op: str, times_s: Mapping[str, float] | Sequence[Result], sizes: Sequence[Mapping[str, int]] = (LARGE,)) -> Run:
    """A run of the op with these times of each variant at each size, or with these results."""
    problems = tuple(Problem(op=op, sizes=dict(one), dtype="bf16") for one in sizes)
    if isinstance(times_s, Mapping):
        found = [
            result(problem, variant, time_s, kernels=2 if "then" in variant or "stepwise" in variant else 1)
            for problem in problems
            for variant, time_s in times_s.items()
        ]
    else:
        found = list(times_s)
    made = samples.run([], id=f"fusion-{op}", op=op, sizes=sizes)
    variants = tuple(dict.fromkeys(one.variant for one in found))
    plan = Plan(problems=problems, variants=variants, baseline=variants[0], device="cuda:0")
    environment = msgspec.structs.replace(made.environment, roofs=ROOFS)
    return msgspec.structs.replace(made, plan=plan, results=tuple(found), environment=environment)


def rows_of(made: Run, roofs: Sequence[Roof] = ROOFS, launch: LaunchCost | None = LAUNCH) -> tuple[FusionRow, ...]:
    """The rows of a run by the declaration of its op."""
    op = catalogue()[made.plan.op]
    assert op.fusion is not None
    return fusion_rows(made, roofs, launch, partial(declared_at, op, op.fusion))


def rows(some: bool = True) -> tuple[FusionRow, ...]:
    """A sweep of `reshape_elementwise` on an H200; nothing if not `some`."""
    sizes = [{"m": 2**e, "n": 8192} for e in (8, 10, 12, 14, 15)] if some else []
    if not sizes:
        return ()
    results = [
        one
        for size in sizes
        for problem in (Problem(op="reshape_elementwise", sizes=size, dtype="bf16"),)
        for moved_s in (4 * size["m"] * size["n"] / BANDWIDTH,)
        for one in (
            result(problem, "cuda_stepwise", 2 * moved_s + 2e-6, kernels=2),
            result(problem, "contiguous_then_op", 7 * moved_s + 2e-6, kernels=2),
            result(problem, "triton_fused", moved_s + 1e-6),
        )
    ]
    return rows_of(run("reshape_elementwise", results, sizes))


def with_time(row_run: Run, variant: str, time_s: float) -> Run:
    """The run with another time of one variant."""
    replaced = tuple(
        result(r.problem, variant, time_s, kernels=len(r.kernels)) if r.variant == variant else r
        for r in row_run.results
    )
    return msgspec.structs.replace(row_run, results=replaced)


def figure_of(one: Result) -> Figure:
    """Its cold device time."""
    assert one.timing is not None
    assert one.timing.device_cold_s is not None
    return one.timing.device_cold_s
