"""Does tracing change what it measures? A tracer that stamps kernels by code in them makes kernels of many blocks longer."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import torch

from kernelviz.core.problem import Case, Problem
from kernelviz.measure.binding import BoundProblem
from kernelviz.measure.cuda import CudaTimer
from kernelviz.measure.selftest import kernels
from kernelviz.measure.selftest.instrument import between_events_s
from kernelviz.measure.selftest.workbench import Found, Workbench, probe
from kernelviz.measure.timer import Place
from kernelviz.measure.trace import Tracer, iterations
from kernelviz.ops import Launch, op_named

CALLS, TRIES = 20, 15
RESOLVED_S = 0.3e-6
"""What this way of asking resolves: two runs of it on an H200 differed by so much on calls that tracing does not change."""
COVER_BYTES = 2**30
"""Read ahead of a graph (0.2 ms), so that it is submitted as a whole before its first kernel runs."""
CASES = (
    Case(problem=Problem(op="add", sizes={"n": 2**20}, dtype="fp32"), variant="torch_eager"),
    Case(problem=Problem(op="add", sizes={"n": 2**24}, dtype="fp32"), variant="torch_eager"),
    # 65,536 blocks of 256 elements: on an H200 its own 47.7 us read 52.4 while it was traced.
    Case(problem=Problem(op="copy", sizes={"n": 2**24}, dtype="fp32"), variant="cuda_scalar"),
    Case(problem=Problem(op="softmax", sizes={"m": 8192, "n": 8192}, dtype="bf16"), variant="torch_eager"),
    Case(problem=Problem(op="matmul", sizes={"m": 2048, "n": 2048, "k": 2048}, dtype="bf16"), variant="torch_eager"),
)


@probe("How far is a time from that of the untraced call, beyond 0.3 us?", limit=0.01, unit="fraction")
def traced_calls(at: Workbench) -> Found:
    """A graph of twenty [flush; call; marker] by events, traced and not: what tracing adds to it, less what it adds to one of
    empty kernels, is what it adds to the calls. The product's time must be the traced span less that."""
    timer, tracer = at.tracing()
    ahead = kernels.read(kernels.words(min(COVER_BYTES, at.room_bytes) // kernels.WORD_BYTES, at.where))
    empty = _traced(timer, tracer, ahead, kernels.empty())
    figures: dict[str, float] = {}
    beyond = [0.0]
    for case in CASES:
        at.go_on()
        op = op_named(case.problem.op)
        bound = BoundProblem.allocate(op, case.problem, at.where, at.room_bytes, at.device.name)
        launch, _ = bound.bind(op.variant_named(case.variant), bound.inputs)
        told_s = at.figure(at.timed(Place(launch)), 0.3).estimate
        span_s, added_s = _traced(timer, tracer, ahead, launch)
        true_s = span_s - (added_s - empty[1])
        beyond.append((abs(told_s - true_s) - RESOLVED_S) / true_s)
        figures |= {
            f"{case.key}, told_s": told_s,
            f"{case.key}, untraced_s": true_s,
            f"{case.key}, tracing_adds_s": added_s - empty[1],
        }
    return Found(max(beyond), figures)


def _traced(timer: CudaTimer, tracer: Tracer, ahead: Launch, launch: Launch) -> tuple[float, float]:
    """(span of a call while traced, what tracing adds to an iteration), seconds."""
    launch()
    graph = _graph(timer, launch)
    added: list[float] = []
    spans: list[float] = []
    for _ in range(TRIES):
        timer.rest(2e-3)
        ahead()
        without_s = between_events_s(graph.replay)
        taken: list[float] = []
        records = tracer.trace(_noted(ahead, graph, taken))
        spans.append(median(i.span_s for i in iterations(records, CALLS)))
        added.append((taken[0] - without_s) / CALLS)
    return median(spans), median(added)


def _graph(timer: CudaTimer, launch: Launch) -> torch.cuda.CUDAGraph:
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            timer.flush()
            launch()
            timer.instruments.marker()
    graph.replay()
    torch.cuda.synchronize()
    return graph


def _noted(ahead: Launch, graph: torch.cuda.CUDAGraph, taken: list[float]) -> Callable[[], None]:
    def work() -> None:
        ahead()
        taken.append(between_events_s(graph.replay))

    return work
