"""Check of the cost of tracing: CUPTI stamps kernels by code in their blocks, which makes kernels of many blocks longer."""

from kernelviz.core import Case, Method, Problem
from kernelviz.measure.selftest.workbench import Finding, Workbench, probe
from kernelviz.measure.session.binding import BoundProblem
from kernelviz.measure.timing.cuda import CudaTimer
from kernelviz.measure.timing.events import EventStamps
from kernelviz.measure.timing.rounds import Rounds, Series
from kernelviz.measure.timing.timer import BoundLaunch
from kernelviz.ops import op_named

RESOLVED_S = 0.8e-6
"""Resolution of events: they may differ from CUPTI by this much on a call that tracing does not change."""
CASES = (
    Case(problem=Problem(op="add", sizes={"n": 2**20}, dtype="fp32"), variant="torch_eager"),
    Case(problem=Problem(op="add", sizes={"n": 2**24}, dtype="fp32"), variant="torch_eager"),
    # 65,536 blocks of 256 elements: on an H200 it takes 48 us, and 53 us while it is traced.
    Case(problem=Problem(op="copy", sizes={"n": 2**24}, dtype="fp32"), variant="cuda_scalar"),
    Case(problem=Problem(op="softmax", sizes={"m": 8192, "n": 8192}, dtype="bf16"), variant="torch_eager"),
    Case(problem=Problem(op="matmul", sizes={"m": 2048, "n": 2048, "k": 2048}, dtype="bf16"), variant="torch_eager"),
)


@probe("How far is a time from that of the untraced call, beyond 0.8 us?", limit=0.01, unit="fraction")
def traced_calls(at: Workbench) -> Finding:
    """The product's time, with the cost of tracing subtracted, compared with events in a graph that is not traced."""
    timer, _ = at.tracing()
    untraced = CudaTimer(timer.instruments, EventStamps(timer.instruments))
    figures: dict[str, float] = {}
    beyond = [0.0]
    for case in CASES:
        at.go_on()
        op = op_named(case.problem.op).of(case.problem)
        bound = BoundProblem.allocate(op, case.problem, at.where, at.room_bytes, at.device.name)
        launch, _ = bound.bind(op.variant_named(case.variant), bound.inputs)
        timed = at.timed(BoundLaunch(launch))
        traced_s = at.figure(timed, 0.3).estimate
        series = Series("untraced", untraced.prepare(BoundLaunch(launch)))
        Rounds(untraced, Method(budget_s=0.3), at.stop).take([series], None, None, lambda _: None)
        untraced_s = series.figure(untraced).estimate
        beyond.append((abs(traced_s - untraced_s) - RESOLVED_S) / untraced_s)
        figures |= {
            f"{case.key}, told_s": traced_s,
            f"{case.key}, untraced_s": untraced_s,
            f"{case.key}, taken_off_s": timed.correction_s,
        }
    return Finding(max(beyond), figures)
