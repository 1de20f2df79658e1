"""The summary of a run: the fastest variant, excluded variants, and runs without a conclusion."""

from __future__ import annotations

import pytest
import sample_runs as samples

from kernelviz.core.result import Failure
from kernelviz.formats import shipped_runs
from kernelviz.metrics.rows import by_rate, rows
from kernelviz.metrics.summary import summary
from kernelviz.metrics.sweep import line_sizes, swept_axis
from kernelviz.metrics.winner import winners
from kernelviz.text.tiles import tiles


def test_the_fastest_is_the_one_with_the_lowest_times() -> None:
    run = samples.run()
    found = summary(rows(run, run.environment.roofs))
    assert found is not None
    assert (found.fastest, found.wins, found.problems) == ("triton_persistent", 6, 6)
    assert found.speed_up == pytest.approx(0.96 / 0.60, rel=0.02)
    assert found.efficiency == pytest.approx(0.95, abs=0.02)


def test_a_wrong_result_has_no_speed_up_and_cannot_be_fastest() -> None:
    run = samples.mixed()
    table = rows(run, run.environment.roofs)
    found = summary(table)
    assert found is not None
    assert found.fastest == "torch_compile"
    assert found.excluded == ("triton_block_per_row",)
    wrong = [r for r in table if r.result.variant == "triton_block_per_row"]
    assert all(r.wrong_figure is not None for r in wrong)
    assert all(r.speed_up is None and r.verdict is None and r.efficiency is None and r.figure is None for r in wrong)


def test_a_variant_that_is_wrong_at_one_size_is_not_fastest_by_the_others() -> None:
    asked = samples.problems("rmsnorm", samples.RMSNORM_SWEEP)
    made = [samples.timed(p, "torch_eager", 0.6, again=True) for p in asked]
    made += [samples.timed(p, "triton_persistent", 0.96) for p in asked[:-1]]
    made.append(samples.failed(asked[-1], "triton_persistent", "wrong"))
    found = summary(rows(samples.run(made), ()))
    assert found is not None
    assert found.fastest == "torch_eager"


def test_a_variant_that_failed_at_the_large_sizes_does_not_win_by_its_small_ones() -> None:
    asked = samples.problems("add", [{"n": 2**12}, {"n": 2**20}, {"n": 2**26}], "fp32")
    made = [samples.timed(p, "torch_eager", 0.6, again=True) for p in asked]
    made += [samples.timed(asked[0], "triton_block", 0.9)]
    made += [samples.failed(p, "triton_block", "out_of_memory") for p in asked[1:]]
    found = summary(rows(samples.run(made, op="add", dtype="fp32", shares={}), ()))
    assert found is not None
    assert (found.fastest, found.covered) == ("torch_eager", 3)


def test_where_none_covers_every_size_the_sizes_that_they_share_decide() -> None:
    """One failed at the largest size, the other at the smallest: the lower mean over sizes of its own is no lead."""
    asked = samples.problems("add", [{"n": 2**10}, {"n": 2**20}, {"n": 2**28}], "fp32")
    made = [samples.timed(p, "torch_eager", 0.4, again=True) for p in asked[:2]]
    made += [samples.timed(p, "triton_block", 0.9) for p in asked[1:]]
    made += [
        samples.failed(asked[2], "torch_eager", "out_of_memory"),
        samples.failed(asked[0], "triton_block", "crash"),
    ]
    found = summary(rows(samples.run(made, op="add", dtype="fp32", shares={}), ()))
    assert found is not None
    assert (found.fastest, found.covered, found.problems) == ("triton_block", 2, 3)
    apart = [r for r in made if r.problem != asked[1]]
    found = summary(rows(samples.run(apart, op="add", dtype="fp32", shares={}), ()))
    assert found is not None
    assert (found.wins, found.problems) == (1, 2)


def test_a_lead_that_the_verdict_rule_does_not_see_is_none() -> None:
    asked = samples.problems("add", [{"n": 2**24}, {"n": 2**26}], "fp32")
    shares = {"torch_eager": 0.5, "triton_block": 0.9, "cuda_vec16": 0.9001}
    made = [samples.timed(p, name, share, again=name == "torch_eager") for p in asked for name, share in shares.items()]
    found = summary(rows(samples.run(made, op="add", dtype="fp32", shares={}), ()))
    assert found is not None
    assert (found.wins, found.tied, found.problems) == (0, 2, 2)
    assert {found.fastest, *found.alike} == {"triton_block", "cuda_vec16"}
    best = tiles(found, samples.run(made, op="add", dtype="fp32", shares={}).plan)[0]
    assert best.basis == "fastest at 0 of 2 sizes, tied at 2"
    assert best.how.endswith(f"Within 0.5 % of its mean: {found.alike[0].replace('_', ' ')}.")


def test_shipped_runs_lead_where_their_winner_map_says_so() -> None:
    for name in shipped_runs.names():
        run = shipped_runs.load(name)
        table = rows(run, run.environment.roofs)
        found = summary(table)
        assert found is not None
        alone = [w for w in winners(table) if w.names == (found.fastest,)]
        assert found.wins == len(alone)


def test_nothing_is_said_without_a_correct_time() -> None:
    failed = [samples.failed(p, "torch_eager", "crash") for p in samples.problems("rmsnorm", samples.RMSNORM_SWEEP)]
    assert summary(rows(samples.run(failed), ())) is None
    assert summary(rows(samples.run([]), ())) is None


def test_not_calibrated_means_no_share_of_the_roof() -> None:
    found = summary(rows(samples.run(), ()))
    assert found is not None
    assert found.efficiency is None
    assert found.worst_efficiency is None
    assert found.worst_speed_up is not None


def test_a_later_result_of_a_case_replaces_the_earlier_one() -> None:
    one = samples.problems("rmsnorm", [{"m": 64, "n": 64}])[0]
    again = samples.timed(one, "torch_eager", 0.7)
    table = rows(samples.run([samples.failed(one, "torch_eager", "timeout"), again], sizes=[one.sizes]), ())
    assert [isinstance(r.result.outcome, Failure) for r in table] == [False]


def test_rows_come_in_the_order_of_the_plan() -> None:
    run = samples.run()
    table = rows(samples.run(list(reversed(run.results))), ())
    assert [r.result.case.key for r in table] == [c.key for c in run.plan.cases()]


def test_matrix_products_are_judged_by_rate_and_streams_by_bandwidth() -> None:
    square = [{"m": 1024, "n": 1024, "k": 1024}]
    assert by_rate(rows(samples.run(op="matmul", sizes=square, shares={"torch_eager": 0.9}), ()))
    assert not by_rate(rows(samples.run(), ()))


def test_the_swept_axis_is_the_one_that_grows() -> None:
    assert swept_axis(samples.problems("rmsnorm", samples.RMSNORM_SWEEP)) == "n"
    assert swept_axis(samples.problems("rmsnorm", [{"m": 8, "n": 8}])) == "n"
    assert swept_axis([]) is None
    grid = samples.problems("rmsnorm", [{"m": m, "n": n} for m in (1, 2) for n in (64, 128, 256)])
    assert swept_axis(grid) == "n"
    assert line_sizes(grid[0], grid, "n") == (("m", 1),)
