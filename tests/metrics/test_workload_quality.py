"""Gains that rounds and medians disagree about, noise floors, and the measurement quality of cases of workloads."""

from __future__ import annotations

import msgspec
import pytest
import sample_workloads
from planted_workload import PLANTED

from kernelviz.core import Conditions
from kernelviz.core.workload import Counted, Measured, WorkloadRun
from kernelviz.formats import shipped_workloads, workload_exports
from kernelviz.metrics.statistics import median_interval
from kernelviz.metrics.workload_quality import GainApart, NoiseFloor, workload_quality
from kernelviz.metrics.workloads import WorkloadRow, rows
from kernelviz.tables.column import View
from kernelviz.tables.workloads import ladder_columns, record
from kernelviz.text.workload_gains import GAIN_MEANING, describe_workload_quality
from kernelviz.text.workload_quality import count_caveats
from kernelviz.text.workloads import describe_caveats


def with_samples(run: WorkloadRun, variant: str, samples: list[float], again: list[float] | None = None) -> WorkloadRun:
    interval = median_interval(samples)
    value = Measured(
        estimate=interval.estimate,
        low=interval.low,
        high=interval.high,
        samples=tuple(samples),
        rounds=tuple(range(len(samples))),
        again=tuple(again or ()),
    )
    results = [
        msgspec.structs.replace(r, values={**r.values, "step_s": value}) if r.case.variant == variant else r
        for r in run.results
    ]
    return msgspec.structs.replace(run, results=tuple(results))


def row_of(run: WorkloadRun, variant: str) -> WorkloadRow:
    return next(row for row in rows(run) if row.case.variant == variant)


def test_a_cell_gives_the_ratio_of_the_medians_where_that_is_another_number() -> None:
    """Inside of the interval it is no objection to the quality, but a reader who divides the two values sees it."""
    run = shipped_workloads.load("w-h200-data-loading")
    for row in rows(run):
        values = {c.name or c.heading: str(c.value(row)) for c in ladder_columns(run, [row], View.WIDE)}
        if row.case.variant == "workers_8":
            assert values["gain"] == "3.4 × (2.7 to 3.6); by the medians 3.3 ×"
            assert values["Quality"] == "✓ good"
        if row.case.variant == "workers_2":
            assert values["gain"] == "1.4 × (1.3 to 1.5)"
    for to in ("md", "html"):
        text = workload_exports.encode(run, to).decode()
        assert "by the medians 0.83 ×" in text
        assert str(GAIN_MEANING) in text


@pytest.mark.parametrize("together", [True, False])
def test_a_row_says_where_the_two_medians_have_another_ratio_than_the_rounds(together: bool) -> None:
    """Both times jump in the middle of the run; the medians of two times that jump in other rounds lie on different levels."""
    base = [1.0] * 9 + [6.0] * 10
    fast = [0.7] * (9 if together else 10) + [4.2] * (10 if together else 9)
    run = with_samples(sample_workloads.run(works=(1,)), "slow", base, base)
    run = with_samples(run, "fast", fast)
    row = row_of(run, "fast")
    gain = row.gains["step_s"]
    quality = workload_quality(row, run.declared.headline)
    assert quality is not None
    facts = [part.fact for part in quality.parts if isinstance(part.fact, GainApart)]
    if together:
        assert not gain.apart
        assert not facts
        return
    assert gain.apart
    assert facts == [GainApart(gain.ratio.estimate, gain.of_values or 0.0)]
    assert gain.of_values == pytest.approx(6.0 / 0.7)
    said = "8.57 × by the ratio of the two medians but 1.43 × by the median of the ratios within rounds"
    assert said in str(describe_workload_quality(quality))
    assert record(run, row)["gain_of_medians"] == gain.of_values
    for to in ("md", "html"):
        text = workload_exports.encode(run, to).decode()
        assert "8.57 ×" in text
        assert str(GAIN_MEANING) in text


def test_the_noise_floor_is_that_of_the_verdict_and_of_the_baseline() -> None:
    base = [1.0 + 0.01 * (i % 5) for i in range(20)]
    run = with_samples(sample_workloads.run(works=(1,)), "slow", base, [1.9 * one for one in base])
    floors = {row.case.variant: row.floor for row in rows(run)}
    assert floors["slow"] == floors["fast"]
    assert floors["slow"] == pytest.approx(0.9)
    quality = workload_quality(row_of(run, "slow"), run.declared.headline)
    assert quality is not None
    assert quality.level == "suspect"
    assert NoiseFloor(floors["slow"] or 0.0) in [part.fact for part in quality.reasons]
    assert "the baseline differs from itself by ±90.0 %" in str(describe_workload_quality(quality))
    assert str(describe_caveats(run, rows(run))[0]).startswith("slow: ⚠ unreliable: the baseline differs")
    assert str(count_caveats(run, rows(run))) == "Measurement quality: 2 unreliable, of 2 cases"
    wide = with_samples(run, "slow", base, [1.2 * one for one in base])
    wide = with_samples(wide, "fast", [0.1, 9.0] * 10)
    assert str(count_caveats(wide, rows(wide))) == "Measurement quality: 1 unreliable, 1 with caveats, of 2 cases"
    assert not str(count_caveats(sample_workloads.run(), rows(sample_workloads.run())))
    assert not describe_caveats(sample_workloads.run(), rows(sample_workloads.run()))
    for to in ("md", "html"):
        text = workload_exports.encode(run, to).decode()
        assert "±90.0 %" in text
        assert "⚠ unreliable" in text


def test_quality_has_the_levels_of_the_page_bench() -> None:
    run = sample_workloads.run(works=(1,))
    row, headline = row_of(run, "fast"), run.declared.headline
    quality = workload_quality(row, headline)
    assert quality is not None
    assert quality.level == "good"
    assert not quality.reasons
    for half_width, level in ((0.05, "good"), (0.2, "note"), (0.6, "suspect")):
        value = Measured(estimate=1.0, low=1 - half_width, high=1 + half_width, samples=(1.0,) * 12)
        wide = msgspec.structs.replace(row.result, values={"step_s": value})  # type: ignore[type-var]
        assert workload_quality(WorkloadRow(row.case, "", "", False, wide, {}), headline).level == level  # type: ignore[union-attr]
    shared = msgspec.structs.replace(row.result, conditions=(Conditions(other_processes=2),))  # type: ignore[type-var]
    quality = workload_quality(WorkloadRow(row.case, "", "", False, shared, {}), headline)
    assert quality is not None
    assert str(describe_workload_quality(quality)) == "⚠ unreliable: 2 other processes"


def test_errors_have_no_gain_and_one_notation_in_a_column() -> None:
    """A rounding error of 1e-5 beside one of 1e-2 is no gain of a thousand."""
    figures = tuple(
        msgspec.structs.replace(f, unit="fraction", better="lower", origin="counted") if f.name == "loss" else f
        for f in PLANTED.figures
    )
    run = sample_workloads.run(works=(1,), workload=msgspec.structs.replace(PLANTED, figures=figures))
    errors = {"slow": 2.5e-6, "fast": 0.02}
    results = [
        msgspec.structs.replace(r, values={**r.values, "loss": Counted(value=errors[r.case.variant])})
        for r in run.results
    ]
    run = msgspec.structs.replace(run, results=tuple(results))
    listed = rows(run)
    assert all("loss" not in row.gains for row in listed)
    assert "sent" in row_of(run, "fast").gains  # bytes are a quantity
    column = next(c for c in ladder_columns(run, listed, View.WIDE) if c.name == "loss")
    assert [column.read(row) for row in listed] == ["2.50e-06", "2.00e-02"]


def test_markdown_has_the_interval_and_the_gain_of_every_measured_figure() -> None:
    text = workload_exports.encode(sample_workloads.run(works=(1,)), "md").decode()
    header = next(line for line in text.splitlines() if line.startswith("| Variant"))
    assert "Gain, `Rate`" in header
    fast = next(line for line in text.splitlines() if line.startswith("| `fast`"))
    assert fast.count(" to ") == 4  # step and rate, each with its gain
