"""Cases whose limiter is known, with the figures that an H200 gave for them or, where none shipped, figures of that kind."""

from __future__ import annotations

import earlier_runs
import msgspec
import sample_runs as samples

from kernelviz.core.problem import Cost, Problem
from kernelviz.core.result import Kernel, Result, Timing
from kernelviz.core.run import Device, Roof, Run

ADD, MATMUL, RMSNORM, SCALE = (f"h200-{op}" for op in ("add", "matmul", "rmsnorm", "scale"))


def machine(run: str = ADD) -> tuple[Device, tuple[Roof, ...]]:
    """The H200 that the shipped runs were measured on, with its roofs."""
    environment = earlier_runs.load(run).environment
    return environment.device, environment.roofs


def real(run: str, variant: str, **sizes: int) -> Result:
    """A measured case."""
    return next(r for r in earlier_runs.load(run).results if r.variant == variant and r.problem.sizes == sizes)


def planted(
    cold_s: float,
    *,
    cost: Cost | None,
    kernels: tuple[Kernel, ...] = (),
    warm_s: float | None = None,
    busy_s: float | None = None,
    op: str = "planted",
) -> Result:
    """A correct case with those figures."""
    return Result(
        problem=Problem(op=op, sizes={"n": 1}, dtype="fp32"),
        variant="planted",
        outcome=Timing(
            device_cold_s=samples.figure(cold_s),
            device_warm_s=samples.figure(warm_s) if warm_s else None,
            busy_s=samples.figure(busy_s) if busy_s else None,
        ),
        cost=cost,
        kernels=kernels,
    )


def kernel(
    duration_s: float, *, blocks: int = 100_000, threads: int = 256, registers: int = 32, shared: int = 0
) -> Kernel:
    return Kernel(
        name="k",
        duration_s=duration_s,
        grid=(blocks, 1, 1),
        block=(threads, 1, 1),
        registers_per_thread=registers,
        shared_memory_bytes=shared,
    )


HALF_GIB = Cost(work_flop=0, read_bytes=2**28, written_bytes=2**28)
"""A copy of 256 MiB: 0.123 ms at the H200's 4.35 TB/s."""


def empty_kernel() -> Result:
    return planted(0.69e-6, cost=Cost(work_flop=0, read_bytes=0, written_bytes=0), kernels=(kernel(0.69e-6, blocks=1),))


def strided_copy() -> Result:
    """Each 4 bytes from and into another sector of 32, at full occupancy: tests/planted_limits.cu on an H200."""
    steps = (kernel(1.456e-3, blocks=2**18, registers=16),)
    return planted(1.456e-3, warm_s=1.459e-3, cost=HALF_GIB, kernels=steps)


def scalar_copy() -> Result:
    """4 bytes a thread side by side, one load of each under way at once."""
    return real(SCALE, "cuda_scalar", n=2**21)


def naive_matmul() -> Result:
    return real(MATMUL, "cuda_naive", m=4096, n=4096, k=4096)


def big_copy() -> Result:
    return planted(0.124e-3, warm_s=0.126e-3, cost=HALF_GIB, kernels=(kernel(0.124e-3, blocks=2**16),))


def l2_sized() -> Result:
    """12 + 4 bytes an element of 2^21: 25 MB in an L2 of 60."""
    return real(ADD, "torch_eager", n=2**21)


def fused_chain() -> Result:
    return real(RMSNORM, "triton_block_per_row", m=65536, n=2048)


def unfused_chain() -> Result:
    return real(RMSNORM, "composite_eager", m=65536, n=2048)


def short_chain() -> Result:
    """Nine kernels on 64 KB, 0.1 µs apart. Each takes as long as a kernel that only loads and stores."""
    nine = tuple(kernel(1.3e-6, blocks=16) for _ in range(9))
    cost = Cost(work_flop=2**16, read_bytes=2**15, written_bytes=2**15)
    return planted(12.5e-6, busy_s=11.7e-6, cost=cost, kernels=nine)


def low_occupancy() -> Result:
    """Four blocks of one warp an SM, since each takes 48 KiB of shared memory: tests/planted_limits.cu on an H200."""
    only = kernel(1.581e-3, blocks=4 * 132, threads=32, registers=16, shared=48 * 1024)
    return planted(1.581e-3, warm_s=1.585e-3, cost=HALF_GIB, kernels=(only,))


def moved_to(run: Run, device: Device, roofs: tuple[Roof, ...]) -> Run:
    """The same results as if that device had given them."""
    return msgspec.structs.replace(
        run, environment=msgspec.structs.replace(run.environment, device=device, roofs=roofs)
    )
