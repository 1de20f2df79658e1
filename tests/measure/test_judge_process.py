"""The judge's side of a judgement: the worker is a thread of this process, and only its calls move the clock."""

from __future__ import annotations

import threading
import time

import psutil
import pytest
import torch

from kernelviz.core import Problem
from kernelviz.core.reasons import Unwritten
from kernelviz.measure.judge import case_on_trial, exchange
from kernelviz.measure.judge.messages import Judged, pair
from kernelviz.measure.judge.shared_memory import DONE
from kernelviz.measure.judge.trials import JudgeLink
from kernelviz.ops import op_named

ADD = Problem(op="add", sizes={"n": 1000}, dtype="fp32")
CALL_S = 1.0


class Clock:
    def __init__(self) -> None:
        self.now_s, self.monotonic = 0.0, time.monotonic

    def perf_counter(self) -> float:
        return self.now_s


@pytest.mark.parametrize("early", [False, True])
def test_a_worker_that_answers_early_is_found_however_late_the_judge_reads(
    early: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other processes may keep the judge waiting after a call is said to be done, or its copy may take longer than the call. Then
    the outputs are right in the end, but not yet in the places that the judge read before its clock."""
    clock, trials, worked = Clock(), list[int](), threading.Semaphore(0)

    class Late(torch.Tensor):
        def copy_(self, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
            may_work.set()
            assert worked.acquire(timeout=60)
            return super().copy_(source, non_blocking)

    def work() -> None:
        link = JudgeLink(its.detach())
        memory = link.memory(op_named("add").of(ADD), ADD, device)

        def launch() -> torch.Tensor:
            if early:
                memory.set_mark(DONE, trials[-1])
                assert may_work.wait(timeout=60)
                may_work.clear()
            clock.now_s += CALL_S
            memory.outputs[0].copy_(memory.inputs[0] + memory.inputs[1])
            worked.release()
            return memory.outputs[0]

        link.make_calls(launch, memory, trials.append, lambda: False)

    monkeypatch.setattr(case_on_trial, "time", clock)
    monkeypatch.setattr(case_on_trial, "MOST_TRIALS", case_on_trial.LEAST_TRIALS)
    (mine, its), device, may_work = pair(), torch.device("cpu"), threading.Event()
    worker = threading.Thread(target=work)
    worker.start()
    case = case_on_trial.CaseOnTrial(ADD, device, mine, lambda: None)
    case._outputs = tuple(output.as_subclass(Late) for output in case._outputs)  # type: ignore[attr-defined]
    found = case.judged(1)
    worker.join()
    mine.close()
    assert found.accuracy is not None
    assert [type(reason) for reason in found.accuracy.reasons] == [Unwritten] * early
    assert found.times_s == (0 if early else CALL_S,) * case_on_trial.LEAST_TRIALS


@pytest.mark.parametrize("own_share", [0.0, 2.0])
def test_what_a_call_costs_beyond_itself_is_measured_with_a_process_of_our_own(
    own_share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The honest worker is a process that ends with the measurement. What the call itself takes does not count, and where the
    judge's own call took longer, nothing is left."""
    asked: list[tuple[float, float]] = []

    class Case(case_on_trial.CaseOnTrial):
        def judged(self, number: int) -> Judged:
            found = super().judged(number)
            assert found.accuracy is not None
            assert found.accuracy.passed
            asked.append((min(found.times_s), found.copy_s))
            return found

    monkeypatch.setattr(exchange, "N", 1000)
    monkeypatch.setattr(exchange, "CaseOnTrial", Case)
    monkeypatch.setattr(exchange, "_own_call_s", lambda flush: own_share * (asked[0][0] - asked[0][1]))
    before = psutil.Process().children()
    exchange_s = exchange.exchange_s(torch.device("cpu"), lambda: None)
    assert set(psutil.Process().children()) <= set(before)
    ((call_s, copy_s),) = asked
    assert exchange_s == pytest.approx((call_s - copy_s) if own_share == 0 else 0.0)
    assert (exchange_s > 0) == (own_share == 0)
