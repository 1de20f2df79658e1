"""What a tuning says: who is best by which rule, what failed and why, what is charted_variants of a hundred."""

from __future__ import annotations

import msgspec
import pytest
import sample_runs as samples
import sample_tunings as tunings

from kernelviz.core.errors import BadField
from kernelviz.core.result import Figure, Result, Timing
from kernelviz.core.run import Run
from kernelviz.metrics.chart_selection import charted_run, charted_variants
from kernelviz.metrics.rows import rows
from kernelviz.metrics.tuning import best_names, tried, tuning_of
from kernelviz.text.charts import describe_selection
from kernelviz.text.tuning import describe_best, describe_search, record


def of(times: dict[str, Figure]) -> Run:
    """A finished tuning with these cold times; the first is the default's."""
    results: list[Result] = [
        msgspec.structs.replace(samples.timed(tunings.ADD, name, 0.5), outcome=Timing(device_cold_s=figure))
        for name, figure in times.items()
    ]
    made = samples.run(results, op="add", sizes=(tunings.ADD.sizes,), dtype="fp32", shares={})
    plan = msgspec.structs.replace(
        tunings.run().plan, variants=tuple(times), baseline=next(iter(times)), problems=(tunings.ADD,)
    )
    return msgspec.structs.replace(made, plan=plan)


def figure(time_s: float, rounds: int = 0, seed: int = 0) -> Figure:
    made = samples.figure(time_s, seed=seed)
    assert made.blocks is not None
    blocks = tuple(msgspec.structs.replace(b, round=rounds + i) for i, b in enumerate(made.blocks))
    return msgspec.structs.replace(made, blocks=blocks)


def joined(*parts: Figure) -> Figure:
    return msgspec.structs.replace(
        parts[0],
        samples=tuple(s for p in parts for s in p.samples or ()),
        blocks=tuple(b for p in parts for b in p.blocks or ()),
    )


def test_the_best_is_told_by_the_rounds_that_it_shares_with_the_default() -> None:
    """Minutes later the clock was 10 % lower: what looks slower by its time is faster by its ratio."""
    found = tried(
        of(
            {
                "t[b=1]": joined(figure(100e-6, 0), figure(110e-6, 100, seed=1)),
                "t[b=2]": joined(figure(95e-6, 0, seed=2), figure(104e-6, 100, seed=5)),
                "t[b=3]": figure(99e-6, 100, seed=3),
            }
        )
    )
    assert [row.result.variant for row in found.ranked] == ["t[b=3]", "t[b=2]", "t[b=1]"]
    assert found.best is found.ranked[0]


def test_who_was_not_in_the_final_cannot_be_best() -> None:
    """The luckiest of the sweep that the final did not confirm."""
    found = tried(
        of(
            {
                "t[b=1]": joined(figure(100e-6, 0), figure(100e-6, 100, seed=1)),
                "t[b=2]": figure(80e-6, 0, seed=2),
                "t[b=3]": figure(90e-6, 100, seed=3),
            }
        )
    )
    assert found.ranked[0].result.variant == "t[b=2]"
    assert found.best is not None
    assert found.best.result.variant == "t[b=3]"


def test_a_gain_that_the_verdict_rule_does_not_see_is_none() -> None:
    run = of({"t[b=1]": figure(100e-6), "t[b=2]": figure(99.8e-6, seed=1)})
    found = tried(run)
    assert found.best is found.default
    made = tuning_of(run, found, created_at="2026-11-21T10:00:00+00:00", seconds=3.0)
    assert made is not None
    assert made.configuration == made.default == {"b": 1}
    assert "No configuration is measurably faster than the default, b=1" in str(describe_best(found, made))


def test_without_a_correct_default_the_fastest_is_best() -> None:
    run = tunings.run()
    broken = [r for r in run.results if r.variant != run.plan.baseline]
    failed = samples.failed(tunings.ADD, run.plan.baseline, "compile", "no")
    found = tried(msgspec.structs.replace(run, results=(failed, *broken)))
    assert found.best is found.ranked[0]
    made = tuning_of(run, found, created_at="2026-11-21T10:00:00+00:00", seconds=3.0)
    assert made is not None
    assert (made.default_s, made.speed_up) == (None, None)


def test_failures_that_differ_in_numbers_only_are_told_once() -> None:
    run = tunings.run()
    found = tried(run)
    assert [(r.failure.stage, len(r.variants), r.alike) for r in found.failures] == [
        ("compile", 24, True),
        ("wrong", 6, True),
    ]
    assert (found.planned, found.tried, found.failed, found.cancelled, found.refused) == (144, 144, 30, 0, 0)
    assert len(found.ranked) == 114
    assert "144 of 144 configurations tried, the space has 144, 30 failed" in str(
        describe_search(found, run.plan.search)
    )
    told = record(run, found, None, 12.5)
    assert len(told["configurations"]) == 114
    assert sum(len(f["configurations"]) for f in told["failures"]) == 30
    assert told["configurations"][0]["is_best"]
    assert told["seconds"] == 12.5


def test_another_run_is_refused() -> None:
    with pytest.raises(BadField, match="it is no tuning"):
        tried(samples.run())


def test_of_a_hundred_the_best_ten_and_the_baseline_are_drawn() -> None:
    run = tunings.run()
    names = charted_variants(run)
    assert len(names) == 11
    assert run.plan.baseline in names
    assert set(names) - {run.plan.baseline} == set(best_names(rows(run, ()), 10))
    assert {r.variant for r in charted_run(run).results} == set(names)
    assert "the best 10 of 144 variants and the baseline" in str(describe_selection(run))
    few = samples.run()
    assert charted_variants(few) == few.plan.variants
    assert charted_run(few) is few
    assert describe_selection(few) is None
