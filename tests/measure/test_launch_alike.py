"""Short calls that are compared are launched in the same way, and captured calls keep their graphs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernelviz.core import Block, Kernel
from kernelviz.measure.session.problem_measurement import ProblemMeasurement
from kernelviz.measure.timing.capture import CudaTimed
from kernelviz.measure.timing.cuda import CudaTimer
from kernelviz.measure.timing.rounds import Series
from kernelviz.measure.timing.timer import BoundLaunch, may_compile

TRACED = SimpleNamespace(tracer=object(), replayed=lambda timed, index: None)
BY_EVENTS = SimpleNamespace(tracer=None, replayed=lambda timed, index: None)


class Graph:
    def __init__(self) -> None:
        self.replays = 0

    def replay(self) -> None:
        self.replays += 1


def timed(mode: str, span_us: float = 1.1, kernels: int = 1, stamps: Any = TRACED) -> CudaTimed:
    one = object.__new__(CudaTimed)
    graphs = (Graph(),) if mode == "graph" else ()
    one.__dict__.update(graphs=graphs, in_stream=False, span_s=span_us * 1e-6, stamps=stamps, samples=1, warm=False)
    one.__dict__.update(kernels=(Kernel(name="k", duration_s=1e-6),) * kernels, outputs=(torch.zeros(1),))
    one.__dict__.update(enqueue=lambda samples, index: (torch.ones(1),), correction_s=0.0)
    one.__dict__.update(launches=[BoundLaunch(lambda: torch.empty(0))])
    return one


def timer() -> CudaTimer:
    one = object.__new__(CudaTimer)
    one.__dict__.update(tracer=object())
    return one


def modes(fresh: list[CudaTimed], beside: list[CudaTimed] | None = None) -> list[str]:
    timer().launch_alike(fresh, beside or [])
    return [one.launch_mode for one in fresh]


SHORT, LONG, STREAM, LONG_STREAM = ("graph", 1.1, 1), ("graph", 100, 1), ("stream", 1.1, 1), ("stream", 100, 1)
SEVERAL = ("graph", 1.1, 3)


@pytest.mark.parametrize(
    ("fresh", "beside", "expected"),
    [
        ((SHORT, SHORT), (), ["graph", "graph"]),
        ((SHORT, STREAM), (), ["stream", "stream"]),
        ((LONG, LONG_STREAM), (), ["graph", "stream"]),
        ((LONG, STREAM), (), ["stream", "stream"]),
        ((SEVERAL, STREAM), (), ["graph", "stream"]),
        ((SHORT,), (STREAM,), ["stream"]),
        ((SHORT, STREAM), (SHORT,), ["graph", "stream"]),
    ],
)
def test_short_calls_of_one_kernel_follow_one_that_has_to_be_in_the_stream(
    fresh: Sequence[tuple[str, float, int]], beside: Sequence[tuple[str, float, int]], expected: list[str]
) -> None:
    assert modes([timed(*one) for one in fresh], [timed(*one) for one in beside]) == expected


@pytest.mark.parametrize(("blocks", "expected"), [(0, "stream"), (1, "graph")])
def test_a_baseline_that_has_no_times_yet_follows_a_variant_beside_it(blocks: int, expected: str) -> None:
    """Of a baseline that was measured alone, the times are dropped when others join it."""
    measurement = object.__new__(ProblemMeasurement)
    baseline = Series("baseline", timed("graph"), blocks=[Block(size=1, started_s=0.0)] * blocks)
    measurement.__dict__.update(state=SimpleNamespace(timer=timer()), base=baseline)
    measurement._launch_alike([Series("slow", timed("stream"))])
    assert baseline.timed.launch_mode == expected


def test_a_captured_call_is_suspected_of_compiling_only_if_no_other_is_in_the_stream() -> None:
    graph, moved, stream = timed("graph"), timed("graph"), timed("stream")
    timer().launch_alike([moved], [stream])
    assert [one is stream for one in may_compile([graph, moved, stream])] == [True]
    assert [one is moved for one in may_compile([graph, moved])] == [True]
    assert may_compile([graph]) == []


def test_a_call_that_is_timed_by_events_stays_in_its_graph() -> None:
    assert modes([timed("graph", stamps=BY_EVENTS), timed("stream")]) == ["graph", "stream"]


def test_a_call_returns_to_its_graph_with_its_outputs() -> None:
    one, other = timed("graph"), timed("stream")
    assert modes([one, other]) == ["stream", "stream"]
    outputs = one.outputs
    one.replay()
    assert one.graphs[0].replays == 0  # type: ignore[attr-defined]
    assert one.outputs is outputs
    other.replay()
    assert other.outputs[0].item() == 1
    assert "launched into the stream as a call beside it has to be" in timer_text(one)
    assert "has to be" not in timer_text(other)
    assert modes([one]) == ["graph"]
    one.replay()
    assert one.graphs[0].replays == 1  # type: ignore[attr-defined]


def timer_text(one: CudaTimed) -> str:
    one.stamps.__dict__.update(description="by stamps")
    return timer().describe(one)
