"""Checks of host time: a GPU's device time must not include the host's sleep in a call; a processor's time must include it."""

import time

import torch
from torch import Tensor

from kernelviz.core import Figure, Problem, Result
from kernelviz.measure.selftest.workbench import Finding, Workbench, probe
from kernelviz.measure.timing.timer import BoundLaunch
from kernelviz.metrics.statistics import median_interval, round_ratios
from kernelviz.ops import Launch, variant

SLEEP_S, PROCESSOR_SLEEP_S = 200e-6, 5e-3


def _added(x_N: Tensor, y_N: Tensor, *, sleeps: bool, captured: bool) -> Launch:
    out_N = torch.empty_like(x_N)

    def launch() -> Tensor:
        if not captured and torch.cuda.is_current_stream_capturing():
            raise RuntimeError("launched into the stream only")
        if sleeps:
            time.sleep(SLEEP_S)
        return torch.add(x_N, y_N, out=out_N)

    return launch


@variant(backend="torch")
def sleeps_captured(x_N: Tensor, y_N: Tensor) -> Launch:
    """An add that sleeps on the host before its launch, captured as a graph."""
    return _added(x_N, y_N, sleeps=True, captured=True)


@variant(backend="torch")
def plain_in_stream(x_N: Tensor, y_N: Tensor) -> Launch:
    """An add that cannot be captured, so that it is timed in the stream."""
    return _added(x_N, y_N, sleeps=False, captured=False)


@variant(backend="torch")
def sleeps_in_stream(x_N: Tensor, y_N: Tensor) -> Launch:
    """An add that sleeps on the host before its launch, and cannot be captured."""
    return _added(x_N, y_N, sleeps=True, captured=False)


@probe("By how much does a sleep of 200 us on the host move a call's device time?", limit=0.01, unit="fraction")
def host_sleep(at: Workbench) -> Finding:
    """An add of 2^24 elements as a graph, and another launched into the stream, each with and without the sleep."""
    problem = Problem(op="add", sizes={"n": 2**24}, dtype="fp32")
    results = at.results(problem, (sleeps_captured, plain_in_stream, sleeps_in_stream), "torch_eager", budget_s=1.0)
    figures = {f"{name}_s": cold(result).estimate for name, result in results.items()}
    moved = {
        "graph_moved_fraction": _ratio(results["sleeps_captured"], results["torch_eager"]) - 1,
        "stream_moved_fraction": _ratio(results["sleeps_in_stream"], results["plain_in_stream"]) - 1,
    }
    # This figure must show the sleep: back-to-back calls of a host that sleeps are limited by the host.
    figures["loop_plain_s"], figures["loop_sleeping_s"] = (
        _back_to_back_s(at, sleeps=sleeps) for sleeps in (False, True)
    )
    sleep_visible = figures["loop_sleeping_s"] >= SLEEP_S > figures["loop_plain_s"]
    message = "" if sleep_visible else "the time of back-to-back calls does not show the host's sleep"
    value = max(map(abs, moved.values()))
    return Finding(value, figures | moved, sleep_visible and value <= 0.01, message)


def _back_to_back_s(at: Workbench, *, sleeps: bool) -> float:
    x, y = (torch.randn(2**24, device=at.where) for _ in range(2))
    return at.timer.calls(BoundLaunch(_added(x, y, sleeps=sleeps, captured=True))).back_to_back(100)


def cold(result: Result) -> Figure:
    if result.timing is None or result.timing.device_cold_s is None:
        raise RuntimeError(f"{result.variant} has no time: {result.outcome}")
    return result.timing.device_cold_s


def _ratio(of: Result, to: Result) -> float:
    return median_interval(round_ratios(cold(of), cold(to))).estimate


@probe("How much of a sleep of 5 ms in a call does the processor's time show?", limit=0.2, unit="fraction")
def host_sleep_on_processor(at: Workbench) -> Finding:
    """On a processor a call's time includes the host's; the value is the error of the measured growth relative to the sleep."""

    def plain() -> tuple[Tensor, ...]:
        return ()

    def sleeps() -> tuple[Tensor, ...]:
        time.sleep(PROCESSOR_SLEEP_S)
        return ()

    without, slept = at.together([at.timed(BoundLaunch(plain)), at.timed(BoundLaunch(sleeps))], 0.3)
    grown_s = slept.estimate - without.estimate
    figures = {"without_s": without.estimate, "with_s": slept.estimate, "sleep_s": PROCESSOR_SLEEP_S}
    return Finding(abs(grown_s - PROCESSOR_SLEEP_S) / PROCESSOR_SLEEP_S, figures)
