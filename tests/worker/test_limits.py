"""The two deadlines, with a clock of our own."""

from __future__ import annotations

from kernelviz.core.reasons import Silent, TookTooLong
from kernelviz.worker.limits import Deadlines, Limits

LIMITS = Limits(compile_s=300, check_s=60, step_s=30, case_s=120)


def test_every_event_starts_the_step_anew_but_not_the_case() -> None:
    deadlines = Deadlines(LIMITS, budget_s=10, now_s=0)
    assert deadlines.left_s(0) == 40
    for now in range(30, 121, 30):
        deadlines.event("measuring", now)
        assert deadlines.left_s(now) == min(40, 130 - now)
    assert deadlines.left_s(131) < 0
    assert deadlines.passed(131) == TookTooLong(seconds=130)


def test_compiling_takes_its_own_time() -> None:
    deadlines = Deadlines(LIMITS, budget_s=0, now_s=0)
    deadlines.event("compiling", 20)
    assert deadlines.left_s(20) == 300
    deadlines.event("measuring", 310)
    assert deadlines.left_s(310) == 30
    for now in range(320, 410, 10):
        deadlines.event("measuring", now)
    assert deadlines.left_s(405) == 5  # of 120: 20 s before and 95 s since the compiling


def test_cases_that_are_checked_one_behind_the_other_have_each_their_own_time() -> None:
    """Sixteen configurations of a tuning, a minute of checking each, before the first result."""
    deadlines = Deadlines(LIMITS, budget_s=0, now_s=0)
    for number in range(16):
        deadlines.event("compiling", 100 * number, f"case {number}")
        deadlines.event("checking", 100 * number + 45, f"case {number}")
        assert deadlines.left_s(100 * number + 45) == 60
        assert deadlines.left_s(100 * number + 99) == 6
    deadlines.event("measuring", 1600, "case 0")
    for now in range(1610, 1650, 10):
        deadlines.event("measuring", now, "case 0")
    # 55 s of checking and 40 s of measuring so far.
    assert deadlines.left_s(1640) == 25, "one that goes on and on without a result is still ended"


def test_a_result_starts_the_case_anew() -> None:
    deadlines = Deadlines(LIMITS, budget_s=0, now_s=0)
    for now in range(0, 110, 10):
        deadlines.event("measuring", now)
    assert deadlines.left_s(100) == 20
    deadlines.event(None, 100)
    assert deadlines.left_s(100) == 30
    assert isinstance(passed := deadlines.passed(130), Silent)
    assert passed.seconds == 30
