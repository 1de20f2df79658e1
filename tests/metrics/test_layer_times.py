"""Sums of a layer and traffic mixes, with planted wrong, unreliable and missing times, and planted changes of the winner."""

from __future__ import annotations

import itertools
import random

import pytest

from kernelviz.core import Figure
from kernelviz.core.problem import Problem
from kernelviz.core.workload import Measured, WorkloadCase, WorkloadGroup, WorkloadResult
from kernelviz.metrics.layer_times import FusionTimes, PartTimes, VariantTime, comparable_sums, layer_sum, per_token_s
from kernelviz.metrics.layer_truth import group_rows, kernel_rows, large_without_part, layer_time, with_missing_parts
from kernelviz.metrics.statistics import Interval
from kernelviz.metrics.traffic_mix import PhaseTimes, best_at, flips, of_part, speed_up
from kernelviz.models.parts import LayerCall, LayerPart, layer_parts
from kernelviz.models.presets import PRESETS
from kernelviz.plots.model import time_by_part, time_by_share


def time(variant: str, estimate: float | None, **facts: object) -> VariantTime:
    figure = None if estimate is None else Figure(estimate=estimate, low=0.9 * estimate, high=1.1 * estimate)
    return VariantTime(variant, figure, **facts)  # type: ignore[arg-type]


def part(name: str, *times: VariantTime, compiled: str | None = "torch_compile") -> PartTimes:
    problem = Problem(op="matmul", sizes={"m": 1, "n": 1, "k": 1}, dtype="bf16")
    return PartTimes(LayerPart(name=name, role="matmul", problem=problem), None, times, "torch_eager", compiled)


def test_a_wrong_variant_is_never_the_best_and_an_unreliable_one_only_alone() -> None:
    wrong, unreliable = time("fast", 0.1, wrong=True), time("b", 0.5, level="suspect")
    eager = time("torch_eager", 1.0, level="good")
    up = part("up", wrong, unreliable, eager)
    best = up.of("best")
    assert best is not None
    assert best.variant == "torch_eager"
    alone = part("up", wrong, unreliable)
    assert layer_sum([alone], "best").unreliable == ("up",)
    assert alone.lacks("eager") == "failed" or alone.lacks("eager") == "not_measured"
    assert part("up", wrong).of("best") is None


def test_a_sum_names_what_is_missing_and_ratios_are_of_the_same_parts() -> None:
    whole = part("up", time("torch_eager", 2.0), time("torch_compile", 1.0))
    eager_only = part("down", time("torch_eager", 5.0))
    library = part("gate", time("torch_eager", 4.0), compiled=None)
    parts = [whole, eager_only, library]
    sums = {one.way: one for one in (layer_sum(parts, "eager"), layer_sum(parts, "compiled"), layer_sum(parts, "best"))}
    assert sums["eager"].complete
    assert sums["compiled"].missing == ("down",)
    assert sums["compiled"].interval == Interval(5.0, 4.5, 5.5), "a product is compiled to the library's"
    for one in comparable_sums(parts):
        assert one.missing == ("down",)
        assert one.interval is not None
    assert layer_sum([part("up")], "eager").interval is None
    assert time_by_part(parts).layout.annotations[1].text == "incomplete: 5.000 s<br>2 of 3 parts"


def test_what_fusing_saves() -> None:
    problem = Problem(op="add_rmsnorm", sizes={"m": 1, "n": 1}, dtype="bf16")
    fused = part("add_rmsnorm", time("torch_eager", 2.5), time("triton", 1.0))
    fusion = FusionTimes("add_rmsnorm", ("a", "b"), problem, fused)
    a, b = part("a", time("torch_eager", 1.0)), part("b", time("torch_eager", 1.5))
    assert fusion.saved_s([a, b]) == pytest.approx(1.5)
    assert fusion.saved_s([a, part("b")]) is None, "a missing time is not zero"
    assert per_token_s(1.0, 4, 8) == 2.0
    assert per_token_s(None, 4, 8) is None


def line(name: str, prefill: float, decode: float) -> PhaseTimes:
    def interval(value: float) -> Interval:
        return Interval(value, 0.95 * value, 1.05 * value)

    return PhaseTimes(name, interval(prefill), interval(decode))


def test_every_change_of_the_winner_is_found_exactly() -> None:
    """Against the best at many shares: between two changes one variant is best, and at a change two are."""
    numbers = random.Random(5)
    for _ in range(50):
        lines = [line(f"v{i}", numbers.uniform(1, 2), numbers.uniform(1, 2)) for i in range(6)]
        changes = flips(lines)
        by_name = {one.name: one for one in lines}
        ends = [0.0, *(flip.share for flip in changes), 1.0]
        assert ends == sorted(ends)
        for flip in changes:
            assert by_name[flip.before].at(flip.share) == pytest.approx(by_name[flip.after].at(flip.share), rel=1e-12)
            assert flip.low is not None
            assert flip.high is not None
            assert 0 <= flip.low <= flip.share <= flip.high <= 1
        names = [best_at(lines, (a + b) / 2) for a, b in itertools.pairwise(ends) if b > a]
        leaders = [one.name for one in names if one is not None]
        expected = [changes[0].before, *(flip.after for flip in changes)] if changes else leaders[:1]
        assert leaders == expected


def test_a_mix_leaves_out_wrong_and_unreliable_times() -> None:
    prefill = part("up", time("a", 4.0), time("b", 2.0, wrong=True), time("c", 2.0, level="suspect"), time("d", 2.0))
    decode = part("up", time("a", 1.0), time("b", 1.0), time("c", 1.0))
    (only,) = of_part(prefill, decode, 4, 2)
    assert (only.name, only.prefill.estimate, only.decode.estimate) == ("a", 1.0, 0.5)
    assert speed_up(line("x", 2.0, 4.0), line("y", 1.0, 1.0), 0.5) == pytest.approx(3.0)
    assert len(time_by_share([only], 0.5).data) == 1
    assert not time_by_share([], 0.5).data
    assert best_at([], 0.5) is None
    assert flips([]) == ()


def test_kernels_without_a_part_are_shown_as_such() -> None:
    def measured(estimate: float) -> Measured:
        return Measured(estimate=estimate, low=estimate, high=estimate)

    case = WorkloadCase(workload="transformer_layer", values={}, variant="eager")
    groups = (
        WorkloadGroup(parts=("up",), kernels=("gemm", "<b>"), time=measured(0.7), kernels_s=(0.6, 0.1)),
        WorkloadGroup(parts=(), kernels=("copy", "small"), time=measured(0.3), kernels_s=(0.29, 0.01)),
    )
    result = WorkloadResult(case=case, values={"layer_s": measured(1.0)}, groups=groups)
    assert layer_time(result) is not None
    rows = kernel_rows([result])
    assert [row.name for row in rows] == ["gemm", "copy", "<b>", "small"]
    assert [row.name for row in large_without_part(rows)] == ["copy"]
    assert [row.share for row in group_rows([result])] == [0.7, 0.3]
    figure = time_by_part([part("up")], [result])
    assert "<b>" not in str(figure.to_plotly_json()["data"][0]["name"])


def test_parts_that_are_computed_together_are_drawn_in_two_colours_under_their_own_name() -> None:
    def measured(estimate: float) -> Measured:
        return Measured(estimate=estimate, low=estimate, high=estimate)

    def layer(variant: str, *groups: tuple[tuple[str, ...], float]) -> WorkloadResult:
        case = WorkloadCase(workload="transformer_layer", values={}, variant=variant)
        whole = tuple(
            WorkloadGroup(parts=parts, kernels=("k",), time=measured(s), kernels_s=(s,)) for parts, s in groups
        )
        return WorkloadResult(case=case, values={"layer_s": measured(sum(s for _, s in groups))}, groups=whole)

    eager = layer("eager", (("gate",), 1.0), (("up",), 1.2))
    figure = time_by_part([part("gate"), part("up")], [eager, layer("compiled", (("gate", "up"), 2.0))])
    colour = {t.name: t.marker.color for t in figure.data if t.y == ("whole layer, eager",)}
    (together,) = [t for t in figure.data if t.y == ("whole layer, compiled",)]
    assert together.name == "gate projection + up projection"
    assert together.showlegend
    assert (together.marker.color, together.marker.pattern.fgcolor) == (
        colour["up projection"], colour["gate projection"]
    )  # fmt: skip
    # The axis has ticks as far as the bars, and a label after them has its space.
    assert figure.layout.xaxis.tickvals[-1] == 2.5
    assert 2.5 < figure.layout.xaxis.range[1] < 1.5 * 2.2


RECORDED = {
    "prefill": (
        ("attention_norm", 1), ("qkv", 2), ("cache_write", 1), ("rope cache_write", 1), ("rope attention", 1),
        ("rope attention", 5), ("feed_forward_norm", 1), ("gate up", 4), ("activation", 1), ("", 3),
    ),
    "decode": (
        ("attention_norm", 1), ("qkv", 1), ("rope cache_write", 1), ("cache_write", 1), ("rope attention", 1),
        ("rope attention", 3), ("feed_forward_norm", 1), ("gate", 1), ("up", 1), ("activation", 1), ("", 3),
    ),
}  # fmt: skip
"""Parts and number of kernels of each group of the compiled layer of Llama-3-8B, as torch 2.11 gave them on an H100."""


def recorded_groups(phase: str) -> tuple[WorkloadGroup, ...]:
    return tuple(
        WorkloadGroup(parts=tuple(parts.split()), kernels=("nvjet",) * count, kernels_s=(1e-4,) * count)
        for parts, count in RECORDED[phase]
    )


@pytest.mark.parametrize("phase", RECORDED)
def test_parts_that_torch_did_not_name_are_added_where_a_layer_must_run_them(phase: str) -> None:
    groups = recorded_groups(phase)
    values = {"model": "llama-3-8b", "phase": phase, "batch": 1, "context": 4096, "dtype": "bf16"}
    case = WorkloadCase(workload="transformer_layer", values=values, variant="compiled")  # type: ignore[arg-type]
    result = WorkloadResult(case=case, values={"layer_s": Measured(estimate=1e-3)}, groups=groups)
    filled = [row.group for row in group_rows([result])]
    assert filled[-1].parts == ("down", "feed_forward_residual")
    assert filled[5].parts == ("rope", "attention", "output", "attention_residual")
    same = [i for i in range(len(groups)) if filled[i].parts == groups[i].parts]
    assert same == [i for i in range(len(groups)) if i not in (5, len(groups) - 1)]
    assert not large_without_part(kernel_rows([result]))


def test_a_part_is_added_to_no_group_where_the_order_leaves_two() -> None:
    groups = recorded_groups("decode")
    parts = layer_parts(PRESETS["llama-3-8b"], LayerCall(preset="llama-3-8b", phase="decode", batch=64, context=8192))
    two = (*groups, WorkloadGroup(parts=(), kernels=("nvjet",)))
    assert with_missing_parts(two, parts)[-2:] == two[-2:]
    alone = (WorkloadGroup(parts=("attention",), kernels=("triton",)), WorkloadGroup(parts=("feed_forward_norm",)))
    assert with_missing_parts(alone, parts[4:8]) == alone
    unlike = (WorkloadGroup(parts=("up",), kernels=("a", "b")), WorkloadGroup(parts=(), kernels=("c",)))
    assert with_missing_parts(unlike, parts) == unlike, "an activation is no part of a library call"
