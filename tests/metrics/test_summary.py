"""The summary of a run: the fastest variant, excluded variants, and runs without a conclusion."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
import sample_runs as samples

import kernelviz as kv
from kernelviz.core.problem import Problem
from kernelviz.core.result import Failure, Result, Timing
from kernelviz.formats import markdown, shipped_runs
from kernelviz.metrics.rows import by_rate, rows
from kernelviz.metrics.summary import Wins, summary
from kernelviz.metrics.sweep import line_sizes, swept_axis
from kernelviz.metrics.winner import winners
from kernelviz.text.report import conclusion
from kernelviz.text.tiles import tiles


def noisy(problem: Problem, variant: str, share: float, noise: float) -> Result:
    """A result at that share of the bandwidth, with blocks that differ by normal noise."""
    clean = samples.timed(problem, variant, share)
    assert clean.timing is not None
    assert clean.timing.device_cold_s is not None
    figure = clean.timing.device_cold_s
    assert figure.blocks is not None
    rng = np.random.default_rng(sum(variant.encode()) + problem.sizes["n"])
    taken = tuple(float(t) for t in figure.estimate * (1 + rng.normal(0, noise, len(figure.blocks))))
    blocks = tuple(msgspec.structs.replace(b, size=1) for b in figure.blocks)
    cold = msgspec.structs.replace(figure, estimate=float(np.median(taken)), samples=taken, blocks=blocks)
    return msgspec.structs.replace(clean, outcome=Timing(device_cold_s=cold))


def test_the_fastest_is_the_one_with_the_lowest_times() -> None:
    run = samples.run()
    found = summary(rows(run, run.environment.roofs))
    assert found is not None
    assert (found.fastest, found.wins_of_best, found.problems) == ("triton_persistent", Wins("triton_persistent", 6), 6)
    assert found.most_wins == (found.wins_of_best,)
    assert [(t.label, t.value, t.basis) for t in tiles(found, run.plan)[:2]] == [
        ("Best overall", "triton persistent", "lowest geometric mean time, 6 sizes"),
        ("Most wins", "triton persistent", "alone at 6 of 6 sizes"),
    ]
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
    assert (found.wins_of_best.won, found.problems, found.common) == (1, 2, 0)


def test_a_lead_that_the_verdict_rule_does_not_see_is_none() -> None:
    asked = samples.problems("add", [{"n": 2**24}, {"n": 2**26}], "fp32")
    shares = {"torch_eager": 0.5, "triton_block": 0.9, "cuda_vec16": 0.9001}
    made = [samples.timed(p, name, share, again=name == "torch_eager") for p in asked for name, share in shares.items()]
    found = summary(rows(samples.run(made, op="add", dtype="fp32", shares={}), ()))
    assert found is not None
    assert found.wins_of_best == Wins(found.fastest, tied=2)
    assert {found.fastest, *found.alike} == {"triton_block", "cuda_vec16"}
    best, most = tiles(found, samples.run(made, op="add", dtype="fp32", shares={}).plan)[:2]
    alike = found.alike[0].replace("_", " ")
    assert best.basis == f"lowest geometric mean time, 2 sizes; within 0.5 %: {alike}"
    assert best.how.endswith(f"Within 0.5 % of its mean: {alike}.")
    assert set(most.value.split(", ")) == {"triton block", "cuda vec16"}
    assert most.basis == "each alone at none of 2 sizes, tied at 2"


def test_the_best_overall_and_the_variant_that_wins_most_sizes_are_two_answers() -> None:
    """One variant is far ahead at one of 11 sizes, another is first at four and ties three: a single headline named the former
    as the fastest, "at 1 of 11 sizes". At the three other sizes noise hides who is first, which is not a tie."""
    sizes = [{"n": 2**e} for e in range(16, 27)]
    asked = samples.problems("add", sizes, "fp32")
    made = [samples.timed(p, "torch_eager", 0.2, again=True) for p in asked]
    for number, problem in enumerate(asked):
        if number < 3:  # noise of 15 %
            pairs = {"triton_block": (0.8, 0.15), "cuda_vec16": (0.8, 0.15)}
        elif number < 6:
            pairs = {"triton_block": (0.9, 0.0005), "cuda_vec16": (0.9, 0.0005)}
        elif number < 10:
            pairs = {"triton_block": (0.80, 0.0005), "cuda_vec16": (0.84, 0.0005)}
        else:
            pairs = {"triton_block": (0.9, 0.0005), "cuda_vec16": (0.3, 0.0005)}
        made += [noisy(problem, name, share, noise) for name, (share, noise) in pairs.items()]
    run = samples.run(made, op="add", sizes=sizes, dtype="fp32", shares={})
    found = summary(rows(run, ()))
    assert found is not None
    assert (found.fastest, found.wins_of_best.won) == ("triton_block", 1)
    (most,) = found.most_wins
    assert most == Wins("cuda_vec16", won=4, tied=3, unclear=3)
    best, wins, speed_up = tiles(found, run.plan)[:3]
    assert (best.value, best.basis) == ("triton block", "lowest geometric mean time, 11 sizes")
    assert best.more == "another is faster at 4, unclear at 3"
    assert "Another variant is faster at 4 of 11; unclear against another variant at 3 of 11." in best.how
    assert (wins.value, wins.basis) == ("cuda vec16", "alone at 4 of 11 sizes, tied at 3, unclear at 3")
    assert speed_up.basis.startswith("triton block: ")
    said = str(conclusion(found, run, ()))
    assert said.startswith("Best overall: triton_block (lowest geometric mean time, 11 sizes), ")
    doubts = "Another variant is faster at 4 of 11; unclear against another variant at 3 of 11."
    assert f"{doubts} Most wins: cuda_vec16 (alone at 4 of 11 sizes, tied at 3, unclear at 3)." in said
    assert "Most wins: cuda_vec16 (alone at 4 of 11 sizes" in markdown.encode(run).decode()
    assert (kv.Report.of(run).fastest, kv.Report.of(run).most_wins) == ("triton_block", ("cuda_vec16",))


def test_the_tiles_say_what_the_best_at_each_size_brings_and_which_time_is_unreliable() -> None:
    sizes = [{"n": 2**22}, {"n": 2**24}, {"n": 2**26}]
    asked = samples.problems("add", sizes, "fp32")
    made = [samples.timed(p, "torch_eager", 0.5, again=True) for p in asked]
    made += [noisy(p, "triton_block", share, 0.0005) for p, share in zip(asked, (0.6, 0.6, 0.2), strict=True)]
    run = samples.run(made, op="add", sizes=sizes, dtype="fp32", shares={})
    found = summary(rows(run, ()))
    assert found is not None
    assert (found.fastest, found.at_each_size.variants, found.at_each_size.slower) == ("torch_eager", 2, 2)
    best, _, speed_up = tiles(found, run.plan)[:3]
    assert "another is faster at 2" in best.whole_basis
    assert found.at_each_size.speed_up == pytest.approx((1.2 * 1.2 * 1.0) ** (1 / 3), rel=0.01)
    assert speed_up.whole_basis.startswith(
        "the baseline is the best overall; the best one of each size (2 variants): 1.1"
    )
    assert found.at_each_size.leader_unclear == 0
    doubled = [noisy(p, "cuda_vec16", share, 0.05) for p, share in zip(asked[:2], (0.6, 0.6), strict=True)]
    doubled += [samples.failed(asked[2], "cuda_vec16", "compile")]
    two = summary(rows(msgspec.structs.replace(run, results=(*made, *doubled)), ()))
    assert two is not None
    assert (two.at_each_size.slower, two.at_each_size.leader_unclear) == (2, 2)
    tile = tiles(two, run.plan)[0]
    assert tile.more == "another is faster at 2", "that one is faster is decided"
    assert "Another variant is faster at 2 of 3 (unclear which one at 2)." in tile.how
    shared = msgspec.structs.replace(made[0], conditions=msgspec.structs.replace(made[0].conditions, other_processes=2))
    doubted = summary(rows(msgspec.structs.replace(run, results=(shared, *made[1:])), ()))
    assert doubted is not None
    assert "⚠ unreliable at n = 4,194,304: 2 other processes" in tiles(doubted, run.plan)[0].more


def test_nobody_wins_where_every_size_is_unclear() -> None:
    asked = samples.problems("add", [{"n": 2**24}, {"n": 2**26}], "fp32")
    made = [noisy(p, name, 0.5, 0.2) for p in asked for name in ("torch_eager", "triton_block")]
    run = samples.run(made, op="add", sizes=[p.sizes for p in asked], dtype="fp32", shares={})
    found = summary(rows(run, ()))
    assert found is not None
    assert found.most_wins == ()
    assert tiles(found, run.plan)[1].value == "undecided"
    assert tiles(found, run.plan)[1].basis == "at both sizes it is unclear which variant is the fastest"


@pytest.mark.parametrize(
    ("speed_ups", "unclear", "unclear_speed_ups", "basis"),
    [
        (1, 0, 0, "at 1 size"),
        (1, 1, 1, "at 1 size; the difference there is unclear"),
        (1, 4, 0, "at 1 size; at 4 other sizes the difference is unclear"),
        (2, 1, 0, "geometric mean, 2 sizes; at 1 other size the difference is unclear"),
        (11, 4, 4, "geometric mean, 11 sizes; at 4 of them the difference is unclear"),
        (9, 4, 2, "geometric mean, 9 sizes; at 2 of them and at 2 other sizes the difference is unclear"),
    ],
)
def test_the_tile_of_the_speed_up_says_where_the_difference_is_unclear(
    speed_ups: int, unclear: int, unclear_speed_ups: int, basis: str
) -> None:
    run = samples.run()
    found = summary(rows(run, ()))
    assert found is not None
    counts = replace(found, speed_ups=speed_ups, unclear=unclear, unclear_speed_ups=unclear_speed_ups)
    assert tiles(counts, run.plan)[2].basis == basis
    unknown = tiles(replace(counts, speed_up=None), run.plan)[2]
    sizes = "1 size" if unclear == 1 else f"{unclear} sizes"
    said = f"at {sizes} the difference is unclear" if unclear else "the baseline has no time"
    assert (unknown.value, unknown.basis) == ("unknown", said)


def test_an_unclear_size_is_part_of_the_mean_unless_a_time_there_has_two_levels() -> None:
    asked = samples.problems("add", [{"n": 2**e} for e in (22, 24, 26)], "fp32")
    made = [
        noisy(p, name, share, 0.2) for p in asked[:2] for name, share in (("torch_eager", 0.5), ("triton_block", 0.55))
    ]
    made += [samples.timed(asked[2], "torch_eager", 0.5, again=True), samples.timed(asked[2], "triton_block", 0.9)]
    run = samples.run(made, op="add", sizes=[p.sizes for p in asked], dtype="fp32", shares={})
    found = summary(rows(run, ()))
    assert found is not None
    assert (found.fastest, found.speed_ups, found.unclear, found.unclear_speed_ups) == ("triton_block", 3, 2, 2)
    levels = noisy(asked[0], "torch_eager", 0.5, 0.001)
    assert levels.timing is not None
    cold = levels.timing.device_cold_s
    assert cold is not None
    assert cold.samples is not None
    half = len(cold.samples) // 2
    taken = (*cold.samples[:half], *(2 * t for t in cold.samples[half:]))
    two = msgspec.structs.replace(levels, outcome=Timing(device_cold_s=msgspec.structs.replace(cold, samples=taken)))
    found = summary(rows(msgspec.structs.replace(run, results=(two, *run.results[1:])), ()))
    assert found is not None
    assert (found.fastest, found.speed_ups, found.unclear, found.unclear_speed_ups) == ("triton_block", 2, 2, 1)
    # While a run has measured only that size, there is no mean time of both.
    first = summary(rows(msgspec.structs.replace(run, results=(two, run.results[1])), ()))
    assert first is not None
    assert first.common == 0
    assert tiles(first, run.plan)[0].basis == "fastest at the most sizes; no size has a stable time of all variants"


def test_shipped_runs_lead_where_their_winner_map_says_so() -> None:
    for name in shipped_runs.names():
        run = shipped_runs.load(name)
        table = rows(run, run.environment.roofs)
        found = summary(table)
        assert found is not None
        for one in found.wins:
            leads = [w for w in winners(table) if one.variant in w.names]
            assert one.won == sum(w.names == (one.variant,) for w in leads)
            assert one.tied == sum(bool(w.tied) and not w.unclear for w in leads)
            assert one.unclear == sum(bool(w.unclear) for w in leads)


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
