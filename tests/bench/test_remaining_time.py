"""How long a run still takes: from its own pace, and unknown until two of its cases are done."""

from __future__ import annotations

import time

import pytest

from kernelviz.bench.event_log import EventLog
from kernelviz.core.events import CaseDone, CaseStep, RunEnded
from kernelviz.core.problem import Case, Problem
from tests.worker.sessions import result

PROBLEM = Problem(op="add", sizes={"n": 1}, dtype="fp32")


def test_the_pace_of_the_cases_of_this_start_says_how_long_the_others_take(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    log = EventLog(8, {"resumed one": False, "resumed two": False})
    log.append(CaseStep(case=Case(problem=PROBLEM, variant="a"), step="binding"))
    assert log.progress().remaining_s is None
    for number, variant in enumerate("ab"):
        now_s = 103.0 * (number == 0) + 106.0 * (number == 1)
        log.append(CaseDone(result=result(PROBLEM, variant)))
    assert log.progress().remaining_s == pytest.approx(12.0)
    log.append(RunEnded(status="cancelled"))
    assert log.progress().remaining_s is None
