"""The one sentence about a run, on planted winners: where a variant wins, where several tie, and what is excluded."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import sample_runs as samples
from msgspec.structs import replace

from kernelviz.core import Problem, Result, Run, Timing
from kernelviz.formats import shipped_runs
from kernelviz.metrics.insight import Insight, insight
from kernelviz.metrics.rows import rows, usual_quantity
from kernelviz.metrics.sketch import sketch
from kernelviz.metrics.summary import summary
from kernelviz.text.insight import describe_insight, describe_sketch, insight_sentence

SIZES = [2**p for p in (22, 24, 26, 28, 30)]


def timed(problem: Problem, variant: str, speed: float) -> Result:
    """A result whose time is exactly inverse to the speed."""
    made = samples.timed(problem, variant, speed)
    again = samples.figure(1e-4 / speed, seed=1) if variant == "torch_eager" else None
    seed = sum(variant.encode())
    return replace(made, outcome=Timing(device_cold_s=samples.figure(1e-4 / speed, seed=seed), again_s=again))


def planted(*shares: Mapping[str, float | None]) -> Run:
    """A run of add, one size for each mapping; a share of None is a wrong result."""
    made = []
    for problem, of_size in zip(
        samples.problems("add", [{"n": n} for n in SIZES[: len(shares)]], "fp32"), shares, strict=True
    ):
        for name, share in of_size.items():
            made.append(samples.failed(problem, name, "wrong") if share is None else timed(problem, name, share))
    return samples.run(made, op="add", dtype="fp32", shares={})


def sentence(run: Run) -> str:
    return str(describe_insight(insight(rows(run, run.environment.roofs))))


def test_a_variant_that_wins_from_a_size_on_is_named_with_its_gain_over_torch_compile() -> None:
    small = {"torch_eager": 0.2, "torch_compile": 0.4, "triton_block": 0.2, "cuda_vec16": 0.2}
    large = {"torch_eager": 0.2, "torch_compile": 0.4, "triton_block": 0.6, "cuda_vec16": 0.8}
    run = planted(small, small, large, large, large)
    assert sentence(run) == "cuda vec16 is fastest from n = 67,108,864 on, on average 2.00× over torch compile"
    found = insight(rows(run, ()))
    assert found is not None
    assert (found.span, found.wins, found.sizes, found.undecided, found.rival) == ("from", 3, 5, 0, "torch_compile")
    # Torch compile itself is compared with the baseline.
    assert sentence(planted(small, small)).startswith(
        "torch compile is fastest at both sizes, on average 2.00× over torch eager"
    )


def test_a_size_that_is_unclear_is_no_tie() -> None:
    some = Insight(
        variant="a", span="from", axes=("n",), first=64, last=256, wins=3, tied=2, sizes=5, undecided=4, variants=2
    )
    assert str(describe_insight(replace(some, unclear=3, unclear_in_span=1))) == (
        "no clear winner at 4 of 5 sizes; a is fastest from n = 64 on except for 1 tie and 1 unclear size"
    )
    assert str(describe_insight(replace(some, unclear=4, unclear_in_span=2))) == (
        "no clear winner at 4 of 5 sizes; a is fastest from n = 64 on except for 2 unclear sizes"
    )
    nowhere = Insight(variant=None, span="none", sizes=2, undecided=2, unclear=1, tied_with=("a", "b"), variants=2)
    assert str(describe_insight(nowhere)) == "a or b may be fastest at both sizes (unclear at 1, tied at 1)"
    unclear = replace(nowhere, unclear=2)
    assert str(insight_sentence(unclear)) == "Which of a or b is fastest is unclear at both sizes."


def test_ties_at_the_ends_do_not_count_as_wins_and_most_ties_are_said() -> None:
    tie = {"torch_eager": 0.2, "triton_block": 0.4, "cuda_vec16": 0.4}
    win = {"torch_eager": 0.2, "triton_block": 0.4, "cuda_vec16": 0.8}
    assert sentence(planted(tie, tie, win, tie, tie)) == (
        "4 of 5 sizes are ties; cuda vec16 is fastest at n = 67,108,864, 4.00× over torch eager"
    )
    assert sentence(planted(win, tie, win, tie, tie)) == (
        "3 of 5 sizes are ties; cuda vec16 is fastest up to n = 67,108,864 except for 1 tie, on average 3.17× over torch eager"
    )
    other = {"torch_eager": 0.2, "triton_block": 0.8, "cuda_vec16": 0.4}
    assert sentence(planted(win, other, win, tie, win)) == (
        "cuda vec16 is fastest at 3 of 5 sizes, there on average 4.00× over torch eager"
    )
    assert sentence(planted(tie, tie)) in (
        "triton block and cuda vec16 tie at both sizes",
        "cuda vec16 and triton block tie at both sizes",
    )


def test_as_many_wins_of_another_variant_and_another_best_overall_are_said() -> None:
    """As on Bench: most wins is a tie, and the best variant overall is one that wins fewer sizes."""
    first = {"torch_eager": 0.2, "torch_compile": 0.1, "triton_block": 0.30, "cuda_vec16": 0.05, "cuda_scalar": 0.29}
    second = {"torch_eager": 0.2, "torch_compile": 0.1, "triton_block": 0.05, "cuda_vec16": 0.30, "cuda_scalar": 0.29}
    run = planted(first, second, first, second)
    assert sentence(run) == (
        "triton block is fastest at 2 of 4 sizes, there on average 1.50× over torch eager; cuda vec16 wins as many; "
        "best overall: cuda scalar"
    )
    answers = summary(rows(run, run.environment.roofs))
    assert answers is not None
    assert answers.fastest == "cuda_scalar"
    assert {one.variant for one in answers.most_wins} == {"triton_block", "cuda_vec16"}


def test_the_rival_is_the_faster_one_of_torch_compile_and_the_baseline() -> None:
    one = {"torch_eager": 0.4, "torch_compile": 0.2, "cuda_vec16": 0.8}
    assert sentence(planted(one, one)) == "cuda vec16 is fastest at both sizes, on average 2.00× over torch eager"
    # Compared only where both have a time: torch.compile lacks the size at which eager is fast.
    failed = {"torch_eager": 0.4, "cuda_vec16": 0.8}
    other = {"torch_eager": 0.1, "torch_compile": 0.2, "cuda_vec16": 0.8}
    assert sentence(planted(other, failed)).endswith("4.00× over torch compile")


def test_a_wrong_variant_is_never_the_fastest_nor_the_rival() -> None:
    run = planted(
        {"torch_eager": 0.2, "torch_compile": None, "triton_block": 0.4},
        {"torch_eager": 0.2, "torch_compile": 0.9, "triton_block": 0.4},
    )
    assert sentence(run) == "triton block is fastest at both sizes, on average 2.00× over torch eager"
    assert sentence(planted({"torch_eager": None})) == "no case has a correct time"
    assert sentence(planted({"torch_eager": 0.1})) == "torch eager is the only variant with a correct time"


def test_sizes_of_several_axes_are_counted() -> None:
    grid = samples.problems("rmsnorm", [{"m": m, "n": n} for m in (2**13, 2**15) for n in (2**12, 2**14)])
    made = [
        timed(p, name, share) for p in grid for name, share in {"torch_eager": 0.2, "triton_persistent": 0.4}.items()
    ]
    assert sentence(samples.run(made, shares={})) == (
        "triton persistent is fastest at all 4 sizes, on average 2.00× over torch eager"
    )


def test_the_sketch_holds_the_points_of_the_chart() -> None:
    run = planted({"torch_eager": 0.5, "triton_block": 0.9}, {"torch_eager": 0.5, "triton_block": None})
    drawn = sketch(run)
    assert (drawn.axes, drawn.quantity) == (("n",), "bandwidth")
    by_name = {line.variant: line for line in drawn.lines}
    assert by_name["torch_eager"].x == (SIZES[0], SIZES[1])
    assert by_name["triton_block"].x == (SIZES[0],), "a wrong result is no point"
    for row in rows(run, run.environment.roofs):
        if row.bandwidth_bytes_per_s is not None:
            line = by_name[row.result.variant]
            y = line.y[line.x.index(row.result.problem.sizes["n"])]
            assert y == pytest.approx(row.bandwidth_bytes_per_s, rel=1e-3)
    assert len(drawn.roof) == 2
    assert str(describe_sketch(drawn, None)).startswith("Small chart: bandwidth of 2 variants by n.")
    assert sketch(planted({"torch_eager": None})).lines == ()


def test_an_op_with_hardly_any_work_is_drawn_by_its_time() -> None:
    for name, quantity in (("h200-empty_launch", "time"), ("h200-copy", "bandwidth"), ("h200-matmul", "rate")):
        run = shipped_runs.load(name)
        assert sketch(run).quantity == quantity
        assert usual_quantity(rows(run, run.environment.roofs)) == quantity
