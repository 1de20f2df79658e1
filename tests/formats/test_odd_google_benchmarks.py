"""Files of google-benchmark that are old or odd somewhere: what can be read of them is read, and what cannot is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernelviz.core.errors import DocumentError
from kernelviz.core.result import Failure
from kernelviz.core.run import Run
from kernelviz.formats import read
from kernelviz.metrics import foreign_times


def entry(name: str, time: float, **fields: Any) -> dict[str, Any]:
    return {"name": name, "iterations": 10, "real_time": time, "cpu_time": time, "time_unit": "ns"} | fields


def runs_of(*entries: dict[str, Any], **context: Any) -> tuple[Run, ...]:
    return read(json.dumps({"context": context, "benchmarks": entries}))


def run_of(*entries: dict[str, Any], **context: Any) -> Run:
    (run,) = runs_of(*entries, **context)
    return run


def test_aggregates_of_an_old_version_are_no_variants() -> None:
    """Up to 1.4 only their names tell them."""
    singles = [entry("BM_sort/1024", t) for t in (100.0, 111.0, 104.0)]
    told = [entry(f"BM_sort/1024_{what}", t) for what, t in (("mean", 105.0), ("median", 104.5), ("stddev", 5.6))]
    run = run_of(*singles, *told)
    assert run.plan.variants == ("BM_sort",)
    (result,) = run.results
    figure = foreign_times.of_case(result)["real time"]
    assert figure.estimate == pytest.approx(104.5e-9), "its own median"
    assert figure.samples == pytest.approx((100e-9, 111e-9, 104e-9))


def test_a_benchmark_that_is_called_like_an_aggregate_stays_one() -> None:
    run = run_of(entry("BM_reduce/8", 1.0), entry("BM_reduce_mean/8", 2.0))
    assert run.plan.variants == ("BM_reduce", "BM_reduce_mean")
    once, both = [entry("BM_x", 1.0), entry("BM_x_mean", 2.0)], [entry("BM_x", 1.0), entry("BM_x_mean", 2.0)] * 2
    assert run_of(*once).plan.variants == ("BM_x", "BM_x_mean"), "no aggregate of a single one"
    assert run_of(*both).plan.variants == ("BM_x", "BM_x_mean"), "aggregates are there once"
    named = [entry("BM_x", t, run_type="iteration") for t in (1.0, 2.0)]
    assert run_of(*named, entry("BM_x_mean", 2.0, run_type="iteration")).plan.variants == ("BM_x", "BM_x_mean")


@pytest.mark.parametrize("odd", [-0.5, 1e-4, 1e300])
def test_a_time_that_cannot_be_is_none_and_named(odd: float) -> None:
    run = run_of(entry("BM/8", 5.0), entry("BM/9", 6.0, cpu_time=odd), entry("BM/10", odd))
    assert [list(foreign_times.of_case(r)) for r in run.results] == [["real time", "CPU time"], ["real time"]]
    assert "BM/9, CPU time" in run.note
    assert "BM/10, real time" in run.note
    assert "because they have no time: BM/10" in run.note
    with pytest.raises(DocumentError, match="has a time: BM/8, real time"):
        runs_of(entry("BM/8", odd))


def test_a_counter_may_be_called_as_a_field() -> None:
    odd = {"skipped": 3.0, "error_occurred": 1.0, "error_message": 4.0, "skip_message": 5.0}
    assert len(foreign_times.of_case(run_of(entry("BM/8", 5.0, **odd)).results[0])) == 2
    failed = run_of(entry("BM/8", 5.0), entry("BM/9", 5.0, error_occurred=True, error_message=4.0)).results[1].outcome
    assert isinstance(failed, Failure)
    assert failed.message == "an error, of which the file does not say more"


def test_names_that_tell_the_same_sizes_are_two_variants() -> None:
    run = run_of(entry("BM/8", 5.0), entry("BM/08", 6.0), entry("BM/9", 7.0))
    assert run.plan.variants == ("BM", "BM/08")
    assert [foreign_times.of_case(r)["real time"].estimate for r in run.results] == pytest.approx([5e-9, 6e-9, 7e-9])


def test_a_date_that_utc_has_no_name_for_is_unknown() -> None:
    for date in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        assert run_of(entry("BM/8", 5.0), date=date).created_at == ""
