"""`kernelviz selftest` and `kv.selftest` with a real bench and simulated sessions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import kernelviz as kv
from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.cli import main
from kernelviz.cli.selftest import exit_code
from kernelviz.core.errors import DeviceError
from kernelviz.core.run import Environment
from kernelviz.core.selftest import Check, Selftest
from tests.bench.bench_of_sessions import bench_in
from tests.worker.sessions import DEVICE, check


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = bench_in(tmp_path)
    monkeypatch.setattr(use_cases, "current", lambda: made)
    yield made
    made.close()


def test_progress_on_stderr_and_a_table_on_stdout(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest"]) == 1
    printed = capsys.readouterr()
    header, *rows = printed.out.splitlines()
    assert header.split() == ["check", "result", "value", "limit", "question"]
    assert [row.split()[:2] for row in rows] == [["passes", "pass"], ["fails", "FAIL"], ["absent", "not"]]
    assert "2.000 µs  at most 1.000 µs" in rows[1]
    assert "no tool for it" in rows[2]
    for line in (
        "fails: FAIL: 2.000 µs (at most 1.000 µs)",
        "absent: not here: no tool for it",
        "timeline: recorded 1",
    ):
        assert line in printed.err


def test_json_is_the_document_and_nothing_else(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", "--only", "passes", "--only", "absent", "--quick", "--json"]) == 0
    made = msgspec.convert(json.loads(capsys.readouterr().out), Selftest)
    assert [(c.name, c.passed) for c in made.checks] == [("passes", True), ("absent", None)]
    assert made.checks[0].figures == {"comparisons": 20.0}
    assert made.schema == "kernelviz-selftest/1"


def test_what_cannot_be_made_is_no_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = bench_in(tmp_path, session="cannot_open")
    monkeypatch.setattr(use_cases, "current", lambda: made)
    assert main(["selftest"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "no such device here" in printed.err
    assert main(["selftest", "--device", "cuda:9"]) == 2


def test_in_python(bench: Bench) -> None:
    made = kv.selftest()
    assert [c.name for c in made.failed] == ["fails"]
    assert bench.last_selftest("cpu") == made


def test_in_python_without_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = bench_in(tmp_path, session="cannot_open")
    monkeypatch.setattr(use_cases, "current", lambda: made)
    with pytest.raises(DeviceError, match="no such device here"):
        kv.selftest("cpu")
    made.close()


@pytest.mark.parametrize(
    ("checks", "code"),
    [
        ((check("a", True), check("b", None)), 0),
        ((check("a", True), check("b", False)), 1),
        ((check("a", None),), 2),
        ((), 2),
    ],
)
def test_the_exit_code(checks: tuple[Check, ...], code: int) -> None:
    environment = Environment(device=DEVICE, host="h", platform="p", python="3", kernelviz="0", versions={})
    assert exit_code(Selftest(id="s", created_at="2026-01-01", environment=environment, checks=checks)) == code
