"""Trends on the History page."""

from __future__ import annotations

from pathlib import Path

import pytest
import sample_runs as samples
from open_page import charts, open_page
from sample_nights import nights

import kernelviz.bench
from kernelviz.bench import Bench
from kernelviz.store import Store


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(Store.open(tmp_path), (samples.H200, samples.CPU))
    monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
    return made


def test_regressions_come_first_and_the_worst_is_drawn(bench: Bench) -> None:
    for run in nights():
        bench.history.add(run)
    test = open_page({"lists": "trends"}, "history")
    table = test.dataframe[0].value
    assert list(table["Variant"]) == ["triton persistent"]
    assert table["Slower by, %"].iloc[0] == pytest.approx(4.0, abs=0.5)
    assert "torch 2.11.0 → 2.13.0" in table["What changed in that run"].iloc[0]
    said = " ".join(m.value for m in test.markdown)
    assert "1 of 2 cases are slower than their best time so far" in said
    assert "since 2026-10-09" in said
    assert len(charts(test)) == 1
    test.selectbox(key="trend").set_value(test.selectbox(key="trend").options[1]).run()
    assert not test.exception


def test_without_two_runs_it_says_what_to_do(bench: Bench) -> None:
    test = open_page({"lists": "trends"}, "history")
    assert any("kernelviz regress" in m.value for m in test.markdown)
    assert not charts(test)


def test_nothing_slower_is_said(bench: Bench) -> None:
    for run in nights(6):
        bench.history.add(run)
    test = open_page({"lists": "trends"}, "history")
    assert "No case became slower (2 cases" in test.success[0].value
