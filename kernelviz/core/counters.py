"""Hardware counters of one call, by kernel, as a profiler (ncu) read them. Times are in seconds, shares are fractions of 1."""

from typing import Literal

from kernelviz.core.problem import Problem, Struct

StallReason = Literal[
    "barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected", "selected", "short_scoreboard",
    "sleeping", "tex_throttle", "wait",
]  # fmt: skip
"""The states of a warp, by the names of Nsight Compute. ``selected``: its instruction is issued. All others: it waits."""
Pipe = Literal["fma", "alu", "xu", "lsu", "tensor"]
"""Execution units of a multiprocessor: multiply-add, integer and logic, special functions, loads and stores, tensor cores."""
Replay = Literal["application", "kernel"]
"""How the passes of ncu repeat a call. ``application``: the program is started for each pass, so that each pass has the state of
the caches that the program made. ``kernel``: the kernel is repeated in the same process."""

Scope = Literal["all", "traffic"]
"""Which counters are read. ``traffic``: durations and the bytes of DRAM, L2 and global memory, which take fewer passes."""

MOST_KERNELS = 512
"""Most kernels of one call whose counters are stored."""
END_MARKER = "kernelviz_end_marker"
"""The name of the kernel that ends a timed call, and that divides the output of a profiler into cases."""
SECTOR_BYTES = 32
"""The unit of transfers between L1, L2 and DRAM on every architecture since Maxwell (CUDA C++ Best Practices Guide)."""


class KernelCounters(Struct, frozen=True, kw_only=True):
    """The counters of one kernel. A counter that was not read is None; a stall reason that was not read is not in `stalls`.

    `duration_s` and `clock_hz` (SM clock): while it was profiled. `dram_*_bytes`: between L2 and device memory. `l2_bytes`: all
    traffic of the L2, of which reads and writes are parts. `l1_bytes`: all traffic of the L1. `*_hit_fraction`: of the sectors
    that were looked up. `load_*`, `store_*`: instructions of warps (requests) on global memory, and the 32-byte sectors that
    they touched. `*_fraction` of a pipe: busy, of the cycles of the whole kernel. `issue_fraction`: instructions that a
    scheduler issued per active cycle (at most 1). `active_warps`, `eligible_warps`: of a scheduler, mean over its active
    cycles; an eligible warp could issue. `stalls`: mean number of warps in each state for each issued instruction.
    """

    kernel: str
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers_per_thread: int | None = None
    duration_s: float | None = None
    clock_hz: float | None = None
    dram_read_bytes: int | None = None
    dram_written_bytes: int | None = None
    l2_bytes: int | None = None
    l2_read_bytes: int | None = None
    l2_written_bytes: int | None = None
    l2_hit_fraction: float | None = None
    l1_bytes: int | None = None
    l1_hit_fraction: float | None = None
    load_requests: int | None = None
    load_sectors: int | None = None
    store_requests: int | None = None
    store_sectors: int | None = None
    fma_fraction: float | None = None
    alu_fraction: float | None = None
    xu_fraction: float | None = None
    lsu_fraction: float | None = None
    tensor_fraction: float | None = None
    issue_fraction: float | None = None
    active_warps: float | None = None
    eligible_warps: float | None = None
    stalls: dict[StallReason, float] = {}


class Counters(Struct, frozen=True, kw_only=True):
    """The counters of one call. `kernels`: in the order of their launch; copies and memsets of the driver are not among them.

    `version`: of ncu, None if unknown. `cold`: whether the caches were flushed before the call; None if unknown. `replay`: how
    the passes repeated the call; None if unknown. `launches`: of how many calls or launches this is one (a file of ncu may hold
    several launches of a kernel; the one with the median duration is kept). `not_read`: metrics that this ncu does not know.
    """

    kernels: tuple[KernelCounters, ...]
    tool: Literal["ncu"] = "ncu"
    version: str | None = None
    measured_at: str | None = None
    cold: bool | None = None
    replay: Replay | None = None
    launches: int = 1
    not_read: tuple[str, ...] = ()


class CaseCounters(Struct, frozen=True, kw_only=True):
    """The counters of a case. `run_id`: of the run with which they are stored; None if they are stored nowhere."""

    problem: Problem
    variant: str
    counters: Counters
    run_id: str | None = None
