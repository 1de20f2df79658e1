"""Trends over a store's runs: which runs count, what a change came with, and what is slower than it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import sample_runs as samples
from sample_nights import CHANGED, nights

from kernelviz.bench.trends import Trends
from kernelviz.core.errors import UnknownName
from kernelviz.metrics.trend import Difference
from kernelviz.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store.open(tmp_path)
    for run in nights():
        made.runs.create(run)
    yield made
    made.close()


def test_a_regression_is_listed_with_its_factor_and_what_came_with_it(store: Store) -> None:
    trends = Trends(store, (samples.H200,))
    (found,) = trends.slower(trends.cases(samples.H200.id))
    assert found.variant == "triton_persistent"
    change = found.trend.regression
    assert change is not None
    assert change.ratio == pytest.approx(1.04, rel=0.005)
    assert found.trend.points[change.index].run_id == f"night-{CHANGED:02}"
    assert change.because == (Difference("source", "source0s", "source1s"), Difference("torch", "2.11.0", "2.13.0"))


def test_every_case_has_its_trend(store: Store) -> None:
    trends = Trends(store, (samples.H200,))
    cases = trends.cases(samples.H200.id)
    assert [(c.variant, len(c.trend.points), len(c.trend.changes)) for c in cases] == [
        ("torch_eager", 14, 0),
        ("triton_persistent", 14, 1),
    ]
    assert trends.cases(samples.H200.id, op="add") == ()
    assert trends.cases(samples.H200.id, l2="warm") == ()
    one = trends.case(samples.H200.id, cases[0].problem, "torch_eager")
    assert one is not None
    assert [p.run_id for p in one.trend.points] == [f"night-{i:02}" for i in range(14)]
    assert trends.case(samples.H200.id, cases[0].problem, "none") is None


def test_only_runs_of_the_newest_setup_are_compared(store: Store) -> None:
    last = nights(15)[-1]
    sustained = msgspec.structs.replace(last, method=msgspec.structs.replace(last.method, clock="sustained"))
    store.runs.create(msgspec.structs.replace(sustained, id="steady"))
    case = Trends(store, (samples.H200,)).cases(samples.H200.id)[0]
    assert case.setup.startswith("sustained")
    assert (len(case.trend.points), case.left_out) == (1, 14)
    longer = msgspec.structs.replace(sustained.method, load_s=10.0)
    store.runs.create(msgspec.structs.replace(sustained, id="longer", created_at="2027-01-01T00:00:00", method=longer))
    (one, *_) = Trends(store, (samples.H200,)).cases(samples.H200.id)
    assert one.setup.startswith("sustained:10s ")
    assert (len(one.trend.points), one.left_out) == (1, 15)


def test_deleted_runs_and_other_devices_do_not_count(store: Store) -> None:
    trends = Trends(store, (samples.H200, samples.CPU))
    for night in range(CHANGED, 14):
        store.runs.set_deleted(f"night-{night:02}", "2026-12-01")
    assert trends.slower(trends.cases(samples.H200.id)) == ()
    assert trends.cases(samples.CPU.id) == ()


def test_unknown_names_are_told(store: Store) -> None:
    trends = Trends(store, (samples.H200,))
    with pytest.raises(UnknownName, match="device"):
        trends.cases("cuda:7")
    with pytest.raises(UnknownName, match="cold, warm"):
        trends.cases(samples.H200.id, l2="hot")
