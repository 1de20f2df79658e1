"""The Python API over a rehearsed bench."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import rehearsed_bench as rehearsed
import rich.pretty
import sample_runs as samples

import kernelviz as kv
from kernelviz import bench as use_cases
from kernelviz.core.errors import BadField, DocumentError, UnknownName, UnknownRun
from kernelviz.core.events import Event
from kernelviz.core.run import Run
from kernelviz.ops import catalogue


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> rehearsed.RehearsedBench:
    made = rehearsed.RehearsedBench(
        (samples.H200, samples.CPU), roofs=samples.H200_ROOFS, faults={"triton_block_per_row": ("wrong", "off by one")}
    )
    monkeypatch.setattr(use_cases, "current", lambda: made)
    return made


RMSNORM = catalogue()["rmsnorm"].variants


def _report() -> kv.Report:
    return kv.run("rmsnorm", sizes={"m": 4096, "n": [1024, 2048]}, dtype="bf16")


def test_a_run_comes_back_as_a_frame(bench: rehearsed.RehearsedBench) -> None:
    frame = _report().to_frame()
    assert len(frame) == 2 * len(RMSNORM)
    assert list(frame.n.unique()) == [1024, 2048]
    assert (frame.m == 4096).all()
    base = frame[frame.is_baseline]
    assert list(base.variant.unique()) == ["torch_eager"]
    assert (base.speed_up == 1).all()
    best = frame[frame.variant == "triton_persistent"].iloc[0]
    assert best.verdict == "faster"
    assert best.time_low_s < best.time_s < best.time_high_s
    moved = best.read_bytes + best.written_bytes
    assert best.bandwidth_bytes_per_s == pytest.approx(moved / best.time_s)
    assert 0 < best.efficiency_fraction < 1


def test_a_wrong_result_has_no_time_but_the_one_it_took(bench: rehearsed.RehearsedBench) -> None:
    report = _report()
    wrong = report.to_frame().query("variant == 'triton_block_per_row'").iloc[0]
    assert math.isnan(wrong.time_s)
    assert pd.isna(wrong.speed_up)
    assert wrong.wrong_time_s > 0
    assert (wrong.failure, wrong.failure_message, wrong.correct) == ("wrong", "off by one", False)
    assert report.fastest != "triton_block_per_row"
    assert set(report.failures.values()) == {"wrong: off by one"}


def test_a_report_is_a_run_for_every_plot(bench: rehearsed.RehearsedBench) -> None:
    report = _report()
    assert isinstance(report, Run)
    assert len(kv.plots.latency_by_size(report).data) > 0
    assert report.document["schema"] == "kernelviz/2"


def test_saved_and_loaded_by_path_and_by_id(bench: rehearsed.RehearsedBench, tmp_path: Path) -> None:
    report = _report()
    path = report.save(tmp_path / "run.json")
    assert kv.load(path) == kv.load(str(path)) == kv.load(report.id) == report


def test_loading_what_is_not_there_says_so(bench: rehearsed.RehearsedBench, tmp_path: Path) -> None:
    with pytest.raises(BadField, match="there is no such file"):
        kv.load(tmp_path / "none.json")
    with pytest.raises(UnknownRun, match="no run 'abc'"):
        kv.load("abc")
    other = tmp_path / "other.json"
    other.write_text("{}")
    with pytest.raises(DocumentError):
        kv.load(other)


def test_bad_input_names_the_nearest(bench: rehearsed.RehearsedBench) -> None:
    with pytest.raises(UnknownName, match="did you mean 'rmsnorm'"):
        kv.run("rmsnrom")
    with pytest.raises(BadField, match="budget_s"):
        kv.run("add", budget_s=0)
    assert bench.runs() == ()


def test_shown_in_a_notebook_and_in_a_terminal(bench: rehearsed.RehearsedBench) -> None:
    report = _report()
    html = report._repr_html_()
    cases = 2 * len(RMSNORM)
    assert html.count("<tr") == 1 + cases
    assert "off by one" not in html
    assert f"<kernelviz run {report.id}: rmsnorm, {cases} of {cases} cases, 2 failed, finished on NVIDIA H200>" == repr(
        report
    )
    assert "failed=2" in rich.pretty.pretty_repr(report)
    empty = kv.Report.of(samples.run([]))
    assert "0 of" in empty._repr_html_()


def test_an_interrupt_cancels_and_is_passed_on(
    bench: rehearsed.RehearsedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled: list[str] = []

    def interrupted(run_id: str, after: int = 0, timeout_s: float | None = None) -> Iterator[tuple[int, Event]]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(bench, "follow", interrupted)
    monkeypatch.setattr(bench, "cancel", cancelled.append)
    with pytest.raises(KeyboardInterrupt):
        kv.run("add", sizes={"n": 64})
    assert cancelled == [bench.runs()[0].id]
