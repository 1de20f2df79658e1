"""Gains, verdicts and comparisons of runs of workloads, against values that were planted."""

from __future__ import annotations

import re

import msgspec
import pytest
import sample_runs as runs
import sample_workloads as samples
from planted_workload import PLANTED

from kernelviz.core.workload import Counted, Measured, WorkloadCase, WorkloadFigure
from kernelviz.formats import shipped_workloads
from kernelviz.metrics.workloads import WorkloadRow, compare, gain, rows
from kernelviz.tables.column import View
from kernelviz.tables.workloads import pair_columns
from kernelviz.text.workload_insight import describe_insight
from kernelviz.text.workloads import (
    describe_comparison,
    describe_devices,
    describe_figure,
    describe_timeline,
)


def row_of(run: object, variant: str, work: int = 2) -> WorkloadRow:
    return next(r for r in rows(run) if r.case.variant == variant and r.case.values["work"] == work)  # type: ignore[arg-type]


def test_a_gain_is_that_which_was_planted_and_its_interval_holds_it() -> None:
    row = row_of(samples.run(), "fast")
    for figure in ("step_s", "rate"):
        found = row.gains[figure]
        assert found.verdict is not None
        assert found.verdict.kind == "faster"
        assert found.ratio.estimate == pytest.approx(2.0, rel=0.005)
        assert found.ratio.low is not None
        assert found.ratio.high is not None
        assert found.ratio.low <= 2.0 <= found.ratio.high
    assert row.best
    assert row.gains["sent"].ratio.estimate == 1.0, "counted values have a ratio"
    assert row.gains["sent"].verdict is None
    assert "loss" not in row.gains, "neither direction of a loss is better"
    assert not row_of(samples.run(), "slow").gains, "the baseline is not compared with itself"


@pytest.mark.parametrize(("time_s", "verdict"), [(2e-3, "same"), (2.2e-3, "slower"), (1.9e-3, "faster")])
def test_the_verdict_says_what_was_planted(time_s: float, verdict: str) -> None:
    found = row_of(samples.run(times_s={"slow": 2e-3, "fast": time_s}), "fast")
    judged = found.gains["step_s"].verdict
    assert judged is not None
    assert judged.kind == verdict
    assert found.best == (verdict == "faster")


def test_a_failed_case_is_never_best_and_has_no_gain() -> None:
    run = samples.run(failing=("fast",))
    assert not row_of(run, "fast").gains
    assert row_of(run, "fast").value("step_s") is None
    assert not any(row.best for row in rows(run))
    assert str(describe_insight(run)).startswith("slow: Step ")
    assert str(describe_insight(run)).endswith("2 cases failed.")
    alike = samples.run(times_s={"slow": 2e-3, "fast": 2e-3})
    assert "No variant is better than slow" in str(describe_insight(alike))
    assert not row_of(samples.run(failing=("slow",)), "fast").gains, "without its baseline a case has no gain"


def test_a_value_of_a_wrong_result_is_not_compared() -> None:
    run = samples.run()
    wrong = tuple(
        msgspec.structs.replace(r, failure=samples.FAILURE) if r.case.variant == "fast" else r for r in run.results
    )
    run = msgspec.structs.replace(run, results=wrong)
    assert not any(row.best or row.gains for row in rows(run))


def test_counted_values_of_which_more_is_better_are_turned() -> None:
    higher = WorkloadFigure(name="hits", title="Hits", unit="count", better="higher")
    found = gain(higher, Counted(value=6.0), Counted(value=3.0))
    assert found is not None
    assert found.ratio.estimate == 2.0
    assert gain(higher, Counted(value=0.0), Counted(value=3.0)) is None


def test_two_runs_are_compared_case_by_case_by_their_own_noise() -> None:
    a, b = samples.run(), samples.run(id="w-other", seed=7, times_s={"slow": 2e-3, "fast": 1.2e-3})
    of = compare(a, b)
    assert of.counts == {"faster": 0, "slower": 2, "same": 2, "unclear": 0, "none": 0}
    assert "2 worse, 2 the same" in str(describe_comparison(of))
    pair = next(p for p in of.pairs if p.variant_b == "fast" and p.figure.name == "step_s")
    assert pair.ratio == pytest.approx(1.2, rel=0.01)
    two = compare(a, a, variant_a="slow", variant_b="fast")
    assert two.counts["faster"] == 2
    assert {p.why for p in compare(a, a).pairs if p.figure.name == "step_s"} == {"one_measurement"}


def test_the_hardware_threads_of_the_host_are_named_where_they_were_recorded() -> None:
    run = samples.run(device=runs.H200)
    assert str(describe_devices(run)) == runs.H200.name
    run = msgspec.structs.replace(run, environment=msgspec.structs.replace(run.environment, threads=16))
    assert str(describe_devices(run)) == f"{runs.H200.name}, host with 16 hardware threads"


def test_both_values_of_a_pair_have_one_notation() -> None:
    run = shipped_workloads.load("w-h200-all-reduce")
    pairs = [
        p for p in compare(run, run, variant_a="fp32", variant_b="bf16").pairs if p.figure.name == "gradient_error"
    ]
    columns = {column.name: column for column in pair_columns(pairs, run, View.WIDE)}
    assert pairs
    for pair in pairs:
        for side in "ab":
            assert re.fullmatch(r"\d\.\d\de-0\d", str(columns[side].value(pair)))


def test_a_gpu_is_not_compared_with_a_processor_and_a_failure_with_nothing() -> None:
    of = compare(samples.run(), samples.run(id="w-gpu", device=runs.H200, seed=3))
    assert of.other_device
    measured = [p for p in of.pairs if p.figure.name in ("step_s", "rate")]
    assert {p.why for p in measured} == {"other_kind"}
    assert all(p.gain is None for p in measured)
    of = compare(samples.run(failing=("fast",)), samples.run(id="w-b", seed=2))
    assert {p.why for p in of.pairs if p.variant_a == "fast" and p.figure.headline} == {"failed_a"}


def test_the_sentence_says_what_it_is_about() -> None:
    assert str(describe_insight(samples.run())).startswith("fast is best in Step at work 2: 2.00")
    assert "at 2 of 2 points" in str(describe_insight(samples.run()))
    assert str(describe_insight(samples.of_pair())).startswith("Mechanics only (on a processor): ")
    assert str(describe_insight(samples.run(missing=("slow", "fast")))) == "No case has a result yet."
    assert str(describe_insight(samples.run(failing=("slow", "fast")))) == "No case has a value. 4 cases failed."


def test_too_few_samples_give_no_verdict_and_the_sentence_says_so() -> None:
    run = samples.run(works=(1,))
    few = tuple(
        msgspec.structs.replace(r, values={"step_s": samples.measured(0.002 / (1 + i), seed=i, rounds=3)})
        for i, r in enumerate(run.results)
    )
    run = msgspec.structs.replace(run, results=few)
    assert not any(row.best for row in rows(run))
    assert "too few samples for a verdict" in str(describe_insight(run))
    assert "fast has" in str(describe_insight(run))


def test_the_sentence_about_a_figure_says_whether_it_clears_the_noise_floor() -> None:
    run = samples.run()
    step, rate = (run.declared.figure_named(name) for name in ("step_s", "rate"))
    assert step is not None
    assert rate is not None
    assert re.fullmatch(
        r"Step at work 2: fast has .* ms .*, better than slow by (1\.9|2\.0)\d* × .*\.", str(describe_figure(run, step))
    )
    assert str(describe_figure(run, rate, run.plan.cases[0].point)).startswith("Rate at work 1: fast has ")
    slower = samples.run(times_s={"slow": 1e-3, "fast": 2e-3})
    assert str(describe_figure(slower, step)) == "Step at work 2: no variant has a better value than slow."
    assert not str(describe_figure(samples.run(missing=("fast",)), step))
    assert str(describe_timeline(rows(run)[1], [step])).startswith("fast: Step ")


def test_an_unclear_gain_never_contradicts_the_values_that_are_shown() -> None:
    """In two rounds of three the variant takes a fifth longer, in the third the baseline jumps: rounds and medians disagree."""
    rounds = tuple(range(31))
    base = Measured(estimate=3.0, samples=tuple([1.0, 3.0, 10.0] * 10 + [1.0]), rounds=rounds)
    value = Measured(estimate=2.0, samples=tuple([1.2, 3.6, 2.0] * 10 + [1.2]), rounds=rounds)
    figure = WorkloadFigure(name="step_s", title="Step", unit="s", better="lower", headline=True)
    one = gain(figure, value, base)
    assert one is not None
    assert one.verdict is not None
    assert one.verdict.kind == "unclear"
    assert one.ratio.estimate == pytest.approx(1.5)


def test_the_sentence_is_about_the_variant_that_is_best_at_most_points() -> None:
    said = str(describe_insight(shipped_workloads.load("w-h200-all-reduce")))
    assert said.startswith(
        "No variant is better than fp32 in Time beyond the noise floor at 8 of 11 points; bf16 is best at 2, powersgd_r1 at 1. "
        "powersgd_r1 has 2.458 ms (2.455 ms to 2.460 ms) at gradient 1 GiB, better than fp32 by 1.35 ×"
    )
    run = samples.run(works=(1, 2, 3), times_s={"slow": 2e-3, "fast": 1e-3, "other": 1.5e-3})
    last = run.plan.cases[-1].point
    swapped = tuple(
        msgspec.structs.replace(r, case=msgspec.structs.replace(r.case, variant={"fast": "other", "other": "fast"}[v]))
        if (v := r.case.variant) != "slow" and r.case.point == last
        else r
        for r in run.results
    )
    said = str(describe_insight(msgspec.structs.replace(run, results=swapped)))
    assert said.startswith("fast is best in Step at work 2: "), (
        "at the last point where it is best, and not at the last one"
    )
    assert said.endswith("It is the best variant at 2 of 3 points.")


@pytest.mark.parametrize(
    ("works", "where", "end"), [((0, 2), "work 0", "1 point with a work is not counted."), ((2,), "work 2", "")]
)
def test_a_planted_condition_is_not_the_headline_unless_nothing_else_was_measured(
    works: tuple[int, ...], where: str, end: str
) -> None:
    axes = tuple(msgspec.structs.replace(a, planted=True) if a.name == "work" else a for a in PLANTED.axes)
    run = samples.run(works=tuple(w or 1 for w in works), workload=msgspec.structs.replace(PLANTED, axes=axes))

    def moved(case: WorkloadCase) -> WorkloadCase:
        return msgspec.structs.replace(case, values={**case.values, "work": 0 if case.values["work"] == 1 else 2})

    cases = tuple(moved(case) for case in run.plan.cases)
    results = tuple(msgspec.structs.replace(r, case=moved(r.case)) for r in run.results)
    run = msgspec.structs.replace(run, plan=msgspec.structs.replace(run.plan, cases=cases), results=results)
    said = str(describe_insight(run))
    assert said.startswith(f"fast is best in Step at {where}: ")
    assert said.endswith(end)
