"""The impossible-time rule: less time than the data sheet's bandwidth and peak allow is refused."""

from types import SimpleNamespace

import pytest

from kernelviz.core.problem import Method, Problem
from kernelviz.core.reasons import ImpossiblyFast
from kernelviz.core.result import Accuracy, Failure, Figure, Timing
from kernelviz.core.run import Device
from kernelviz.measure.session.problem_measurement import ProblemMeasurement
from kernelviz.ops import catalogue
from kernelviz.text.failures import describe_failure

H200 = Device(id="cuda:0", kind="cuda", name="NVIDIA H200", uuid="GPU-x", last_level_cache_bytes=60 * 2**20)
RIGHT = Accuracy(passed=True, relative_l2=0.0, max_abs=0.0, worst_of_bound=0.0)


def judged(problem: Problem, time_s: float, device: Device = H200, clock_hz: float | None = None):
    site = SimpleNamespace(device=device, timer=None, watch=lambda: SimpleNamespace(look=lambda: False))
    task = ProblemMeasurement(
        site, catalogue()[problem.op], problem, "torch_eager", Method(), lambda _: None, lambda: False
    )  # type: ignore[arg-type]
    return task._judged(Timing(device_cold_s=Figure(estimate=time_s)), RIGHT, clock_hz)


ADD = Problem(op="add", sizes={"n": 2**26}, dtype="fp32")
# 2 x 256 MiB read, 256 MiB written of which 60 MiB may still lie in the L2, at 4.8 TB/s: 154.7 us.
MATMUL = Problem(op="matmul", sizes={"m": 4096, "n": 4096, "k": 4096}, dtype="bf16")
# 2 x 4096^3 flop at 989.4 TFLOP/s: 138.9 us.


def test_a_time_below_the_memory_s_is_impossible() -> None:
    outcome = judged(ADD, 154e-6)
    assert isinstance(outcome, Failure)
    assert outcome.stage == "impossible"
    (too_fast,) = outcome.reasons
    assert isinstance(too_fast, ImpossiblyFast)
    assert (too_fast.time_s, too_fast.least_s) == (154e-6, pytest.approx(154.7e-6, rel=1e-3))
    assert "154 us is less than the 155 us" in str(describe_failure(outcome))
    assert outcome.timing is not None


def test_a_time_above_it_stands() -> None:
    assert isinstance(judged(ADD, 156e-6), Timing)


def test_a_time_below_the_arithmetic_s_is_impossible() -> None:
    assert isinstance(judged(MATMUL, 138e-6), Failure)
    assert isinstance(judged(MATMUL, 140e-6), Timing)


def test_a_clock_above_the_sheet_s_raises_the_peak() -> None:
    assert isinstance(judged(MATMUL, 138e-6, clock_hz=1.98e9), Timing)


def test_an_unknown_gpu_has_no_rule() -> None:
    unknown = Device(id="cuda:0", kind="cuda", name="NVIDIA H999", uuid="GPU-x")
    assert isinstance(judged(ADD, 1e-9, unknown), Timing)
