"""Checks against other timers: torch.profiler, events in a graph, do_bench and ncu on the same calls, each in its own process.

Each has its own process because torch.profiler takes over CUPTI's callbacks, which are registered once, and because an
independent timer must not share memory and state with the instrument.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import msgspec

from kernelviz.core import Case, Kernel, Problem
from kernelviz.measure.selftest import children, ncu
from kernelviz.measure.selftest.hosted import cold
from kernelviz.measure.selftest.workbench import Finding, Workbench, probe
from kernelviz.measure.timing.trace import MARKER

CASES = tuple(
    Case(problem=problem, variant="torch_eager")
    for problem in (
        Problem(op="add", sizes={"n": 2**20}, dtype="fp32"),
        Problem(op="add", sizes={"n": 2**24}, dtype="fp32"),
        Problem(op="matmul", sizes={"m": 2048, "n": 2048, "k": 2048}, dtype="bf16"),
    )
)
PROFILER_S, NCU_FRACTION = 0.1e-6, 0.01


@probe(
    "How far apart are CUPTI and torch.profiler, beyond 0.1 us?",
    limit=0.03,
    unit="fraction",
)
def torch_profiler(at: Workbench) -> Finding:
    """The same method with torch.profiler's records; do_bench's times are reported as context, but not judged."""
    own, other = _own(at), _other(at, "kineto")
    figures = _beside(own, other, "kineto") | {f"{k}, do_bench_s": t for k, t in _other(at, "do_bench").items()}
    return Finding(max(0.0, *((abs(other[k] - own[k]) - PROFILER_S) / own[k] for k in own)), figures)


@probe("How far apart are CUPTI and the fallback by events in a graph?", limit=0.8e-6, unit="s")
def events_fallback(at: Workbench) -> Finding:
    """The error of times by events, which are used where CUPTI is not permitted."""
    own, other = _own(at), _other(at, "events")
    return Finding(max(abs(other[k] - own[k]) for k in own), _beside(own, other, "events"))


@probe("How far apart are CUPTI and ncu, beyond 1 %?", limit=1.3e-6, unit="s")
def ncu_duration(at: Workbench) -> Finding:
    """ncu's gpu__time_duration after the instrument's flush, without clock control; ncu itself adds about 1 us."""
    if ncu.path() is None:
        at.not_here("ncu is not on the PATH")
    own = _own(at)
    times_by_case = ncu_times(at, CASES)
    other = {key: one.seconds for key, one in times_by_case.items()}
    beyond = max(0.0, *(abs(other[k] - own[k]) - NCU_FRACTION * own[k] for k in own))
    return Finding(beyond, _beside(own, other, "ncu"))


def _own(at: Workbench) -> dict[str, float]:
    """The cold seconds of each case by the session."""
    if at.timer.name != "cupti":
        at.not_here(f"this device is timed by {at.timer.name}, not by CUPTI")
    seconds: dict[str, float] = {}
    for case in CASES:
        result = at.results(case.problem, (), case.variant, 1.0)[case.variant]
        seconds[case.problem.key] = cold(result).estimate
    return seconds


def _other(at: Workbench, timer: str) -> dict[str, float]:
    """The cold seconds of each case by another timer in its own process. Raises NotHere with that process's reason."""
    arguments = (at.device.id, timer, msgspec.json.encode(CASES).decode())
    code, output = children.output(at, children.module("kernelviz.measure.selftest.timer_probe", arguments))
    answer = next((line for line in reversed(output.splitlines()) if line.startswith("{")), None)
    if code != 0 or answer is None:
        raise RuntimeError(f"the {timer} timer ended with {code}: {' '.join(output[-600:].split())}")
    answered = json.loads(answer)
    if "not_here" in answered:
        at.not_here(answered["not_here"])
    return {str(key): float(time_s) for key, time_s in answered["seconds"].items()}


def _beside(own: Mapping[str, float], other: Mapping[str, float], name: str) -> dict[str, float]:
    return {f"{k}, cupti_s": t for k, t in own.items()} | {f"{k}, {name}_s": other[k] for k in own}


Shape = tuple[tuple[int, ...] | None, tuple[int, ...] | None, int | None]
"""A kernel's grid, block and registers per thread."""


def shape_of(kernel: Kernel) -> Shape:
    """The shape of a kernel that was traced in this process."""
    return kernel.grid, kernel.block, kernel.registers_per_thread


@dataclass(frozen=True, slots=True)
class NcuTime:
    """A call by ncu: the median over its repetitions of the sum of its kernels' durations, the clock of its longest kernel, and
    the shape of each kernel.

    torch.compile times its candidates in each process, and may launch another kernel under ncu than in this process: softmax
    2048 x 4096 used a kernel of 32 registers per thread under ncu (26.9 us), of 40 without (22.9 us; H200).
    """

    seconds: float
    clock_hz: float
    shapes: tuple[Shape, ...]

    @property
    def kernels(self) -> int:
        return len(self.shapes)


def ncu_times(at: Workbench, cases: Sequence[Case], most_s: float = children.MOST_S) -> dict[str, NcuTime]:
    """Every case by ncu in one process, by problem, or by case key where there are several variants. Raises NotHere.

    A case that does not bind there is left out. The caches are emptied by the instrument's flush, not by ncu's cache control,
    which empties more than the L2 (a bf16 product of 512^3 takes 5.1 us after it, 4.6 after the flush), and does so before each
    kernel of a call.
    """
    from kernelviz.measure.selftest.ncu_probe import TIMES

    metric, registers = "gpu__time_duration.sum", "launch__registers_per_thread"
    clock = "gpc__cycles_elapsed.avg.per_second"
    arguments = (at.device.id, msgspec.json.encode(list(cases)).decode())
    options = ("--cache-control", "none", "--metrics", f"{metric},{registers},{clock}")
    rows = ncu.profiled(at, "kernelviz.measure.selftest.ncu_probe", arguments, options, most_s)
    calls: list[list[ncu.Row]] = [[]]
    for row in rows:
        if MARKER in row["Kernel Name"]:
            calls.append([])
        else:
            calls[-1].append(row)
    if len(calls) - 1 != TIMES * len(cases):
        raise RuntimeError(f"ncu saw {len(calls) - 1} calls, {TIMES * len(cases)} were made")
    several = len({c.variant for c in cases}) > 1
    times_by_case: dict[str, NcuTime] = {}
    for index, case in enumerate(cases):
        mine = calls[index * TIMES : (index + 1) * TIMES]
        if all(mine):
            times_by_case[case.key if several else case.problem.key] = NcuTime(
                median(sum(ncu.quantity(row, metric) for row in call) for call in mine),
                median(ncu.quantity(max(call, key=lambda row: ncu.quantity(row, metric)), clock) for call in mine),
                tuple((ncu.dims(r, "Grid Size"), ncu.dims(r, "Block Size"), int(r[registers])) for r in mine[-1]),
            )
    return times_by_case
