"""A tuning end to end on a processor: swept, cancelled, resumed, kept, used, forgotten. One worker for all of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from kernelviz.bench import Bench
from kernelviz.bench.tunings import EARLY_STOP
from kernelviz.core.configuration import parted
from kernelviz.core.errors import BadField
from kernelviz.core.events import CaseDone, RunEnded
from kernelviz.core.problem import Method
from kernelviz.core.request import RunRequest
from kernelviz.core.result import Timing
from kernelviz.formats import decode, encode
from kernelviz.hardware.discovery import discover
from kernelviz.metrics.rows import rows
from kernelviz.metrics.tuning import stopped_early
from kernelviz.store import Store
from kernelviz.text.tuning import describe_expected
from kernelviz.worker.limits import Limits

pytestmark = pytest.mark.xdist_group("device")
PLUGIN = str(Path(__file__).parents[1] / "planted_tuning.py")
SIZES = {"n": "2048"}
QUICK = Method(
    budget_s=0.02, half_width=0.05, ratio_half_width=0.05, decided_is_enough=True, seeds=1, early_stop=EARLY_STOP
)
SHORT = Method(budget_s=0.02, seeds=1)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("tunings")
    cpu = next(d for d in discover() if d.id == "cpu")
    made = Bench(Store.open(folder), (cpu,), lock_directory=folder)
    yield made
    made.close()


def follow(bench: Bench, run_id: str, *, cancel_after: int | None = None) -> str:
    done: set[str] = set()
    for _, event in bench.follow(run_id, timeout_s=120):
        if isinstance(event, CaseDone):
            done.add(event.result.variant)
            if cancel_after is not None and len(done) >= cancel_after:
                cancel_after = None
                bench.cancel(run_id)
        if isinstance(event, RunEnded):
            return event.status
    raise AssertionError("nothing was heard for two minutes")


@pytest.fixture(scope="module")
def cancelled(bench: Bench) -> str:
    """A tuning of 28 configurations (4 do not fit), cancelled when the first group is measured."""
    plan = bench.tuning(RunRequest(op="add", variants=("in_blocks",), sizes=SIZES, device="cpu", plugins=(PLUGIN,)))
    run_id = bench.run(plan, QUICK)
    assert follow(bench, run_id, cancel_after=14) == "cancelled"
    return run_id


@pytest.fixture(scope="module")
def finished(bench: Bench, cancelled: str) -> str:
    bench.resume(cancelled)
    assert follow(bench, cancelled) == "finished"
    return cancelled


def test_a_cancelled_tuning_keeps_nothing_until_it_is_asked_to(bench: Bench, cancelled: str) -> None:
    report = bench.tunings.report(cancelled)
    assert 0 < report.tried.tried < 28
    assert report.tried.cancelled > 0
    assert report.tuning is None
    assert report.seconds > 0
    assert bench.tunings.find() == ()
    made = bench.tunings.keep(cancelled)
    assert bench.tunings.report(cancelled).tuning == made
    assert made.tried == report.tried.tried
    bench.tunings.forget([k for k in bench.tunings.find() if k.tuning == made])
    assert bench.tunings.find() == ()


def test_resumed_it_goes_on_where_it_was_and_keeps_the_best(bench: Bench, cancelled: str) -> None:
    before = bench.tunings.report(cancelled)
    measured = {r.variant: r.measured_at for r in before.run.results if isinstance(r.outcome, Timing)}
    bench.resume(cancelled)
    assert follow(bench, cancelled) == "finished"
    report = bench.tunings.report(cancelled)
    tried, kept = report.tried, report.tuning
    assert (tried.planned, tried.space, tried.cancelled, tried.refused) == (32, 32, 0, 4)
    assert (tried.tried, tried.failed) == (28, 14)
    assert {r.failure.stage: len(r.variants) for r in tried.failures} == {"compile": 7, "wrong": 7, "unavailable": 4}
    assert kept is not None
    # 32 additions instead of one: the whole vector at once wins by far over blocks of 64.
    said = {r.result.variant: r.verdict for r in rows(report.run, ())}
    assert kept.configuration["block"] >= 512, said
    assert kept.default == {"block": 64, "way": 0}
    assert kept.speed_up is not None
    assert kept.speed_up.estimate > 1.5
    assert kept.seconds == report.seconds > before.seconds
    assert 0 < kept.preparing_s < kept.seconds
    assert tried.stopped > 0, "blocks of 32 take 4,096 additions, and the whole vector one"
    stopped = [r for r in report.run.results if stopped_early(r) is not None]
    assert all(r.accuracy is not None for r in stopped), "checked like every other one"
    figures = [r.timing.device_cold_s for r in stopped if r.timing is not None]
    assert all(f is not None and f.blocks is not None and (len(f.blocks), f.low) == (1, None) for f in figures)
    assert tried.best is not None
    assert stopped_early(tried.best.result) is None
    again = {r.variant for r in report.run.results if measured.get(r.variant) not in (None, r.measured_at)}
    assert len(again) <= 9, "the eight finalists and the default"
    assert decode(encode(report.run)) == msgspec.structs.replace(report.run)


def test_from_then_on_a_run_uses_it_at_that_problem_only_and_says_so(bench: Bench, finished: str) -> None:
    kept = bench.tunings.report(finished).tuning
    assert kept is not None
    plan = bench.plan(
        RunRequest(
            op="add", sizes={"n": "2048,4096"}, variants=("torch_eager", "in_blocks"), device="cpu", plugins=(PLUGIN,)
        )
    )
    run_id = bench.run(plan, SHORT)
    assert follow(bench, run_id) == "finished"
    found = {(r.variant, r.problem.sizes["n"]): r for r in bench.load(run_id).results}
    tuned, other = found["in_blocks", 2048], found["in_blocks", 4096]
    assert (tuned.configuration, tuned.tuned_by) == (kept.configuration, finished)
    assert (other.configuration, other.tuned_by) == (kept.default, None)
    assert found["torch_eager", 2048].configuration is None
    zeros = bench.plan(
        RunRequest(op="add", sizes=SIZES, variants=("in_blocks",), device="cpu", data="zeros", plugins=(PLUGIN,))
    )
    again = bench.run(zeros, SHORT)
    assert follow(bench, again) == "finished"
    assert bench.load(again).results[0].tuned_by == finished


def test_a_run_keeps_to_the_configuration_that_it_began_with(bench: Bench, finished: str, tmp_path: Path) -> None:
    """Cold and warm times of one case are of one configuration, whatever is forgotten between them."""
    kept = bench.tunings.find("add", variant="in_blocks")
    plan = bench.plan(RunRequest(op="add", sizes=SIZES, variants=("in_blocks",), device="cpu", plugins=(PLUGIN,)))
    run_id = bench.run(plan, msgspec.structs.replace(SHORT, figures=("cold", "warm")))
    for _, event in bench.follow(run_id, timeout_s=60):
        if isinstance(event, CaseDone):
            bench.tunings.forget(kept)
            break
    follow(bench, run_id)
    bench._store.results.drop(run_id, ())
    result = bench.load(run_id).results[0]
    assert result.tuned_by == finished
    assert result.timing is not None
    assert result.timing.device_warm_s is not None
    for one in kept:
        bench._store.tunings.put(one.tuning)


def test_a_plan_may_name_configurations_in_any_order_and_in_part(bench: Bench) -> None:
    plan = bench.plan(
        RunRequest(
            op="add",
            sizes=SIZES,
            variants=("in_blocks[way=0,block=256]", "in_blocks[block=128]"),
            device="cpu",
            plugins=(PLUGIN,),
        )
    )
    assert plan.variants == ("in_blocks[block=256,way=0]", "in_blocks[block=128,way=0]")
    assert plan.search is None


def test_where_nothing_is_right_nothing_is_kept(bench: Bench) -> None:
    plan = bench.tuning(
        RunRequest(op="add", variants=("never_right",), sizes={"n": "64"}, device="cpu", plugins=(PLUGIN,))
    )
    run_id = bench.run(plan, QUICK)
    assert follow(bench, run_id) == "finished"
    report = bench.tunings.report(run_id)
    assert (report.tried.tried, report.tried.failed, report.tried.best, report.tuning) == (3, 3, None, None)
    with pytest.raises(BadField, match="none of its configurations is correct"):
        bench.tunings.keep(run_id)


def test_a_configuration_that_raises_crashes_hangs_or_is_wrong_never_ends_a_tuning(tmp_path: Path) -> None:
    cpu = next(d for d in discover() if d.id == "cpu")
    bench = Bench(Store.open(tmp_path), (cpu,), lock_directory=tmp_path, limits=Limits(bind_s=5.0, check_s=5.0))
    try:
        request = RunRequest(op="add", variants=("breaks",), sizes={"n": "64"}, device="cpu", plugins=(PLUGIN,))
        run_id = bench.run(bench.tuning(request), QUICK)
        assert follow(bench, run_id) == "finished"
        report = bench.tunings.report(run_id)
        stages = {name: r.failure.stage for r in report.tried.failures for name in r.variants}
        assert stages == {
            "breaks[how=1]": "crash", "breaks[how=2]": "crash", "breaks[how=3]": "timeout", "breaks[how=4]": "wrong",
        }  # fmt: skip
        assert {row.result.variant for row in report.tried.ranked} == {"breaks[how=0]", "breaks[how=5]"}
        assert report.tuning is not None
        assert report.tuning.configuration["how"] in (0, 5)
    finally:
        bench.close()


def test_a_finished_tuning_is_not_measured_again_by_a_resume(bench: Bench, finished: str) -> None:
    before = bench.load(finished).results
    bench.resume(finished)
    assert follow(bench, finished) == "finished"
    assert bench.load(finished).results == before


@pytest.mark.parametrize(
    ("variant", "more", "words"),
    [
        ("torch_eager", {}, "one can tune: .*in_blocks"),
        ("in_blocks", {"sizes": {"n": "64,128"}}, "one problem at a time"),
        ("in_blocks", {"configurations": 1}, "at least 2"),
        ("in_blocks[block=64]", {}, "nothing to tune"),
    ],
)
def test_what_cannot_be_tuned_is_refused(bench: Bench, variant: str, more: dict[str, object], words: str) -> None:
    asked: dict[str, object] = {"sizes": SIZES, "device": "cpu", "plugins": (PLUGIN,)} | more
    configurations = asked.pop("configurations", None)
    with pytest.raises(BadField, match=words):
        bench.tuning(RunRequest(op="add", variants=(variant,), **asked), configurations=configurations)  # type: ignore[arg-type]


def test_a_run_that_is_no_tuning_is_refused(bench: Bench) -> None:
    plan = bench.plan(
        RunRequest(op="add", sizes={"n": "64"}, variants=("torch_eager",), device="cpu", plugins=(PLUGIN,))
    )
    run_id = bench.run(plan, SHORT)
    follow(bench, run_id)
    for ask in (bench.tunings.report, bench.tunings.keep):
        with pytest.raises(BadField, match="it is no tuning"):
            ask(run_id)


def test_a_sample_is_measured_in_a_random_order_which_the_plan_stores(bench: Bench) -> None:
    """In the order of the space, a sample that is cancelled early has only the first values of the first parameter."""
    request = RunRequest(op="add", variants=("in_blocks",), sizes=SIZES, device="cpu", plugins=(PLUGIN,))
    plan = bench.tuning(request, configurations=20, seed=7)
    everything = bench.tuning(request).variants
    places = [everything.index(name) for name in plan.variants]
    assert places[0] == 0, "the default is first"
    assert places != sorted(places)
    assert len(set(places)) == 20
    first = {parted(name)[1]["block"] for name in plan.variants[:10]}  # type: ignore[index]
    assert len(first) >= 4, "of 8 values"
    assert plan.variants == bench.tuning(request, configurations=20, seed=7).variants
    assert plan.variants != bench.tuning(request, configurations=20, seed=8).variants
    assert [parted(name)[1]["way"] for name in everything[:3]] == [0, 1, 2], "all of them: in the order of the space"  # type: ignore[index]


def test_the_cost_of_a_tuning_is_estimated_by_a_stored_one(bench: Bench, finished: str) -> None:
    request = RunRequest(op="add", variants=("in_blocks",), sizes=SIZES, device="cpu", plugins=(PLUGIN,))
    plan = bench.tuning(request, configurations=10)
    (stored,) = bench.tunings.find()
    cost = bench.tunings.cost(plan, QUICK)
    assert cost.example is not None
    assert (cost.example.tuning, cost.example.same, cost.example.budget_s) == (stored.tuning, "problem", QUICK.budget_s)
    assert cost.expected_s == pytest.approx(10 * stored.tuning.seconds / stored.tuning.tried)
    assert cost.expected_s > 0
    longer = bench.tunings.cost(plan, msgspec.structs.replace(QUICK, budget_s=QUICK.budget_s + 1))
    assert longer.expected_s == pytest.approx(cost.expected_s + 10), "each may take a second more"
    elsewhere = bench.tuning(msgspec.structs.replace(request, sizes={"n": "4096"}), configurations=10)
    assert bench.tunings.cost(elsewhere, QUICK).example == replace(cost.example, same="variant")
    assert "with binding, compiling and checks, by the stored tuning of this problem" in str(describe_expected(cost))
    bench.tunings.forget([stored])
    unknown = bench.tunings.cost(plan, QUICK)
    bench._store.tunings.put(stored.tuning)
    assert (unknown.example, unknown.expected_s) == (None, None)
    said = str(describe_expected(unknown))
    assert "200 ms of measuring, and 720 ms for the final" in said, "10 times 0.02 s, and 9 times 0.08 s"
    assert "Binding, compiling and the correctness checks are not in it" in said


def test_a_tuning_says_how_it_was_drawn_and_how_to_ask_for_it_again(bench: Bench) -> None:
    from kernelviz.core.command import commands

    plan = bench.tuning(
        RunRequest(op="add", variants=("in_blocks",), sizes=SIZES, device="cpu", plugins=(PLUGIN,)),
        configurations=6,
        seed=7,
    )
    assert plan == bench.tuning(
        RunRequest(op="add", variants=("in_blocks",), sizes=SIZES, device="cpu", plugins=(PLUGIN,)),
        configurations=6,
        seed=7,
    )
    assert (len(plan.variants), plan.baseline) == (6, "in_blocks[block=64,way=0]")
    (line,) = commands(plan, QUICK)
    assert line == (
        "kernelviz tune add in_blocks --size n=2048 --dtype fp32 --configurations 6 --seed 7 --budget-s 0.02 "
        f"--with {PLUGIN} --device cpu"
    )
