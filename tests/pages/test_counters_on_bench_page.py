"""The Bench page's tab Counters: read by a button, followed, stored with the run, and why they cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sample_counters
import sample_runs as samples
from open_page import open_page
from rehearsed_bench import RehearsedBench
from streamlit.testing.v1 import AppTest

import kernelviz
import kernelviz.bench
from kernelviz.bench import Bench
from kernelviz.core.events import RunEnded
from kernelviz.core.request import RunRequest
from tests import fake_ncu
from tests.bench.bench_of_sessions import bench_in
from tests.worker.sessions import DEVICE, GPU


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = bench_in(tmp_path, devices=(GPU, DEVICE), session="open_gpu_session")
    monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
    yield made
    made.close()


def measured(bench: Bench) -> str:
    plan = bench.plan(RunRequest(op="add", sizes={"n": "4096"}, variants=("a", "b"), device=GPU.id))
    run_id = bench.run(plan)
    assert [e for _, e in bench.follow(run_id, timeout_s=30) if isinstance(e, RunEnded)]
    return run_id


def opened(run_id: str) -> AppTest:
    return open_page({"run": run_id}, state={"tables": "Counters"})


def words(test: AppTest) -> str:
    kinds = ("markdown", "caption", "error", "warning", "code")
    return "\n".join(str(e.value) for kind in kinds for e in getattr(test, kind)).replace("\\", "")


def test_a_press_reads_the_counters_and_shows_them(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_ncu.on_path(monkeypatch, tmp_path)
    run_id = measured(bench)
    page = opened(run_id)
    assert "were not read yet" in words(page)
    assert "ncu --set full --profile-from-start off" in words(page)
    assert "nsys profile --capture-range=cudaProfilerApi" in words(page)
    page.button(key="counters_now").click().run()
    for _, event in bench.follow(next(iter(page.session_state["actions"].activities.values())), timeout_s=20):
        assert event is not None
    page.run()
    text = words(page)
    assert "ncu 2025.3.1.0, one call after a flush of the caches" in text
    assert "ncu counted 134 MB between L2 and device memory" in text
    assert page.button(key="counters_now").label == "Read counters again"
    assert bench.load(run_id).results[0].hardware_counters is not None


def test_a_refusal_of_the_driver_is_shown_with_its_remedy(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_ncu.on_path(monkeypatch, tmp_path, "not_permitted")
    page = opened(measured(bench))
    page.button(key="counters_now").click().run()
    for _, event in bench.follow(next(iter(page.session_state["actions"].activities.values())), timeout_s=20):
        assert event is not None
    page.run()
    assert "NVreg_RestrictProfilingToAdminUsers=0" in words(page)
    assert "--cap-add SYS_ADMIN" in words(page)


def test_without_ncu_the_button_is_disabled_and_the_page_says_why(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = measured(bench)
    monkeypatch.setenv("PATH", str(tmp_path))
    page = opened(run_id)
    assert page.button(key="counters_now").disabled
    assert "not on the PATH" in words(page)


NAME = "void <b>bold</b> &amp; [x](y)"


def test_counters_of_a_run_from_elsewhere_are_shown_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = sample_counters.kernel(NAME)
    run = samples.run(
        [sample_counters.counted(r, kernel) if r.timing is not None else r for r in samples.run().results]
    )
    made = RehearsedBench((samples.CPU,), stored=(run,))
    monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
    page = opened(run.id)
    assert not [button for button in page.button if button.key == "counters_now"]
    assert "ncu counted 134 MB between L2 and device memory" in words(page)
    assert "A load of a warp touches 4.0 sectors of 32 bytes, a store 4.0." in words(page)
    assert "74% for data from L1, L2 or device memory" in words(page).replace("74 %", "74%")
    (table,) = [d.value for d in page.dataframe if "Kernel" in d.value.columns]
    assert list(table["Kernel"]) == [NAME]
