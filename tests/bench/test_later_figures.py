"""Figures beside device cold: they come when nothing else waits, complete what is there, and undo nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelviz.bench import Bench, recording
from kernelviz.core.events import CaseDone
from kernelviz.core.notes import LaterFailure
from kernelviz.core.problem import Method, Plan
from kernelviz.core.request import RunRequest
from kernelviz.core.result import Failure, Result, Timing
from tests.bench.bench_of_sessions import bench_in

ALL = Method(budget_s=0.01, figures=("cold", "warm", "loop"))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = bench_in(tmp_path)
    yield made
    made.close()


def plan(bench: Bench, *variants: str, n: str = "1") -> Plan:
    return bench.plan(RunRequest(op="add", sizes={"n": n}, variants=variants, device="cpu"))


def told(bench: Bench, run_id: str) -> list[Result]:
    return [e.result for _, e in bench.follow(run_id, timeout_s=20) if isinstance(e, CaseDone)]


def timing(result: Result) -> Timing:
    assert isinstance(result.outcome, Timing), result.outcome
    return result.outcome


def finished(bench: Bench, asked: Plan) -> dict[tuple[int, str], Result]:
    run_id = bench.run(asked, ALL)
    told(bench, run_id)
    run = bench.load(run_id)
    assert run.status == "finished"
    return {(r.problem.sizes["n"], r.variant): r for r in run.results}


def test_the_cold_times_of_all_problems_come_before_any_other_figure(bench: Bench) -> None:
    run_id = bench.run(plan(bench, "a", "b", n="1,2,3"), ALL)
    order = []
    for _, event in bench.follow(run_id, timeout_s=20):
        if isinstance(event, CaseDone):
            order.append(timing(event.result).device_warm_s is not None)
    # Events of a case that a newer one replaced are not told to who comes late, so there may be fewer of the first kind.
    assert order == sorted(order)
    assert order.count(True) == 6


def test_a_run_by_problem_has_all_figures_of_one_before_the_next(bench: Bench) -> None:
    run_id = bench.run(plan(bench, "a", "slow", "b", n="1,2,3"), ALL, by_problem=True)
    told_of = [e.result for _, e in bench.follow(run_id, timeout_s=20) if isinstance(e, CaseDone)]
    order = [(r.problem.sizes["n"], timing(r).device_warm_s is not None) for r in told_of]
    assert order == sorted(order)
    assert order.count((2, True)) == 3
    assert bench.load(run_id).status == "finished"


def test_a_run_goes_on_by_problem_if_it_is_asked_to(bench: Bench) -> None:
    run_id = bench.run(plan(bench, "a", "b", n="1,2,3"), ALL)
    bench.cancel(run_id)
    told(bench, run_id)
    bench.resume(run_id, by_problem=True)
    order = [(r.problem.sizes["n"], timing(r).device_warm_s is not None) for r in told(bench, run_id)]
    assert order.count((3, True)) == 2
    assert order == sorted(order)


def test_a_recording_is_measured_by_problem_also_where_it_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(bench, "run", lambda *args, by_problem=False, **more: asked.append(by_problem) or "new")
    monkeypatch.setattr(bench, "resume", lambda run_id, by_problem=False, **more: asked.append((run_id, by_problem)))
    assert recording.start(bench, recording.OpPass("add"), "cpu") == "new"
    monkeypatch.setattr(recording, "unfinished", lambda bench, title: "earlier")
    assert recording.start(bench, recording.OpPass("add"), "cpu") == "earlier"
    assert asked == [True, ("earlier", True)]


def test_later_figures_complete_the_stored_results(bench: Bench) -> None:
    found = finished(bench, plan(bench, "a", "b", n="1,2"))
    assert len(found) == 4
    for result in found.values():
        assert timing(result).device_cold_s is not None
        assert timing(result).device_warm_s is not None
        assert timing(result).loop_s is not None


def test_only_what_is_right_is_asked_for_more(bench: Bench) -> None:
    found = finished(bench, plan(bench, "a", "abort"))
    assert timing(found[1, "a"]).device_warm_s is not None
    outcome = found[1, "abort"].outcome
    assert isinstance(outcome, Failure)
    assert outcome.stage == "crash"


def test_a_crash_behind_the_cold_time_is_a_note_and_the_time_stays(bench: Bench) -> None:
    found = finished(bench, plan(bench, "a", "later_abort"))
    kept = found[1, "later_abort"]
    assert timing(kept).device_cold_s is not None
    assert kept.conditions is not None
    assert any(isinstance(note, LaterFailure) and note.stage == "crash" for note in kept.conditions.notes)
    assert timing(found[1, "a"]).device_warm_s is not None


def test_a_cancel_behind_the_cold_times_keeps_them(bench: Bench) -> None:
    run_id = bench.run(plan(bench, "a", "later_waits"), ALL)
    seen = 0
    for _, event in bench.follow(run_id, timeout_s=20):
        seen += isinstance(event, CaseDone)
        if seen == 2:
            break
    bench.cancel(run_id)
    told(bench, run_id)
    cancelled = bench.load(run_id)
    assert cancelled.status == "cancelled"
    assert all(timing(r).device_cold_s is not None for r in cancelled.results)
    lacking = [r.variant for r in cancelled.results if timing(r).device_warm_s is None]
    assert "later_waits" in lacking


def test_what_compiles_for_long_comes_when_the_others_stand_at_all_sizes(bench: Bench) -> None:
    run_id = bench.run(plan(bench, "a", "slow", "b", n="1,2,3"), Method(budget_s=0.01))
    order = [(r.problem.sizes["n"], r.variant) for r in told(bench, run_id)]
    run = bench.load(run_id)
    assert run.status == "finished"
    first = {case: i for i, case in reversed(list(enumerate(order)))}
    slow = [first[n, "slow"] for n in (1, 2, 3)]
    assert max(first[n, "b"] for n in (1, 2, 3)) < min(slow)


def test_the_baseline_shares_rounds_with_what_comes_late(bench: Bench) -> None:
    run_id = bench.run(plan(bench, "a", "slow", n="1,2"), Method(budget_s=0.01))
    told(bench, run_id)
    results = {(r.problem.sizes["n"], r.variant): timing(r).device_cold_s for r in bench.load(run_id).results}
    for n in (1, 2):
        base, slow = results[n, "a"], results[n, "slow"]
        assert base is not None
        assert slow is not None
        # Measured once with the prompt variants and once beside the late one: the blocks of both.
        assert len(base.blocks or ()) == 2 * len(slow.blocks or ())


def test_one_problem_is_left_to_the_worker_as_a_whole(bench: Bench) -> None:
    """Which knows what is compiled already: then it shares the rounds of the others."""
    run_id = bench.run(plan(bench, "a", "slow"), Method(budget_s=0.01))
    told(bench, run_id)
    results = {r.variant: timing(r).device_cold_s for r in bench.load(run_id).results}
    assert results["a"] is not None
    assert results["slow"] is not None
    assert len(results["a"].blocks or ()) == len(results["slow"].blocks or ())
