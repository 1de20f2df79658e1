"""The most memory that a case takes, on the CPU: by the meter, and in the results of a session."""

from __future__ import annotations

import os

import pytest
import torch

from kernelviz.core.events import CaseDone, Event
from kernelviz.core.problem import Method, Problem
from kernelviz.core.result import PeakMemory, Result
from kernelviz.measure.session.device_session import open_session
from kernelviz.measure.session.peak_memory import HostMemoryMeter, memory_meter

MIB = 2**20


def test_the_peak_counts_what_was_released_and_what_stays() -> None:
    meter = memory_meter(torch.device("cpu"))
    assert isinstance(meter, HostMemoryMeter)
    x = torch.zeros(MIB)  # allocated outside of the meter: 4 MiB that it must not count

    def work() -> torch.Tensor:
        released = torch.empty(3 * MIB, dtype=torch.uint8)
        del released
        return torch.empty(MIB, dtype=torch.uint8)

    first, peak_bytes = meter.peak(work)
    assert peak_bytes == 3 * MIB
    second, peak_bytes = meter.peak(work)  # 1 MiB is still there
    assert peak_bytes == 4 * MIB
    del first, second
    assert (
        meter.peak(lambda: x.relu_())[1] == 2 * MIB
    )  # both were released between the calls, which the meter cannot see


def test_an_exception_passes_and_nothing_is_written_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    meter = HostMemoryMeter()
    with pytest.raises(ZeroDivisionError):
        meter.peak(lambda: 1 // 0)
    os.write(2, b"of the call\n")
    assert meter.peak(lambda: os.write(2, b"of another call\n"))[1] == 0
    assert capfd.readouterr().err == "of the call\nof another call\n"


def test_a_result_says_what_binding_and_a_call_take() -> None:
    """2^18 numbers in fp32 take 1 MiB, and a chain of eager steps has intermediate results."""
    session = open_session("cpu")

    def measured(op: str, variant: str, **sizes: int) -> Result:
        events: list[Event] = []
        problem = Problem(op=op, sizes=sizes, dtype="fp32")
        session.measure(problem, (variant,), variant, Method(budget_s=0.02), events.append, lambda: False)
        return next(e.result for e in events if isinstance(e, CaseDone))

    add = measured("add", "torch_eager", n=2**18)
    assert add.peak_memory == PeakMemory(bind_bytes=MIB, call_bytes=MIB)
    chain = measured("pointwise_chain", "torch_eager", m=2**9, n=2**9, k=3)
    # While a step adds b: its input, which the step before returned, the product x · s, and the sum.
    assert chain.peak_memory == PeakMemory(bind_bytes=3 * MIB, call_bytes=3 * MIB)
