"""Another timer on the same calls in its own process: prints one JSON line. Run as a module.

python -m kernelviz.measure.selftest.timer_probe cuda:0 kineto|events|do_bench CASES
"""

import json
import sys
from collections.abc import Callable

import msgspec
import torch

from kernelviz.core import Case, CaseDone, Event, Method
from kernelviz.measure.session.binding import BoundProblem
from kernelviz.measure.session.device_session import DeviceSession
from kernelviz.measure.session.environment import device_of
from kernelviz.measure.timing.cuda import CudaTimer
from kernelviz.measure.timing.events import EventStamps
from kernelviz.measure.timing.kernels import Instruments
from kernelviz.measure.timing.timer import DeviceTimer
from kernelviz.measure.timing.timestamps import TracedStamps
from kernelviz.measure.timing.tracers import KinetoTracer
from kernelviz.ops import catalogue, op_named


def main(device_id: str, timer: str, cases_json: str) -> None:
    """Print ``{"seconds": {problem: seconds}}``, or ``{"not_here": why}``."""
    torch.cuda.set_device(torch.device(device_id))
    cases = msgspec.json.decode(cases_json, type=list[Case])
    ways: dict[str, Callable[[str, list[Case]], dict[str, float]]] = {
        "kineto": lambda d, c: _by_session(d, c, _kineto()),
        "events": lambda d, c: _by_session(d, c, _events()),
        "do_bench": _by_do_bench,
    }
    try:
        answer: dict[str, object] = {"seconds": ways[timer](device_id, cases)}
    except ImportError as error:
        answer = {"not_here": f"{error}"}
    sys.stdout.write(json.dumps(answer) + "\n")


def _kineto() -> DeviceTimer:
    return CudaTimer(Instruments(torch.device("cuda")), TracedStamps(KinetoTracer()))


def _events() -> DeviceTimer:
    tools = Instruments(torch.device("cuda"))
    return CudaTimer(tools, EventStamps(tools))


def _by_session(device_id: str, cases: list[Case], timer: DeviceTimer) -> dict[str, float]:
    session = DeviceSession(device_of(device_id), catalogue(), timer, None)
    events: list[Event] = []
    for case in cases:
        session.measure(case.problem, (case.variant,), case.variant, Method(), events.append, lambda: False)
    seconds: dict[str, float] = {}
    for result in (e.result for e in events if isinstance(e, CaseDone)):
        if result.timing is None or result.timing.device_cold_s is None:
            raise RuntimeError(f"{result.case.key} has no time: {result.outcome}")
        seconds[result.problem.key] = result.timing.device_cold_s.estimate
    return seconds


def _by_do_bench(device_id: str, cases: list[Case]) -> dict[str, float]:
    from triton.testing import do_bench

    seconds: dict[str, float] = {}
    for case in cases:
        op = op_named(case.problem.op).of(case.problem)
        bound = BoundProblem.allocate(op, case.problem, torch.device(device_id), 2**60, device_id)
        launch, _ = bound.bind(op.variant_named(case.variant), bound.inputs)
        seconds[case.problem.key] = float(do_bench(launch, return_mode="median")) / 1e3
    return seconds


if __name__ == "__main__":
    main(*sys.argv[1:4])
