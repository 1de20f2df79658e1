"""Checks against other timers on the same calls.

Events of an untraced graph run in this process. Events in a graph, do_bench with torch.profiler after it, and ncu each run in a
process of their own, because torch.profiler takes over CUPTI's callbacks, which can only be registered once, and because an
independent timer must not share memory and state with the instrument.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import msgspec

from kernelviz.core import Case, Conditions, Kernel, Method, Problem, Result
from kernelviz.measure.selftest import children
from kernelviz.measure.selftest.children import dims, quantity
from kernelviz.measure.selftest.hosted import cold
from kernelviz.measure.selftest.ncu_probe import TIMES
from kernelviz.measure.selftest.workbench import Finding, NotHere, Workbench, probe
from kernelviz.measure.session.binding import BoundProblem
from kernelviz.measure.timing.cuda import CudaTimer
from kernelviz.measure.timing.events import EventStamps
from kernelviz.measure.timing.rounds import Rounds, Series
from kernelviz.measure.timing.timer import BoundLaunch
from kernelviz.measure.timing.trace import MARKER
from kernelviz.metrics.ncu_agreement import ADDS_MOST_S, NCU_FRACTION, NCU_S, middle_samples_s, unexplained_s
from kernelviz.ops import op_named

CASES = tuple(
    Case(problem=problem, variant="torch_eager")
    for problem in (
        Problem(op="add", sizes={"n": 2**20}, dtype="fp32"),
        Problem(op="add", sizes={"n": 2**24}, dtype="fp32"),
        Problem(op="matmul", sizes={"m": 2048, "n": 2048, "k": 2048}, dtype="bf16"),
    )
)
EMPTY = Case(problem=Problem(op="empty_launch", sizes={"k": 1}, dtype="fp32"), variant="cuda_launches")
PROFILER_S = 0.1e-6
RESOLVED_S = 0.8e-6
"""Resolution of events: they may differ from CUPTI by this much on a call that tracing does not change."""
TRACED_CASES = (
    Case(problem=Problem(op="add", sizes={"n": 2**20}, dtype="fp32"), variant="torch_eager"),
    Case(problem=Problem(op="add", sizes={"n": 2**24}, dtype="fp32"), variant="torch_eager"),
    # 65,536 blocks of 256 elements: on an H200 it takes 48 us, and 53 us while it is traced.
    Case(problem=Problem(op="copy", sizes={"n": 2**24}, dtype="fp32"), variant="cuda_scalar"),
    Case(problem=Problem(op="softmax", sizes={"m": 8192, "n": 8192}, dtype="bf16"), variant="torch_eager"),
    Case(problem=Problem(op="matmul", sizes={"m": 2048, "n": 2048, "k": 2048}, dtype="bf16"), variant="torch_eager"),
)


Shape = tuple[tuple[int, ...] | None, tuple[int, ...] | None, int | None]
"""A kernel's grid, block and registers per thread."""


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


@probe(
    "How far apart are CUPTI and torch.profiler, beyond 0.1 us?",
    limit=0.03,
    unit="fraction",
)
def torch_profiler(at: Workbench) -> Finding:
    """The same method with torch.profiler's records; do_bench's times are reported as context, but not judged."""
    own = _own(at)
    by_do_bench, other = _seconds_by(at, "do_bench", "kineto")
    figures = _beside(own, other, "kineto") | {f"{k}, do_bench_s": t for k, t in by_do_bench.items()}
    return Finding(max(0.0, *((abs(other[k] - own[k]) - PROFILER_S) / own[k] for k in own)), figures)


@probe("How far apart are CUPTI and the fallback by events in a graph?", limit=0.8e-6, unit="s")
def events_fallback(at: Workbench) -> Finding:
    """The error of times by events, which are used where CUPTI is not permitted."""
    own, (other,) = _own(at), _seconds_by(at, "events")
    return Finding(max(abs(other[k] - own[k]) for k in own), _beside(own, other, "events"))


@probe("How far apart are CUPTI and ncu, beyond 1 % and what ncu adds?", limit=NCU_S, unit="s")
def ncu_duration(at: Workbench) -> Finding:
    """ncu's gpu__time_duration after the instrument's flush, without clock control, less what ncu adds to an empty kernel.

    ncu adds 0.87 us to an empty kernel on an H200 and 1.43 us on an H100. It leaves the device idle between kernels, so its clock
    can be lower than here, and it measures at one place in memory only; see `unexplained_s`.
    """
    if children.path() is None:
        raise NotHere("ncu is not on the PATH")
    # Before ncu's process makes its context, which would make short kernels of this process longer.
    results = [(case, _own_result(at, case)) for case in (*CASES, EMPTY)]
    by_ncu = ncu_times(at, [case for case, _ in results])
    missing = [case.key for case, _ in results if case.key not in by_ncu]
    if missing:
        raise RuntimeError(f"ncu has no time of {', '.join(missing)}")
    empty_s = cold(results[-1][1]).estimate
    adds_s = by_ncu[EMPTY.key].seconds - empty_s
    figures = {"empty kernel, cupti_s": empty_s, "empty kernel, ncu_s": empty_s + adds_s}
    beyond = [0.0]
    for case, result in results[:-1]:
        ncu, name = by_ncu[case.key], case.problem.key
        own, clock_hz = cold(result), (result.conditions or Conditions()).sm_clock_hz
        figures |= {
            f"{name}, cupti_s": own.estimate,
            f"{name}, ncu_s": ncu.seconds,
            f"{name}, ncu_clock_hz": ncu.clock_hz,
        }
        if clock_hz is not None:
            figures[f"{name}, cupti_clock_hz"] = clock_hz
        apart_s = unexplained_s(own.estimate, middle_samples_s(own), clock_hz, ncu.seconds - adds_s, ncu.clock_hz)
        beyond.append(apart_s - NCU_FRACTION * own.estimate)
    plausible = 0 <= adds_s <= ADDS_MOST_S
    message = (
        ""
        if plausible
        else f"ncu adds {adds_s * 1e6:.2f} us to an empty kernel, expected are 0 to {ADDS_MOST_S * 1e6} us"
    )
    return Finding(max(beyond), figures, plausible and max(beyond) <= NCU_S, message)


@probe("How far is a time from that of the untraced call, beyond 0.8 us?", limit=0.01, unit="fraction")
def traced_calls(at: Workbench) -> Finding:
    """The product's time, with the cost of tracing subtracted, compared with events in a graph that is not traced."""
    figures: dict[str, float] = {}
    beyond = [0.0]
    for case in TRACED_CASES:
        at.go_on()
        both = two_timers(at, case)
        beyond.append((abs(both.own_s - both.untraced_s) - RESOLVED_S) / both.untraced_s)
        figures |= {
            f"{case.key}, told_s": both.own_s,
            f"{case.key}, untraced_s": both.untraced_s,
            f"{case.key}, taken_off_s": both.correction_s,
        }
    return Finding(max(beyond), figures)


@dataclass(frozen=True, slots=True)
class TwoTimers:
    """The cold seconds of a call by the session's timer, and by events round its graph without any tracer or profiler, which
    resolve RESOLVED_S: in one process and on the same tensors, whose place may change times. `correction_s` was subtracted from
    the former, for tracing."""

    own_s: float
    untraced_s: float
    correction_s: float


def two_timers(at: Workbench, case: Case) -> TwoTimers:
    """A call timed twice in this process. Raises NotHere where the device is not timed by a tracer, and whatever the variant
    raises."""
    launch = _bound(at, case)
    timed = at.timed(launch)
    return TwoTimers(at.figure(timed, 0.3).estimate, _untraced_s(at, launch), timed.correction_s)


def _bound(at: Workbench, case: Case) -> BoundLaunch:
    op = op_named(case.problem.op).of(case.problem)
    bound = BoundProblem(op, case.problem, at.where, at.room_bytes, at.device.name)
    return BoundLaunch(bound.bound_alone(op.variant_named(case.variant)))


def _untraced_s(at: Workbench, bound_launch: BoundLaunch) -> float:
    timer, _ = at.tracing()
    untraced = CudaTimer(timer.instruments, EventStamps(timer.instruments))
    series = Series("untraced", untraced.prepare(bound_launch))
    Rounds(untraced, Method(budget_s=0.3), at.stop).take([series], None, None, lambda _: None)
    return series.figure(untraced).estimate


def _own(at: Workbench) -> dict[str, float]:
    """The cold seconds of each case by the session."""
    return {case.problem.key: cold(_own_result(at, case)).estimate for case in CASES}


def _own_result(at: Workbench, case: Case) -> Result:
    """The result of a case by the session. Raises NotHere where times come from events."""
    if at.timer.name != "cupti":
        raise NotHere(f"this device is timed by {at.timer.name}, not by CUPTI")
    return at.results(case.problem, (), case.variant, 1.0)[case.variant]


def _seconds_by(at: Workbench, *timers: str) -> list[dict[str, float]]:
    """The cold seconds of each case by each of these timers, one after another in a process of their own. Raises NotHere with
    that process's reason."""
    arguments = (at.device.id, ",".join(timers), msgspec.json.encode(CASES).decode())
    code, output = children.output(at, children.module_command("kernelviz.measure.selftest.timer_probe", arguments))
    answer = next((line for line in reversed(output.splitlines()) if line.startswith("{")), None)
    if code != 0 or answer is None:
        raise RuntimeError(f"the timers {', '.join(timers)} ended with {code}: {' '.join(output[-600:].split())}")
    answered = json.loads(answer)
    if "not_here" in answered:
        raise NotHere(answered["not_here"])
    seconds = answered["seconds"]
    return [{str(key): float(time_s) for key, time_s in seconds[timer].items()} for timer in timers]


def _beside(own: Mapping[str, float], other: Mapping[str, float], name: str) -> dict[str, float]:
    return {f"{k}, cupti_s": t for k, t in own.items()} | {f"{k}, {name}_s": other[k] for k in own}


def shape_of(kernel: Kernel) -> Shape:
    """The shape of a kernel that was traced in this process."""
    return kernel.grid, kernel.block, kernel.registers_per_thread


def ncu_times(
    at: Workbench, cases: Sequence[Case], most_s: float = children.MOST_S, times: int = TIMES
) -> dict[str, NcuTime]:
    """Every case by ncu in one process, each called `times` times, by its key. Raises NotHere.

    A case that does not bind there is left out. The caches are emptied by the instrument's flush, not by ncu's cache control,
    which empties more than the L2 (a bf16 product of 512^3 takes 5.1 us after it, 4.6 after the flush), and does so before each
    kernel of a call.
    """
    metric, registers = "gpu__time_duration.sum", "launch__registers_per_thread"
    clock = "gpc__cycles_elapsed.avg.per_second"
    arguments = (at.device.id, msgspec.json.encode(list(cases)).decode(), str(times))
    options = ("--cache-control", "none", "--metrics", f"{metric},{registers},{clock}")
    rows = children.profiled(at, "kernelviz.measure.selftest.ncu_probe", arguments, options, most_s)
    calls: list[list[children.Row]] = [[]]
    for row in rows:
        if MARKER in row["Kernel Name"]:
            calls.append([])
        else:
            calls[-1].append(row)
    if len(calls) - 1 != times * len(cases):
        raise RuntimeError(f"ncu saw {len(calls) - 1} calls, {times * len(cases)} were made")
    times_by_case: dict[str, NcuTime] = {}
    for index, case in enumerate(cases):
        mine = calls[index * times : (index + 1) * times]
        if all(mine):
            times_by_case[case.key] = NcuTime(
                median(sum(quantity(row, metric) for row in call) for call in mine),
                median(quantity(max(call, key=lambda row: quantity(row, metric)), clock) for call in mine),
                tuple((dims(r, "Grid Size"), dims(r, "Block Size"), int(r[registers])) for r in mine[-1]),
            )
    return times_by_case
