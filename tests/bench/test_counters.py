"""Reading hardware counters as a use case, over real processes: a played `ncu` on the PATH, real workers with played sessions."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kernelviz.bench import Bench
from kernelviz.core import uncounted as u
from kernelviz.core.errors import BadField, UnknownName
from kernelviz.core.events import CaseStep, CountersDone, DeviceBusy, Event, RunEnded
from kernelviz.core.problem import Problem
from kernelviz.core.request import RunRequest
from kernelviz.core.result import Timing
from kernelviz.core.run import Run
from kernelviz.formats import document
from kernelviz.hardware.nsight_compute.metric_names import requested_metrics
from kernelviz.text.counters import PERMISSION_LINES, describe_uncounted
from kernelviz.worker.device_lock import DeviceLock
from tests import fake_ncu
from tests.bench.bench_of_sessions import bench_in
from tests.worker.sessions import DEVICE, GPU

SIZES = {"n": "4096"}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = bench_in(tmp_path, devices=(GPU, DEVICE), session="open_gpu_session")
    yield made
    made.close()


def followed(bench: Bench, name: str) -> list[Event]:
    events = [event for _, event in bench.follow(name, timeout_s=30)]
    assert isinstance(events[-1], RunEnded), events[-3:]
    return events


def measured(bench: Bench, variants: tuple[str, ...] = ("a", "b"), sizes: dict[str, str] | None = None) -> Run:
    run_id = bench.run(bench.plan(RunRequest(op="add", sizes=sizes or SIZES, variants=variants, device=GPU.id)))
    followed(bench, run_id)
    return bench.load(run_id)


def reason_of(bench: Bench, name: str) -> u.Uncounted:
    (reason,) = bench.counters.not_read(name).values()
    return reason


def test_counters_are_stored_with_the_cases_of_their_run(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = fake_ncu.on_path(monkeypatch, tmp_path)
    run = measured(bench)
    digest = document.digest(run)
    name = bench.counters.read_of_run(run, ("a", "b"), owner="ann")
    events = followed(bench, name)
    assert [type(e) for e in events[-3:]] == [CountersDone, CountersDone, RunEnded]
    assert events[-1] == RunEnded(status="finished")
    read = bench.counters.read_cases(name)
    assert [(one.variant, one.run_id, len(one.counters.kernels)) for one in read] == [
        ("a", run.id, 1),
        ("b", run.id, 1),
    ]
    assert bench.counters.not_read(name) == {}
    about = read[0].counters
    assert (about.tool, about.version, about.cold, about.replay, about.not_read) == (
        "ncu",
        "2025.3.1.0",
        True,
        "application",
        (),
    )
    kernel = about.kernels[0]
    assert kernel.kernel == "void a_kernel<float, 4>(int)"
    assert (kernel.grid, kernel.block, kernel.dram_read_bytes) == ((65536, 1, 1), (256, 1, 1), 67108864)
    assert (kernel.duration_s, kernel.l2_read_bytes, kernel.fma_fraction) == (
        pytest.approx(52.3e-6),
        2097152 * 32,
        0.405,
    )
    assert kernel.stalls["long_scoreboard"] == 0.25
    stored = bench.load(run.id)
    assert [r.hardware_counters for r in stored.results] == [one.counters for one in read]
    assert [msgspec.structs.replace(r, counters=msgspec.UNSET) for r in stored.results] == list(run.results)
    assert document.digest(stored) != digest, "counters are facts"
    assert document.decode(document.encode(stored)).results == stored.results
    (call,) = fake_ncu.calls(place)
    program = call[call.index("--metrics") + 2 :]
    assert program[1:] == [
        "-P", "-m", "kernelviz", "launch", "add", "--variants", "a,b", "--size", "n=4096", "--dtype", "fp32",
        "--device", "cuda:0", "--marked", "--device-locked",
    ]  # fmt: skip
    for option, value in {
        "--profile-from-start": "off", "--clock-control": "none", "--cache-control": "none", "--replay-mode": "application",
        "--page": "raw", "--print-units": "base", "--target-processes": "application-only",
    }.items():  # fmt: skip
        assert call[call.index(option) + 1] == value
    assert call[call.index("--metrics") + 1].split(",") == list(requested_metrics(None))


def test_a_call_of_several_kernels_has_the_counters_of_each(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_ncu.on_path(monkeypatch, tmp_path, "two_kernels")
    plan = bench.plan(RunRequest(op="add", sizes=SIZES, variants=("a",), device=GPU.id))
    name = bench.counters.read(plan, replay="kernel")
    followed(bench, name)
    (one,) = bench.counters.read_cases(name)
    assert (len(one.counters.kernels), one.run_id, one.counters.replay) == (2, None, "kernel")
    assert bench.runs() == (), "without a run, nothing is stored"


def test_a_metric_that_this_ncu_does_not_know_is_left_out(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = fake_ncu.on_path(monkeypatch, tmp_path, "old_ncu")
    run = measured(bench, ("a",))
    name = bench.counters.read_of_run(run, ("a",))
    followed(bench, name)
    (one,) = bench.counters.read_cases(name)
    assert one.counters.not_read == (fake_ncu.UNKNOWN_TO_OLD,)
    assert one.counters.kernels[0].l2_bytes is None
    assert len(fake_ncu.calls(place)) == 2


@pytest.mark.parametrize(
    ("mode", "reason", "text"),
    [
        ("not_permitted", u.NotPermitted(), PERMISSION_LINES[0]),
        ("busy", u.CountersBusy(), "another profiler"),
        ("not_loaded", u.ProfilerNotLoaded(), "LibraryNotLoaded"),
        ("fails", u.ProfilerFailed(exit_code=1), "out of memory"),
        ("sees_nothing", u.NothingCounted(), "saw no kernel"),
        ("is_cut_off", u.OutputUnreadable(), "cannot be read"),
        ("one_variant_missing", u.OutputUnreadable(), "ends of a call"),
    ],
)
def test_why_there_are_no_counters_is_typed_and_said(
    bench: Bench,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: fake_ncu.Mode,
    reason: u.UncountedReason,
    text: str,
) -> None:
    fake_ncu.on_path(monkeypatch, tmp_path, mode)
    run = measured(bench, ("a",))
    name = bench.counters.read_of_run(run, ("a",))
    events = followed(bench, name)
    assert events[-1] == RunEnded(status="finished")
    refused = reason_of(bench, name)
    assert refused.reason == reason
    assert text in str(describe_uncounted(refused))
    assert bench.counters.read_cases(name) == ()
    assert bench.load(run.id).results == run.results, "nothing is stored"
    assert bench.progress(name).failed == 1


def test_what_is_known_before_is_refused_at_once(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(op="add", sizes={"n": 4096}, dtype="fp32")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bench.counters.refusal(problem, GPU.id) == u.Uncounted(reason=u.NoProfiler())
    assert bench.counters.refusal(problem, DEVICE.id) == u.Uncounted(reason=u.NoCountersHere(device=DEVICE.name))
    backward = msgspec.structs.replace(problem, direction="backward")
    assert bench.counters.refusal(backward, GPU.id) == u.Uncounted(reason=u.NoBackwardLaunch())
    plan = bench.plan(RunRequest(op="add", sizes=SIZES, variants=("a",), device=GPU.id))
    with pytest.raises(u.CountersRefused, match="not on the PATH") as refused:
        bench.counters.read(plan)
    assert refused.value.uncounted.reason == u.NoProfiler()


def test_bad_requests_name_the_field(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_ncu.on_path(monkeypatch, tmp_path)
    run = measured(bench, ("a", "raises"), {"n": "64,128"})
    with pytest.raises(BadField, match="2 problems"):
        bench.counters.read_of_run(run, ("a",))
    with pytest.raises(UnknownName, match="no variant 'c'"):
        bench.counters.read_of_run(run, ("c",), sizes={"n": "64"})
    with pytest.raises(UnknownName, match="no problem"):
        bench.counters.read_of_run(run, ("a",), problem="add fp32 n=1")
    with pytest.raises(BadField, match="no correct time"):
        bench.counters.read_of_run(run, ("raises",), sizes={"n": "64"})
    elsewhere = msgspec.structs.replace(run, id="unknown")
    with pytest.raises(BadField, match="not stored on this machine"):
        bench.counters.read_of_run(elsewhere, ("a",), sizes={"n": "64"})
    with pytest.raises(BadField, match="2 problems"):
        bench.counters.read(bench.plan(RunRequest(op="add", sizes={"n": "64,128"}, variants=("a",), device=GPU.id)))


def test_counters_of_other_code_are_not_stored_with_a_result(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_ncu.on_path(monkeypatch, tmp_path)
    run = measured(bench, ("a",))
    of_other_code = [msgspec.structs.replace(run.results[0], source_digest="0" * 64)]
    with pytest.raises(u.CountersRefused, match="measure the case again") as refused:
        bench.counters.read_of_run(msgspec.structs.replace(run, results=tuple(of_other_code)), ("a",))
    assert refused.value.uncounted.reason == u.OtherCode()
    tuned = [msgspec.structs.replace(run.results[0], configuration={"block": 1}, tuned_by="another run")]
    with pytest.raises(u.CountersRefused, match="configuration"):
        bench.counters.read_of_run(msgspec.structs.replace(run, results=tuple(tuned)), ("a",))


def test_another_persons_run_waits_and_its_worker_is_new(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = fake_ncu.on_path(monkeypatch, tmp_path, "waits")
    run = measured(bench, ("a",))
    first_worker = run.environment.versions["pid"]
    name = bench.counters.read_of_run(run, ("a",), owner="ann")
    _wait_for(place / "waits")
    ended: list[float] = []
    other = bench.run(bench.plan(RunRequest(op="add", sizes=SIZES, variants=("b",), device=GPU.id)), owner="ben")
    thread = threading.Thread(target=lambda: (followed(bench, other), ended.append(time.monotonic())))
    thread.start()
    time.sleep(0.3)
    assert not ended, "the device is locked while ncu runs"
    assert bench.health()["devices"][GPU.id]["state"] == "working"  # type: ignore[index]
    cancelled_s = time.monotonic()
    bench.cancel(name)
    assert followed(bench, name)[-1] == RunEnded(status="cancelled")
    thread.join(30)
    assert ended[0] > cancelled_s
    later = bench.load(other)
    assert isinstance(later.results[0].outcome, Timing)
    assert later.environment.versions["pid"] != first_worker
    assert reason_of(bench, name).reason == u.CountersCancelled()


def test_counters_wait_for_the_lock_of_another_process(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = fake_ncu.on_path(monkeypatch, tmp_path)
    plan = bench.plan(RunRequest(op="add", sizes=SIZES, variants=("a",), device=GPU.id))
    lock = DeviceLock(GPU.uuid, tmp_path)
    assert lock.acquire(lambda holder: None, lambda: False)
    name = bench.counters.read(plan)
    events = bench.follow(name, timeout_s=20)
    assert any(isinstance(event, DeviceBusy) for _, event in events if isinstance(event, DeviceBusy | CaseStep))
    assert fake_ncu.calls(place) == []
    lock.release()
    lock.close()
    followed(bench, name)
    assert len(bench.counters.read_cases(name)) == 1


def test_the_processes_of_a_cancelled_reading_end(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = fake_ncu.on_path(monkeypatch, tmp_path, "waits")
    name = bench.counters.read(bench.plan(RunRequest(op="add", sizes=SIZES, variants=("a",), device=GPU.id)))
    _wait_for(place / "waits")
    bench.cancel(name)
    followed(bench, name)
    assert not _running(str(place))


def _wait_for(file: Path) -> None:
    until_s = time.monotonic() + 20
    while not file.exists():
        assert time.monotonic() < until_s, f"{file} did not appear"
        time.sleep(0.02)


def _running(text: str) -> list[str]:
    """The command lines of processes that contain the text."""
    lines = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                lines.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            except OSError:
                continue
    return [line for line in lines if text in line]
