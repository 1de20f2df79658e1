"""The use cases over a real store and real worker processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from kernelviz.bench import Bench
from kernelviz.core.errors import BadField, UnknownName, UnknownRun
from kernelviz.core.events import CaseDone, CaseStep, DeviceBusy, Event, RoofDone, RunEnded, RunQueued
from kernelviz.core.notices import Notice
from kernelviz.core.problem import Method, Plan
from kernelviz.core.reasons import NeedMissing, NoDtype
from kernelviz.core.request import RunRequest
from kernelviz.core.result import Failure, Timing
from kernelviz.core.run import Run, Status
from kernelviz.store import StoreError
from kernelviz.worker.device_lock import DeviceLock
from tests.bench.bench_of_sessions import BROKEN_GPU, GPU, bench_in
from tests.worker.sessions import DEVICE

SHORT = Method(budget_s=0.01)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = bench_in(tmp_path)
    yield made
    made.close()


def plan(bench: Bench, *variants: str, n: str = "1") -> Plan:
    return bench.plan(RunRequest(op="add", sizes={"n": n}, variants=variants))


def followed(bench: Bench, run_id: str) -> list[Event]:
    """Every event until the end; a run that hangs fails here."""
    events = [event for _, event in bench.follow(run_id, timeout_s=20)]
    assert isinstance(events[-1], RunEnded), events[-3:]
    return events


def until(bench: Bench, run_id: str, seen: Callable[[Event], bool], after: int = 0) -> int:
    """The number of the first event that is wanted."""
    for sequence, event in bench.follow(run_id, after=after, timeout_s=20):
        if seen(event):
            return sequence
    raise AssertionError("the run ended before")


def is_measuring(event: Event) -> bool:
    return isinstance(event, CaseStep) and event.step == "measuring"


def finished(bench: Bench, asked: Plan, status: Status = "finished") -> Run:
    run_id = bench.run(asked, SHORT)
    end = followed(bench, run_id)[-1]
    assert isinstance(end, RunEnded)
    assert (end.status, bench.progress(run_id).status) == (status, status)
    return bench.load(run_id)


def stages(run: Run) -> dict[tuple[int, str], str]:
    return {
        (r.problem.sizes["n"], r.variant): r.outcome.stage if isinstance(r.outcome, Failure) else ""
        for r in run.results
    }


def test_a_run_from_plan_to_document(bench: Bench) -> None:
    asked = plan(bench, "b", "a", n="1,2")
    run_id = bench.run(asked, SHORT, owner="ann", title="mine")
    stored = bench.load(run_id)
    assert (stored.plan, stored.title, stored.method) == (asked, "mine", SHORT)
    assert stored.environment.device == DEVICE
    events = followed(bench, run_id)
    run = bench.load(run_id)
    assert [r.case for r in run.results] == asked.cases()
    assert run.status == "finished"
    assert run.environment.kernelviz == "test"  # completed by the worker
    assert [e.result for e in events if isinstance(e, CaseDone)] == list(run.results)
    progress = bench.progress(run_id)
    assert (progress.done, progress.failed, progress.total, dict(progress.steps)) == (4, 0, 4, {})
    line = bench.runs()[0]
    assert (line.id, line.title, line.op, line.cases, line.done) == (run_id, "mine", "add", 4, 4)


def test_what_cannot_run_here_fails_without_a_worker(bench: Bench) -> None:
    run = finished(bench, plan(bench, "needs_cuda", "half_only"))
    outcomes = {r.variant: r.outcome for r in run.results}
    assert outcomes["needs_cuda"] == Failure(
        stage="unavailable", reasons=(NeedMissing(notice=Notice("stated", {"text": "needs CUDA: no GPU here"})),)
    )
    assert outcomes["half_only"] == Failure(stage="unavailable", reasons=(NoDtype(dtype="fp32", has=("fp16",)),))
    assert all(r.cost is not None for r in run.results)
    assert bench.health()["devices"]["cpu"]["workers_started"] == 0  # type: ignore[index]
    mixed = finished(bench, plan(bench, "needs_cuda", "a"))
    assert stages(mixed) == {(1, "needs_cuda"): "unavailable", (1, "a"): ""}


def test_a_crash_is_its_own_case_and_the_run_goes_on(bench: Bench) -> None:
    run = finished(bench, plan(bench, "a", "abort", "b", "out_of_memory", n="1,2"))
    assert stages(run) == {
        (n, v): {"abort": "crash", "out_of_memory": "out_of_memory"}.get(v, "")
        for n in (1, 2)
        for v in ("a", "abort", "b", "out_of_memory")
    }


def test_a_case_that_comes_twice_has_its_last_result(bench: Bench) -> None:
    run = finished(bench, plan(bench, "twice"))
    outcome = run.results[0].outcome
    assert isinstance(outcome, Timing)
    assert outcome.device_cold_s is not None
    assert outcome.device_cold_s.estimate == 2e-6


def test_cancel_of_a_running_run_and_resume(bench: Bench) -> None:
    run_id = bench.run(plan(bench, "a", "until_cancelled", n="1,2"), SHORT)
    until(bench, run_id, lambda e: isinstance(e, CaseDone))
    bench.cancel(run_id)
    assert followed(bench, run_id)[-1] == RunEnded(status="cancelled")
    assert stages(bench.load(run_id)) == {
        (1, "a"): "",
        (1, "until_cancelled"): "cancelled",
        (2, "a"): "cancelled",
        (2, "until_cancelled"): "cancelled",
    }
    bench.cancel(run_id)  # it has ended: nothing happens
    first = bench.load(run_id).results[0]
    seen = bench.progress(run_id).sequence
    bench.resume(run_id)
    assert bench.progress(run_id).done == 1
    until(bench, run_id, lambda e: isinstance(e, CaseDone), after=seen)
    bench.resume(run_id)  # it runs: nothing happens
    bench.cancel(run_id)
    assert [e for _, e in bench.follow(run_id, after=seen)][-1] == RunEnded(status="cancelled")
    resumed = bench.load(run_id).results
    assert len(resumed) == 4
    # The baseline kept its samples, and got those of the rounds that it shared with the resumed case.
    assert first.timing is not None
    assert resumed[0].timing is not None
    assert first.timing.device_cold_s is not None
    assert resumed[0].timing.device_cold_s is not None
    old, new = first.timing.device_cold_s.samples or (), resumed[0].timing.device_cold_s.samples or ()
    assert new[: len(old)] == old
    assert len(new) > len(old)


def test_cancel_of_a_queued_run(bench: Bench) -> None:
    busy = bench.run(plan(bench, "until_cancelled"), SHORT, owner="ann")
    until(bench, busy, is_measuring)
    queued = bench.run(plan(bench, "a", n="1,2"), SHORT, owner="bob")
    until(bench, queued, lambda e: isinstance(e, RunQueued) and e.ahead == 1)
    assert bench.progress(queued).ahead == 1
    bench.cancel(queued)
    assert followed(bench, queued)[-1] == RunEnded(status="cancelled")
    assert set(stages(bench.load(queued)).values()) == {"cancelled"}
    assert bench.progress(busy).status == "running"
    bench.cancel(busy)
    followed(bench, busy)


def test_two_people_take_turns(bench: Bench) -> None:
    """Ann's sweep of three waits behind her first run; Bob's point comes before it, as hers was the last turn."""
    busy = bench.run(plan(bench, "until_cancelled"), SHORT, owner="ann")
    until(bench, busy, is_measuring)
    sweep = bench.run(plan(bench, "a", n="1,2,3"), SHORT, owner="ann")
    point = bench.run(plan(bench, "b"), SHORT, owner="bob")
    assert (bench.progress(sweep).ahead, bench.progress(point).ahead) == (2, 1)
    bench.cancel(busy)
    for run_id, cases in ((sweep, 3), (point, 1)):
        assert followed(bench, run_id)[-1] == RunEnded(status="finished")
        assert len(bench.load(run_id).results) == cases


def test_many_followers_see_the_same(bench: Bench) -> None:
    run_id = bench.run(plan(bench, "a", "b", n="1,2,3"), SHORT)
    seen: list[list[tuple[int, Event]]] = []

    def follow() -> None:
        seen.append(list(bench.follow(run_id, timeout_s=20)))

    threads = [threading.Thread(target=follow) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    results = [[e.result for _, e in s if isinstance(e, CaseDone)] for s in seen]
    assert len(results) == 4
    assert all(r == results[0] and len(r) == 6 for r in results)
    sequences = [n for n, _ in seen[0]]
    assert sequences == sorted(set(sequences))


def test_following_from_somewhere_and_with_a_time_limit(bench: Bench) -> None:
    run_id = bench.run(plan(bench, "a", "until_cancelled"), SHORT)
    at = until(bench, run_id, lambda e: isinstance(e, CaseDone))
    assert list(bench.follow(run_id, after=at, timeout_s=0.05)) == []
    bench.cancel(run_id)
    rest = list(bench.follow(run_id, after=at, timeout_s=20))
    assert all(n > at for n, _ in rest)
    assert rest[-1][1] == RunEnded(status="cancelled")
    # A page that reconnects behind the end, or with a number of an earlier server, learns of the end.
    for after in (rest[-1][0], 10_000):
        assert list(bench.follow(run_id, after=after, timeout_s=1))[-1][1] == RunEnded(status="cancelled")


def test_superseded_steps_are_not_kept(bench: Bench) -> None:
    run_id = bench.run(plan(bench, "a", n="1..40:1"), SHORT)
    followed(bench, run_id)
    late = list(bench.follow(run_id))
    assert sum(isinstance(e, CaseStep) for _, e in late) == 0
    assert sum(isinstance(e, CaseDone) for _, e in late) == 40


def test_unknown_things_are_named(bench: Bench) -> None:
    for ask in (bench.load, bench.progress, bench.follow, bench.cancel, bench.resume):
        with pytest.raises(UnknownRun, match="'nowhere'"):
            ask("nowhere")
    with pytest.raises(UnknownName, match="did you mean 'add'"):
        bench.plan(RunRequest(op="ad"))
    with pytest.raises(UnknownName, match="did you mean 'abort'"):
        bench.plan(RunRequest(op="add", variants=("abbort",)))
    with pytest.raises(UnknownName, match="no device 'cuda:3'"):
        bench.plan(RunRequest(op="add", device="cuda:3"))
    with pytest.raises(UnknownName, match="did you mean 'fp32'"):
        bench.plan(RunRequest(op="add", dtype="fp322"))
    with pytest.raises(UnknownName, match=r"no preset 'modl'.*did you mean 'model'"):
        bench.plan(RunRequest(op="add", preset="modl"))
    with pytest.raises(UnknownName, match="no axis 'm'"):
        bench.plan(RunRequest(op="add", sizes={"m": "1"}))
    with pytest.raises(UnknownName, match="no direction"):
        bench.plan(RunRequest(op="add", direction="sideways"))
    with pytest.raises(BadField, match="size n"):
        bench.plan(RunRequest(op="add", sizes={"n": "-3"}))
    with pytest.raises(BadField, match="no such file"):
        bench.plan(RunRequest(op="add", plugins=("/nowhere/x.py",)))
    with pytest.raises(BadField, match="budget_s"):
        bench.run(plan(bench, "a"), Method(budget_s=float("nan")))
    assert bench.runs() == ()


def test_plans_by_default(bench: Bench) -> None:
    asked = bench.plan(RunRequest(op="add"))
    axis = bench.ops()["add"].axes[0]
    assert len(asked.problems) == len(axis.cpu_default.split(","))
    assert "needs_cuda" not in asked.variants
    assert "half_only" not in asked.variants
    assert (asked.baseline, asked.device, asked.problems[0].dtype) == ("a", "cpu", "fp32")
    assert [p.sizes["n"] for p in bench.plan(RunRequest(op="add", preset="model")).problems] == [64, 128]
    assert [p.sizes["n"] for p in bench.plan(RunRequest(op="add", preset="model", sizes={"n": "7"})).problems] == [7]
    named = bench.plan(RunRequest(op="add", variants=("b",), baseline="a"))
    assert (named.variants, named.baseline) == (("a", "b"), "a")
    assert bench.plan(RunRequest(op="add", variants=("b", "twice"))).baseline == "b"


def test_devices_and_offers(tmp_path: Path) -> None:
    bench = bench_in(tmp_path, (BROKEN_GPU, GPU, DEVICE))
    assert bench.default_device() == "cuda:0"
    assert bench.device("cuda:1") == BROKEN_GPU
    on_cpu = {o.variant.name: o for o in bench.offers("add", "cpu")}
    assert (on_cpu["a"].available, on_cpu["a"].lack) == (True, None)
    assert (on_cpu["needs_cuda"].available, on_cpu["needs_cuda"].lack) == (
        False,
        NeedMissing(notice=Notice("stated", {"text": "needs CUDA: no GPU here"})),
    )
    assert all(
        o.lack == NeedMissing(notice=Notice("stated", {"text": BROKEN_GPU.reason}))
        for o in bench.offers("add", "cuda:1")
    )
    assert [o.variant.name for o in bench.offers("add", "cuda:0")] == [v.name for v in bench.ops()["add"].variants]
    assert all(o.available for o in bench.offers("add", "cuda:0"))
    bench.close()
    assert bench_in(tmp_path, (BROKEN_GPU, DEVICE)).default_device() == "cpu"


def test_calibration(bench: Bench) -> None:
    assert bench.roofs("cpu") == ()
    name = bench.calibrate("cpu")
    events = followed(bench, name)
    roofs = bench.roofs("cpu")
    assert [e.roof for e in events if isinstance(e, RoofDone)] == list(roofs)
    assert [r.name for r in roofs] == ["read", "copy"]
    assert bench.progress(name).done == 2
    assert finished(bench, plan(bench, "a")).environment.roofs == roofs


def test_a_calibration_that_cannot_be_done_says_why(tmp_path: Path) -> None:
    bench = bench_in(tmp_path, session="cannot_open")
    end = followed(bench, bench.calibrate("cpu"))[-1]
    assert isinstance(end, RunEnded)
    assert end.status == "interrupted"
    assert "no such device here" in end.message
    run = finished(bench, plan(bench, "a"))
    assert stages(run) == {(1, "a"): "unavailable"}
    bench.close()


def test_close_interrupts_and_another_bench_resumes(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)
    asked = plan(bench, "a", "hang", n="1,2")
    run_id = bench.run(asked, SHORT)
    until(bench, run_id, lambda e: isinstance(e, CaseDone))
    bench.close()
    assert bench.health()["status"] == "closed"
    for late in (lambda: bench.run(asked), lambda: bench.calibrate("cpu")):
        with pytest.raises(BadField, match="stopping"):
            late()
    second = bench_in(tmp_path)
    assert list(second.follow(run_id)) == [(1, RunEnded(status="interrupted"))]
    assert stages(second.load(run_id)) == {(1, "a"): ""}
    second.resume(run_id)
    assert followed(second, run_id)[-1] == RunEnded(status="finished")
    assert stages(second.load(run_id)) == {(1, "a"): "", (1, "hang"): "timeout", (2, "a"): "", (2, "hang"): "timeout"}
    second.close()


def test_a_run_of_another_device_is_not_resumed_here(bench: Bench, tmp_path: Path) -> None:
    run_id = bench.run(plan(bench, "until_cancelled"), SHORT)
    until(bench, run_id, is_measuring)
    bench.cancel(run_id)
    followed(bench, run_id)
    elsewhere = bench_in(tmp_path, (msgspec.structs.replace(DEVICE, uuid="CPU-other", name="Another"),))
    with pytest.raises(BadField, match="Another here; start a new run"):
        elsewhere.resume(run_id)
    elsewhere.close()


def test_who_waits_for_the_device_sees_the_holder(bench: Bench, tmp_path: Path) -> None:
    lock = DeviceLock(DEVICE.uuid, tmp_path)
    assert lock.acquire(lambda holder: None, lambda: False)
    run_id = bench.run(plan(bench, "a"), SHORT)
    until(bench, run_id, lambda e: isinstance(e, DeviceBusy))
    assert "waiting for" in bench.progress(run_id).message
    bench.cancel(run_id)  # a cancel is heard while waiting
    assert followed(bench, run_id)[-1] == RunEnded(status="cancelled")
    lock.release()
    lock.close()
    finished(bench, plan(bench, "a"))


def test_a_disk_that_fills_up_ends_the_run_with_its_reason(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise StoreError("the disk is full")

    run_id = bench.run(plan(bench, "a", n="1,2"), SHORT)
    monkeypatch.setattr(bench._store.results, "put", full)
    end = followed(bench, run_id)[-1]
    assert isinstance(end, RunEnded)
    monkeypatch.undo()
    if end.status == "interrupted":  # else it was quicker than we were
        assert "the disk is full" in end.message
        bench.resume(run_id)
        followed(bench, run_id)
    assert stages(bench.load(run_id)) == {(1, "a"): "", (2, "a"): ""}


def test_a_document_of_elsewhere_is_kept_once(bench: Bench) -> None:
    run = finished(bench, plan(bench, "a"))
    foreign = msgspec.structs.replace(run, id="elsewhere", status="running", title="imported")
    assert bench.history.add(foreign) == "elsewhere"
    assert bench.history.add(msgspec.structs.replace(foreign, title="again")) == "elsewhere"
    found = bench.load("elsewhere")
    assert (found.title, found.status, found.results) == ("imported", "interrupted", run.results)


def test_conditions_are_read_but_not_while_measuring(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    first = bench.conditions("cpu")
    assert first.read_at is not None
    run_id = bench.run(plan(bench, "until_cancelled"), SHORT)
    until(bench, run_id, is_measuring)
    monkeypatch.setattr("kernelviz.bench.bench._CONDITIONS_S", 0.0)
    assert bench.conditions("cpu") is first
    bench.cancel(run_id)
    followed(bench, run_id)
    finished(bench, plan(bench, "a"))
    assert bench.health()["status"] == "ok"


def test_what_is_discarded_is_gone_and_what_goes_on_ends_first(bench: Bench) -> None:
    ended = finished(bench, plan(bench, "a")).id
    assert bench.discard(ended)
    with pytest.raises(UnknownRun):
        bench.load(ended)
    assert bench.discard(ended)

    going = bench.run(plan(bench, "until_cancelled"), SHORT)
    until(bench, going, is_measuring)
    after = bench.run(plan(bench, "a"), SHORT)
    assert bench.discard(going)
    end = followed(bench, going)[-1]
    assert isinstance(end, RunEnded)
    assert end.status == "cancelled"
    followed(bench, after)  # behind the other's end in the same queue: it is removed by now
    with pytest.raises(UnknownRun):
        bench.load(going)
    assert followed(bench, going)[-1] == end  # whoever followed it may still be reading
    assert bench.load(after).status == "finished"


@pytest.mark.parametrize("word", ["title", "note"])
def test_what_somebody_named_is_not_thrown_away(bench: Bench, word: str) -> None:
    run_id = finished(bench, plan(bench, "a")).id
    if word == "title":
        bench.history.rename(run_id, "the one with the odd dip")
    else:
        bench.history.annotate(run_id, "look at this again")
    assert not bench.discard(run_id)
    assert bench.load(run_id).results
