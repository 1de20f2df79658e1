"""Do other timers agree? torch.profiler, events in a graph, do_bench and ncu on the same calls, each in its own process.

Its own process, because torch.profiler takes CUPTI's callbacks over, which are registered once, and because a second
opinion that shares memory and state with the first is half a one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import msgspec

from kernelviz.core.problem import Case, Problem
from kernelviz.core.result import Kernel
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
    """The same method under torch.profiler's records; do_bench is beside it as context, not judged."""
    own, other = _own(at), _other(at, "kineto")
    figures = _beside(own, other, "kineto") | {f"{k}, do_bench_s": t for k, t in _other(at, "do_bench").items()}
    return Finding(max(0.0, *((abs(other[k] - own[k]) - PROFILER_S) / own[k] for k in own)), figures)


@probe("How far apart are CUPTI and the fallback by events in a graph?", limit=0.8e-6, unit="s")
def events_fallback(at: Workbench) -> Finding:
    """Where CUPTI is refused, times come from events; this is what that costs in truth."""
    own, other = _own(at), _other(at, "events")
    return Finding(max(abs(other[k] - own[k]) for k in own), _beside(own, other, "events"))


@probe("How far apart are CUPTI and ncu, beyond 1 %?", limit=1.3e-6, unit="s")
def ncu_duration(at: Workbench) -> Finding:
    """gpu__time_duration behind our own flush, with no clock control; ncu adds about 1 us of its own."""
    if ncu.path() is None:
        at.not_here("ncu is not on the PATH")
    own = _own(at)
    times_by_case = ncu_times(at, CASES)
    other = {key: one.seconds for key, one in times_by_case.items()}
    beyond = max(0.0, *(abs(other[k] - own[k]) - NCU_FRACTION * own[k] for k in own))
    return Finding(beyond, _beside(own, other, "ncu"))


def _own(at: Workbench) -> dict[str, float]:
    """Case to cold seconds, by the session."""
    if at.timer.name != "cupti":
        at.not_here(f"this device is timed by {at.timer.name}, not by CUPTI")
    seconds: dict[str, float] = {}
    for case in CASES:
        result = at.results(case.problem, (), case.variant, 1.0)[case.variant]
        seconds[case.problem.key] = cold(result).estimate
    return seconds


def _other(at: Workbench, timer: str) -> dict[str, float]:
    """The same by another timer in a process of its own. Raises NotHere with that process's words."""
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
"""A kernel's grid, block and registers a thread."""


def shape_of(kernel: Kernel) -> Shape:
    """The same of a kernel that was traced here."""
    return kernel.grid, kernel.block, kernel.registers_per_thread


@dataclass(frozen=True, slots=True)
class NcuTime:
    """A call by ncu: the median over its repetitions of the sum of its kernels' durations, the clock of its longest kernel there,
    and what each kernel is made of.

    torch.compile times its candidates in each process, and may launch another kernel there than here: softmax 2048 x 4096
    one of 32 registers a thread under ncu (26.9 us), of 40 without (22.9 us; H200).
    """

    seconds: float
    clock_hz: float
    shapes: tuple[Shape, ...]

    @property
    def kernels(self) -> int:
        return len(self.shapes)


def ncu_times(at: Workbench, cases: Sequence[Case], most_s: float = children.MOST_S) -> dict[str, NcuTime]:
    """Every case by ncu, in one process; by problem, and variant where several are asked for. Raises NotHere.

    A case that does not bind there is left out. The caches are emptied by our flush, not by ncu's cache control: that empties
    more than the L2 (a bf16 product of 512^3 reads 5.1 us behind it, 4.6 behind ours), and does so before each kernel of a call.
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
