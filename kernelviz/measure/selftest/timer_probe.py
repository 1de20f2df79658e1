"""Other timers on the same calls in a process of their own: prints one JSON line. Run as a module.

python -m kernelviz.measure.selftest.timer_probe cuda:0 events|do_bench,kineto CASES

Timers run in the order of the command. kineto is the last one, because its tracer stays in the process.
"""

import json
import sys

import msgspec
import torch

from kernelviz.core import Case, CaseDone, Event, Method
from kernelviz.measure.selftest.hosted import cold
from kernelviz.measure.session.binding import BoundProblem
from kernelviz.measure.session.device_session import DeviceSession
from kernelviz.measure.session.environment import device_of
from kernelviz.measure.timing.cuda import CudaTimer
from kernelviz.measure.timing.events import EventStamps
from kernelviz.measure.timing.kernels import Instruments
from kernelviz.measure.timing.trace import Stamps, TracedStamps
from kernelviz.measure.timing.tracers import KinetoTracer
from kernelviz.ops import catalogue, op_named


def main(device_id: str, timers: str, cases_json: str) -> None:
    """Print ``{"seconds": {timer: {problem: seconds}}}``, or ``{"not_here": why}``."""
    torch.cuda.set_device(torch.device(device_id))
    cases = msgspec.json.decode(cases_json, type=list[Case])
    seconds: dict[str, dict[str, float]] = {}
    try:
        for timer in timers.split(","):
            by_do_bench = timer == "do_bench"
            seconds[timer] = _by_do_bench(device_id, cases) if by_do_bench else _by_session(device_id, cases, timer)
        answer: dict[str, object] = {"seconds": seconds}
    except ImportError as error:
        answer = {"not_here": f"{error}"}
    sys.stdout.write(json.dumps(answer) + "\n")


def _by_session(device_id: str, cases: list[Case], timer: str) -> dict[str, float]:
    tools = Instruments(torch.device("cuda"))
    stamps: Stamps = EventStamps(tools) if timer == "events" else TracedStamps(KinetoTracer())
    session = DeviceSession(device_of(device_id), catalogue(), CudaTimer(tools, stamps), None)
    events: list[Event] = []
    for case in cases:
        session.measure(case.problem, (case.variant,), case.variant, Method(), events.append, lambda: False)
    return {e.result.problem.key: cold(e.result).estimate for e in events if isinstance(e, CaseDone)}


def _by_do_bench(device_id: str, cases: list[Case]) -> dict[str, float]:
    from triton.testing import do_bench

    seconds: dict[str, float] = {}
    for case in cases:
        op = op_named(case.problem.op).of(case.problem)
        bound = BoundProblem(op, case.problem, torch.device(device_id), 2**60, device_id)
        launch = bound.bound_alone(op.variant_named(case.variant))
        seconds[case.problem.key] = float(do_bench(launch, return_mode="median")) / 1e3
    return seconds


if __name__ == "__main__":
    main(*sys.argv[1:4])
