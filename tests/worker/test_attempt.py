"""For every way in which an attempt can end: which variant failed, and which cases are measured again."""

from __future__ import annotations

import pytest

from kernelviz.core.events import CaseDone, CaseStep, Step
from kernelviz.core.problem import Case, Problem
from kernelviz.core.result import Failure, Stage
from kernelviz.worker.attempt import Attempt, Ending, merge_results
from tests.worker.sessions import result

PROBLEM = Problem(op="add", sizes={"n": 1}, dtype="fp32")
CRASH = Ending(failure=Failure(stage="crash", message="boom"), replace="died")


def attempt(*variants: str, steps: tuple[tuple[str, Step], ...] = (), done: tuple[str, ...] = ()) -> Attempt:
    made = Attempt(PROBLEM, variants, baseline="a")
    for variant, step in steps:
        made.heard(CaseStep(case=Case(problem=PROBLEM, variant=variant), step=step))
    for variant in done:
        made.heard(CaseDone(result=result(PROBLEM, variant)))
    return made


def test_a_crash_belongs_to_the_case_that_began_last() -> None:
    tried = attempt("a", "b", "c", steps=(("a", "binding"), ("b", "compiling")))
    failures, following = tried.conclude(CRASH)
    assert failures == {"b": Failure(stage="crash", message="boom")}
    assert [f.variants for f in following] == [("a", "c")]


def test_in_rounds_nobody_is_blamed_together_and_the_baseline_is_tried_first() -> None:
    steps: tuple[tuple[str, Step], ...] = tuple((v, "measuring") for v in ("b", "c", "a"))
    failures, following = attempt("b", "c", "a", "late", steps=steps).conclude(CRASH)
    assert not failures
    assert [f.variants for f in following] == [("a",), ("b",), ("c",), ("late",)]


def test_a_death_before_any_case_began_is_tried_once_more() -> None:
    failures, following = attempt("a", "b").conclude(CRASH)
    assert not failures
    assert [(f.variants, f.retried) for f in following] == [(("a", "b"), True)]
    failures, following = following[0].conclude(CRASH)
    assert set(failures) == {"a", "b"}
    assert not following


def test_a_spoilt_worker_keeps_results_and_the_rest_goes_elsewhere() -> None:
    failures, following = attempt("a", "b", "c", done=("a", "b")).conclude(Ending(replace="sticky error"))
    assert not failures
    assert [f.variants for f in following] == [("c",)]


def test_a_worker_that_found_itself_unfit_leaves_the_same_to_the_next_once() -> None:
    """Others came to the GPU while it was idle: nothing had begun, and the baseline is still measured beside what is late."""
    unfit = Ending(replace="another program came to the GPU after this process")
    tried = attempt("late", "b")
    tried.known = result(PROBLEM, "a")
    failures, following = tried.conclude(unfit)
    assert not failures
    assert [(f.variants, f.retried) for f in following] == [(("late", "b"), False)]
    following[0].known = tried.known
    assert following[0].measured_variants == ("a", "late", "b")
    assert following[0].conclude(unfit)[1][0].retried
    failures, following = following[0].conclude(unfit)[1][0].conclude(unfit)
    assert set(failures) == {"late", "b"}
    assert not following


@pytest.mark.parametrize("stage", ["unavailable", "out_of_memory"])
def test_a_refused_problem_fails_as_a_whole(stage: Stage) -> None:
    failures, following = attempt("a", "b", done=("a",)).conclude(Ending(failure=Failure(stage=stage, message="no")))
    assert failures == {"b": Failure(stage=stage, message="no")}
    assert not following


def test_every_sequence_of_crashes_comes_to_an_end() -> None:
    """Even when every try crashes while all of it is in rounds: no case is tried more than twice."""
    waiting, tries, failed = [attempt("a", "b", "c", "d")], 0, set[str]()
    while waiting:
        tried = waiting.pop()
        tries += 1
        for variant in tried.variants:
            tried.heard(CaseStep(case=Case(problem=PROBLEM, variant=variant), step="measuring"))
        failures, following = tried.conclude(CRASH)
        failed |= set(failures)
        waiting += following
    assert failed == {"a", "b", "c", "d"}
    assert tries == 5


def test_the_companion_adds_rounds_and_is_never_told_alone() -> None:
    known = result(PROBLEM, "a")
    tried = Attempt(PROBLEM, ("late",), baseline="a", known=known)
    assert tried.measured_variants == ("a", "late")
    assert tried.heard(CaseStep(case=Case(problem=PROBLEM, variant="a"), step="measuring")) is None
    failure = Failure(stage="wrong", message="")
    assert tried.heard(CaseDone(result=result(PROBLEM, "a", failure))) is None
    again = result(PROBLEM, "a")
    assert tried.heard(CaseDone(result=again)) == CaseDone(result=merge_results(known, again))
    # Rounds beside the variant were added to the baseline: the worker sends all rounds of the attempt, none counts twice.
    longer = merge_results(again, result(PROBLEM, "a"))
    assert tried.heard(CaseDone(result=longer)) == CaseDone(result=merge_results(known, longer))
    assert tried.left == ["late"]
    assert not Attempt(PROBLEM, ("late",), baseline="a", known=known, retried=True).measured_variants[1:]


def test_joined_results_hold_the_samples_of_both() -> None:
    first, second = result(PROBLEM, "a"), result(PROBLEM, "a")
    timing = merge_results(first, second).timing
    assert timing is not None
    assert first.timing is not None
    assert timing.device_cold_s is not None
    assert first.timing.device_cold_s is not None
    assert timing.device_cold_s.samples == (first.timing.device_cold_s.samples or ()) * 2
