"""Predictions of a fusion, why they fail, and where fusing pays, on planted times."""

from __future__ import annotations

import inspect
import math
import typing
from dataclasses import fields, is_dataclass, replace

import msgspec
import pytest
import sample_fusions as plant
import sample_runs as samples

from kernelviz import bench as use_cases
from kernelviz.bench.fusion import rows_of
from kernelviz.core import Figure, Problem, Result, Roof, Run, Timing, units
from kernelviz.metrics import fusion_prediction
from kernelviz.metrics import fusion_reasons as why
from kernelviz.metrics.fusion import FusionRow, lines_along, payoff
from kernelviz.metrics.fusion_prediction import (
    PredictionA,
    PredictionB,
    UnfusedFacts,
    bandwidth_at,
    predict_by_costs,
    predict_by_unfused_time,
)
from kernelviz.tables.column import View
from kernelviz.tables.fusion import fusion_columns
from kernelviz.text.fusion import format_speed_up
from kernelviz.text.fusion_markdown import format_row

MOVED_S = 2 * 16384 * 8192 * 2 / plant.BANDWIDTH
"""One pass over the large matrix of `plant.LARGE`: it is read and written once."""


def only(rows: tuple[FusionRow, ...]) -> FusionRow:
    (row,) = rows
    return row


def test_both_predictions_of_two_steps_at_the_bandwidth_of_the_memory() -> None:
    run = plant.run("reshape_elementwise", {"cuda_stepwise": 2 * MOVED_S + 1e-6, "triton_fused": MOVED_S})
    row = only(plant.rows_of(run))
    assert row.saved.moved_bytes == 2 * 16384 * 8192 * 2
    assert row.saved.launches == 1
    assert isinstance(row.a, PredictionA)
    assert isinstance(row.b, PredictionB)
    assert row.a.speed_up == pytest.approx(2.0)
    assert row.b.fused_s == pytest.approx(MOVED_S, rel=0.02)  # samples are a little above the planted time
    assert row.speed_up is not None
    assert row.error_b == pytest.approx(math.log(row.b.speed_up / row.speed_up.estimate))
    assert abs(row.error_b) < 0.03
    assert row.in_memory
    assert row.reasons_a == row.reasons_b == ()


def test_no_prediction_depends_on_the_time_of_the_fused_variant() -> None:
    first = plant.run("reshape_elementwise", {"cuda_stepwise": 2 * MOVED_S, "triton_fused": MOVED_S})
    slower = plant.with_time(first, "triton_fused", 5 * MOVED_S)
    one, other = only(plant.rows_of(first)), only(plant.rows_of(slower))
    assert (one.a, one.b) == (other.a, other.b)
    assert one.speed_up != other.speed_up
    assert other.error_b is not None
    assert other.error_b > 1


@pytest.mark.parametrize("predict", [predict_by_costs, predict_by_unfused_time])
def test_the_types_of_a_prediction_give_it_no_result(predict: typing.Callable[..., object]) -> None:
    """What holds a measured time besides that of the steps is no argument, and no part of one."""
    hints = typing.get_type_hints(predict)
    reached = set()

    def visit(hint: object) -> None:
        for part in (hint, *typing.get_args(hint)):
            if isinstance(part, type) and part not in reached:
                reached.add(part)
                if is_dataclass(part):
                    for hint_of in typing.get_type_hints(part).values():
                        visit(hint_of)
            elif part is not hint:
                visit(part)

    for name, hint in hints.items():
        if name != "return":
            visit(hint)
    assert not reached & {Figure, Result, Run, Timing}
    assert {f.name for f in fields(UnfusedFacts)} == {"steps", "time_s", "launches", "memsets", "precision"}
    assert "fused_s" not in inspect.signature(predict).parameters


def test_the_module_of_predictions_imports_nothing_that_holds_a_result() -> None:
    assert not {"Result", "Figure", "Run", "Timing"} & set(vars(fusion_prediction))


def test_a_wrong_fused_variant_does_not_count() -> None:
    problem = Problem(op="reshape_elementwise", sizes=plant.LARGE, dtype="bf16")
    results = [
        plant.result(problem, "cuda_stepwise", 2 * MOVED_S, kernels=2),
        samples.failed(problem, "triton_fused", "wrong"),
        plant.result(problem, "cuda_tile", 1.5 * MOVED_S),
    ]
    row = only(plant.rows_of(plant.run("reshape_elementwise", results)))
    assert row.fused is not None
    assert row.fused.variant == "cuda_tile"
    none = only(plant.rows_of(plant.run("reshape_elementwise", results[:2])))
    assert none.fused is None
    assert none.speed_up is None
    assert none.error_b is None


def test_the_fastest_composition_is_marked_and_each_has_its_own_row() -> None:
    times = {"contiguous_then_op": 7 * MOVED_S, "cuda_stepwise": 2 * MOVED_S, "triton_fused": MOVED_S}
    fast, slow = plant.rows_of(plant.run("reshape_elementwise", times))
    assert (fast.unfused.variant, fast.fastest) == ("cuda_stepwise", True)
    assert (slow.unfused.variant, slow.fastest) == ("contiguous_then_op", False)
    assert any(isinstance(reason, why.SlowSteps) for reason in slow.reasons_b)
    assert slow.error_b is not None
    assert slow.error_b < -why.MOST_ERROR


def test_a_tensor_in_the_cache_is_written_and_read_at_the_bandwidth_of_the_cache() -> None:
    sizes = {"m": 256, "n": 8192}
    moved_s = 2 * 256 * 8192 * 2 / plant.BANDWIDTH
    run = plant.run("reshape_elementwise", {"cuda_stepwise": 2e-5, "triton_fused": 1e-6 + moved_s}, [sizes])
    row = only(plant.rows_of(run))
    assert isinstance(row.b, PredictionB)
    assert row.b.bandwidth_bytes_per_s == plant.CACHED
    assert not any(isinstance(reason, why.CacheResident) for reason in row.reasons_b), (
        "it used the bandwidth of the cache"
    )
    assert row.in_memory is False


def test_a_tensor_in_the_cache_explains_prediction_b_only_if_no_copy_in_the_cache_was_measured() -> None:
    sizes = {"m": 256, "n": 8192}
    moved_s = 2 * 256 * 8192 * 2 / plant.BANDWIDTH
    run = plant.run(
        "reshape_elementwise", {"cuda_stepwise": 2 * moved_s + 1e-6, "triton_fused": 1.8 * moved_s}, [sizes]
    )
    stored = tuple(roof for roof in plant.ROOFS if roof.level != "l2")
    (without,) = plant.rows_of(
        msgspec.structs.replace(run, environment=msgspec.structs.replace(run.environment, roofs=stored)), roofs=stored
    )
    assert without.error_b is not None
    assert without.error_b > why.MOST_ERROR
    assert any(isinstance(reason, why.CacheResident) for reason in without.reasons_b)
    row = only(plant.rows_of(run))
    assert not any(isinstance(reason, why.CacheResident) for reason in row.reasons_b)


def test_the_bandwidth_does_not_rise_beyond_the_points_that_were_measured() -> None:
    assert bandwidth_at(1, plant.ROOFS) == plant.CACHED
    assert bandwidth_at(2**40, plant.ROOFS) == pytest.approx(plant.BANDWIDTH)
    between = bandwidth_at(2**25, plant.ROOFS)
    assert between is not None
    assert plant.BANDWIDTH < between < plant.CACHED
    assert bandwidth_at(2**25, ()) is None
    alone, more = (
        Roof(name="copy", level="dram", moved_bytes=m, bandwidth_bytes_per_s=b)
        for m, b in ((2**29, 4e12), (2**30, 3e12))
    )
    assert bandwidth_at(2**30, (alone, more)) == pytest.approx(2.4e12), (
        "what the larger copy moves more takes 223.7 µs more"
    )
    assert bandwidth_at(2**28, (alone, msgspec.structs.replace(more, bandwidth_bytes_per_s=9e12))) == 4e12, (
        "a larger copy that is not longer"
    )
    wide = Roof(name="copy", level="dram", moved_bytes=2**27, bandwidth_bytes_per_s=4e12, low=2e12, high=6e12)
    assert bandwidth_at(2**25, (wide,)) is None, "a roof that is too uncertain is not used"


def test_what_is_missing_is_named() -> None:
    run = plant.run("reshape_elementwise", {"cuda_stepwise": 2 * MOVED_S, "triton_fused": MOVED_S})
    assert only(plant.rows_of(run, roofs=())).a == "bandwidth"
    assert only(plant.rows_of(run, roofs=())).b == "bandwidth"
    assert only(plant.rows_of(run, launch=None)).b == "launch_cost"
    short = plant.run("reshape_elementwise", {"cuda_stepwise": MOVED_S / 2, "triton_fused": MOVED_S / 4})
    assert only(plant.rows_of(short)).b == "more_saved_than_measured"
    linear = plant.run("linear_gelu", {"torch_eager": 1e-3, "triton_fused": 9e-4}, [{"m": 16384, "n": 8192, "k": 4096}])
    no_rate = tuple(roof for roof in plant.ROOFS if roof.name != "matmul")
    assert only(plant.rows_of(linear, roofs=no_rate)).a == "compute_rate"


def test_a_compute_bound_step_explains_prediction_a() -> None:
    sizes = {"m": 16384, "n": 8192, "k": 512}
    run = plant.run("linear_gelu", {"torch_eager": 6e-4, "triton_fused": 5.4e-4}, [sizes])
    row = only(plant.rows_of(run))
    assert row.error_a is not None
    assert abs(row.error_a) > why.MOST_ERROR
    (reason,) = [r for r in row.reasons_a if isinstance(r, why.ComputeBoundStep)]
    assert reason.reached == pytest.approx(row.a.unfused_s / row.unfused_figure.estimate)  # type: ignore[union-attr]
    assert any(isinstance(r, why.OtherKernels) for r in row.reasons_a)


def test_a_slow_fused_kernel_its_spills_and_its_further_kernels_explain_a_prediction_that_is_too_high() -> None:
    problem = Problem(op="reshape_elementwise", sizes=plant.LARGE, dtype="bf16")
    results = [
        plant.result(problem, "cuda_stepwise", 2 * MOVED_S, kernels=2),
        plant.result(problem, "triton_fused", 1.8 * MOVED_S, kernels=2, local_bytes=128),
    ]
    row = only(plant.rows_of(plant.run("reshape_elementwise", results)))
    kinds = {type(reason) for reason in row.reasons_b}
    assert {why.SlowFused, why.Spills, why.SeveralKernels} <= kinds
    right = only(
        plant.rows_of(plant.run("reshape_elementwise", [results[0], plant.result(problem, "triton_fused", MOVED_S)]))
    )
    assert right.reasons_b == ()


def test_launches_explain_a_small_problem() -> None:
    sizes = {"m": 1, "n": 8192}
    run = plant.run("reshape_elementwise", {"cuda_stepwise": 5e-6, "triton_fused": 1e-6}, [sizes])
    row = only(plant.rows_of(run))
    assert any(isinstance(reason, why.LaunchesMatter) for reason in row.reasons_a)
    assert {type(reason) for reason in row.reasons_b} == {why.SmallerThanCopies, why.SlowSteps}, (
        "B subtracts the launches"
    )


def test_an_error_without_a_known_reason_says_so() -> None:
    facts = UnfusedFacts(steps=plant.rows()[0].steps, time_s=1.0, launches=1, precision="bf16")
    row = plant.rows()[-1]
    assert row.fused is not None
    assert isinstance(row.a, PredictionA)
    case = why.Explained(
        facts=replace(facts, time_s=row.a.unfused_s),
        saved=row.saved,
        launch=None,
        shortest=row.a,
        by_time=row.b if isinstance(row.b, PredictionB) else None,
        unfused=row.unfused,
        fused=row.fused,
        fused_s=row.a.fused_s,
        half_width=0.01,
        cache_bytes=None,
        device=samples.H200,
        roofs=(),
    )
    assert why.reasons_of_b(case, 0.5) == (why.NotExplained(),)
    assert why.reasons_of_b(case, 0.1) == ()
    assert why.reasons_of_b(replace(case, half_width=0.4), 0.5) == (why.WideInterval(0.4),)
    assert why.reasons_of_a(replace(case, half_width=0.4), 0.5) == (why.WideInterval(0.4),)


def line(fused_over_unfused: dict[int, float]) -> tuple[FusionRow, ...]:
    """A sweep in which the fused variant takes these parts of the time of the steps."""
    sizes = [{"m": m, "n": 8192} for m in fused_over_unfused]
    results = [
        one
        for size in sizes
        for problem in (Problem(op="reshape_elementwise", sizes=size, dtype="bf16"),)
        for one in (
            plant.result(problem, "cuda_stepwise", 1e-4, kernels=2),
            plant.result(problem, "triton_fused", 1e-4 * fused_over_unfused[size["m"]]),
        )
    ]
    return plant.rows_of(plant.run("reshape_elementwise", results, sizes))


@pytest.mark.parametrize(
    ("parts", "kind", "stops"),
    [
        ({16: 0.5, 32: 0.5, 64: 0.5}, "everywhere", None),
        ({16: 1.2, 32: 1.2}, "nowhere", None),
        ({16: 1.2, 32: 1.1, 64: 0.5}, "from", 32),
        ({16: 0.5, 32: 0.8, 64: 1.3}, "up_to", 64),
        ({16: 1.2, 32: 0.5, 64: 1.3}, "between", 16),
        ({16: 0.5, 32: 1.5, 64: 0.5}, "some", None),
    ],
)
def test_where_fusing_pays_follows_from_the_verdicts(parts: dict[int, float], kind: str, stops: int | None) -> None:
    found = payoff(line(parts), "m")
    assert (found.kind, found.stops_at) == (kind, stops)
    assert found.unclear == 0
    assert [row.problem.sizes["m"] for row in found.rows] == sorted(parts)
    assert found.without_gain == tuple(m for m, part in parts.items() if part > 1)


def test_a_size_without_a_decision_belongs_to_no_side() -> None:
    rows = line({16: 1.2, 32: 0.5})
    undecided = replace(rows[0], verdict=None)
    found = payoff((undecided, rows[1]), "m")
    assert (found.kind, found.unclear) == ("everywhere", 1)
    assert payoff((undecided,), "m").kind == "unknown"


def test_lines_are_along_one_axis_or_along_tied_ones() -> None:
    grown = [{"m": m, "n": 8192, "k": 64} for m in (256, 512, 8192)]
    times = {"torch_eager": 2e-4, "triton_fused": 1e-4}
    rows = plant.rows_of(plant.run("linear_gelu", times, [*grown, {"m": 512, "n": 8192, "k": 128}]))
    assert [[r.problem.sizes["m"] for r in of] for of in lines_along(rows, "m")] == [[256, 512, 8192]]
    assert [[r.problem.sizes["k"] for r in of] for of in lines_along(rows, "k")] == [[64, 128]]
    square = plant.rows_of(plant.run("linear_gelu", times, [{"m": s, "n": s, "k": s} for s in (512, 1024)]))
    assert [[r.problem.sizes["m"] for r in of] for of in lines_along(square, "m")] == [[512, 1024]]


def test_a_backward_pass_has_no_row() -> None:
    problem = Problem(op="linear_gelu", sizes={"m": 64, "n": 64, "k": 64}, dtype="bf16", direction="backward")
    made = plant.run("linear_gelu", {"torch_eager": 1e-4, "triton_fused": 1e-4}, [problem.sizes])
    backward = tuple(msgspec.structs.replace(r, problem=problem) for r in made.results)
    assert plant.rows_of(msgspec.structs.replace(made, results=backward)) == ()


def two_levels(figure: Figure) -> Figure:
    """The second half of its blocks takes twice as long."""
    assert figure.samples is not None
    half = len(figure.samples) // 2
    samples_s = (*figure.samples[:half], *(2 * s for s in figure.samples[half:]))
    return msgspec.structs.replace(figure, samples=samples_s, high=2 * figure.estimate)


def test_nothing_is_predicted_from_a_time_with_two_levels() -> None:
    run = plant.run("reshape_elementwise", {"cuda_stepwise": 2 * MOVED_S, "triton_fused": 0.5 * MOVED_S})
    first, fused = run.results
    unstable = msgspec.structs.replace(
        first, outcome=msgspec.structs.replace(first.timing, device_cold_s=two_levels(plant.figure_of(first)))
    )
    row = only(plant.rows_of(msgspec.structs.replace(run, results=(unstable, fused))))
    assert row.b == "not_stable"
    assert row.error_b is None
    assert row.reasons_b == row.reasons_a == ()


def test_an_unclear_speed_up_that_contradicts_the_two_times_is_not_given() -> None:
    """Rounds that both share say that fusing is faster, the times over all rounds say the opposite."""
    run = plant.run("reshape_elementwise", {"cuda_stepwise": MOVED_S, "triton_fused": 0.98 * MOVED_S})
    first, fused = run.results
    figure = plant.figure_of(fused)
    blocks = tuple(
        msgspec.structs.replace(b, round=b.round if i < 5 else 100 + i) for i, b in enumerate(figure.blocks or ())
    )
    size = blocks[0].size
    later = tuple(s * (1.0 if i // size < 5 else 1.3) for i, s in enumerate(figure.samples or ()))
    moved = msgspec.structs.replace(
        figure, blocks=blocks, samples=later, estimate=1.25 * MOVED_S, low=1.24 * MOVED_S, high=1.26 * MOVED_S
    )
    other = msgspec.structs.replace(fused, outcome=msgspec.structs.replace(fused.timing, device_cold_s=moved))
    row = only(plant.rows_of(msgspec.structs.replace(run, results=(first, other))))
    assert row.verdict is not None
    assert row.verdict.kind == "unclear"
    assert row.speed_up is None
    assert not row.by_other_rounds


def test_a_speed_up_by_rounds_that_differs_from_the_times_is_marked() -> None:
    row = plant.rows()[-1]
    assert not row.by_other_rounds
    assert row.fused_figure is not None
    slower = msgspec.structs.replace(row.fused_figure, estimate=1.2 * row.fused_figure.estimate)
    apart = replace(row, fused_figure=slower)
    assert apart.by_other_rounds
    assert apart.ratio_of_times == pytest.approx((row.ratio_of_times or 0.0) / 1.2)
    said = f"; ratio of the two times: {units.factor(apart.ratio_of_times or 0.0)} ×"
    cells = {c.heading: str(c.value(apart)) for c in fusion_columns([apart], View.WIDE)}
    assert cells["Measured"] == f"{format_speed_up(apart.speed_up)}{said}"
    assert any(cell.endswith(said) for cell in format_row(apart))
    assert not any(said in cell for cell in format_row(row))
    terminal = {c.heading: str(c.value(apart)) for c in fusion_columns([apart], View.TERMINAL)}
    assert terminal["Measured"] == str(format_speed_up(apart.speed_up)), "the terminal shows no times"


def test_no_recorded_speed_up_contradicts_the_two_times_of_its_row() -> None:
    """The ratio of two times that is outside of the printed interval is in the row itself."""
    rows = rows_of(use_cases.current(), "h200-fusion-pointwise_chain")
    marked = [row.problem.sizes["m"] for row in rows if row.by_other_rounds and row.fastest]
    assert marked == [8, 32, 128]
    for row in rows:
        assert row.speed_up is not None
        assert row.speed_up.low is not None
        assert row.speed_up.high is not None
        inside = 0.995 * row.speed_up.low <= (row.ratio_of_times or 0.0) <= 1.005 * row.speed_up.high
        assert inside or row.by_other_rounds
