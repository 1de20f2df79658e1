"""docs/gpu-figures.json: what the checks on a GPU measured, judged by the rules of those checks."""

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from cases import WRONG
from judged import (
    MOST_FURTHER_OFF,
    cases_for_ncu,
    further_off,
    further_off_at_one_clock,
    most_further_off,
    ncu_adds_s,
    one_kernel,
    op_and_variant,
    true_failure,
    unsolved,
    untrue_failures,
    without_reason,
)

from kernelviz.ops import catalogue

DOCS = Path(__file__).parents[1] / "docs"
FIGURES = json.loads((DOCS / "gpu-figures.json").read_text())["figures"]


def _by_ncu() -> dict[str, Mapping[str, Any]]:
    compared: dict[str, Mapping[str, Any]] = FIGURES["ncu_every_variant"]
    return compared


def test_ncu_agrees_about_every_variant_whose_call_is_one_kernel() -> None:
    compared = _by_ncu()
    assert without_reason(compared) == []
    assert len(further_off_at_one_clock(compared)) <= MOST_FURTHER_OFF * len(one_kernel(compared))


def test_of_a_sample_a_few_more_cases_may_be_further_off() -> None:
    """Quantiles of the binomial distribution: 99 %, a share of 5 %."""
    assert [most_further_off(cases) for cases in (20, 53, 500)] == [4, 7, 37]


def test_an_independent_timer_decides_where_ncu_differs() -> None:
    """Found on an H100: gelu of 2^26 by triton_erf took 112.7 us by CUPTI and 133.5 under ncu, and events without a tracer agreed
    with ncu: tracing makes it shorter. Timed untraced, it may be apart from ncu's by no more than from the traced time."""

    def compared(**third: float) -> dict[str, dict[str, object]]:
        same = {"kernels": 1, "same_kernels": True, "own_clock_hz": 1.98e9, "ncu_clock_hz": 1.98e9}
        empty = {"own_s": 0.8e-6, "own_p5_p95_s": (0.8e-6, 0.8e-6), "ncu_s": 2.2e-6}
        slow = {"own_s": 112.7e-6, "own_p5_p95_s": (111e-6, 114e-6), "ncu_s": 133.5e-6}
        return {"empty_launch | cuda_launches": same | empty, "gelu | triton_erf": same | slow | third}

    for untraced_s, doubtful in ((113.0e-6, False), (111.0e-6, False), (115.0e-6, True), (133.0e-6, True)):
        assert without_reason(compared(untraced_s=untraced_s)) == ["gelu | triton_erf"] * doubtful, untraced_s
    assert without_reason(compared()) == ["gelu | triton_erf"]
    # A time that differs between processes: ours is taken again in the process of the third timer.
    assert without_reason(compared(untraced_s=133.0e-6, own_again_s=132.5e-6)) == []
    assert without_reason(compared(untraced_s=133.0e-6, own_again_s=112.7e-6)) == ["gelu | triton_erf"]
    assert without_reason(compared(tracing_shortens_s=23e-6)) == []
    assert without_reason(compared(tracing_shortens_s=17e-6)) == ["gelu | triton_erf"]


@pytest.mark.parametrize(
    ("ncu_s", "adds_s", "explained"),
    [(24.6e-6, 2.5e-6, True), (24.6e-6, 0.5e-6, False), (23.0e-6, 2.5e-6, False), (30.0e-6, 2.5e-6, False)],
)
def test_a_call_outside_of_graphs_may_be_longer_by_what_tracing_adds(
    ncu_s: float, adds_s: float, explained: bool
) -> None:
    """`scale` of 8,388,613 fp32 as published waits for the device, so no graph has it, and only the calls of graphs are corrected
    for tracing. On an H200 the same kernel took 23.9 us in a graph, after 2.5 us that tracing adds, and 26.3 us outside."""
    same = {"kernels": 1, "same_kernels": True, "own_clock_hz": 1.98e9, "ncu_clock_hz": 1.98e9}
    compared = {
        "empty_launch | cuda_launches": same | {"own_s": 0.8e-6, "own_p5_p95_s": (0.8e-6, 0.8e-6), "ncu_s": 1.8e-6},
        "scale | cuda_scalar": same
        | {"own_s": 23.5e-6, "own_p5_p95_s": (23e-6, 24e-6), "ncu_s": 24.5e-6, "tracing_adds_s": adds_s},
        "scale | cuda_published": same | {"own_s": 26.8e-6, "own_p5_p95_s": (26.3e-6, 27.0e-6), "ncu_s": ncu_s},
    }
    assert without_reason(compared) == ["scale | cuda_published"]
    compared["scale | cuda_published"] |= {"tracing_cost_unknown": True}
    assert without_reason(compared) == ([] if explained else ["scale | cuda_published"])


def test_the_document_says_what_the_figures_say() -> None:
    """The line of docs/measuring.md, with the median by which ncu's time is longer."""
    alike, adds_s = one_kernel(_by_ncu()), ncu_adds_s(_by_ncu())
    median_us = median(c["ncu_s"] - adds_s - c["own_s"] for c in alike.values()) * 1e6
    right, at_one_clock = (len(alike) - len(further(_by_ncu())) for further in (further_off, further_off_at_one_clock))
    median_words = f"median {median_us:.1f} µs".replace("-", "−")
    agree = f"{right} of {len(alike)}, at one clock {at_one_clock}; {median_words}"
    said = (DOCS / "measuring.md").read_text()
    assert f"less {adds_s * 1e6:.2f} µs that ncu adds to an empty kernel" in said
    assert f"{len(alike)} calls of one and the same kernel | ≤ 0.8 µs + 1 % | {agree}" in said


LEFT_OUT = {
    ("add_rmsnorm", "liger"),  # refuses rows of that length
    *((op, "triton_published") for op in ("attention", "causal_attention")),  # refuses sequences of that length
    ("sum", "cuda_atomic_per_element"),  # refuses that many elements
    ("copy", "torch_eager"),  # no kernel but a copy, which ncu does not see
}
NEW = {("matmul", "cuda_wgmma_parts")}
"""ncu was not asked about these yet."""


def test_ncu_was_asked_about_every_variant_of_the_catalogue() -> None:
    """But those that are published wrong, which have no time; REMEDY for a new one: tests/gpu --part one_click."""
    asked = {op_and_variant(key) for key in _by_ncu()}
    every = {op_and_variant(case.key) for case in cases_for_ncu()}
    assert every - asked - WRONG == LEFT_OUT | NEW


def test_every_op_was_clicked() -> None:
    assert set(FIGURES["one_click_one_size"]) == set(catalogue())


@pytest.mark.parametrize("name", list(catalogue()))
def test_one_click_failed_only_where_it_had_to(name: str) -> None:
    """At one size, and at all of them where they were measured. REMEDY for a new op: tests/gpu --part one_click on a GPU."""
    clicked = [FIGURES[sizes][name] for sizes in ("one_click_one_size", "one_click") if name in FIGURES[sizes]]
    assert [untrue_failures(name, one["failed"]) for one in clicked] == [{}] * len(clicked)


def test_the_document_says_how_many_clicks_failed() -> None:
    clicked = FIGURES["one_click"].values()
    cases, failed = sum(c["cases"] for c in clicked), sum(len(c["failed"]) for c in clicked)
    said = (DOCS / "kernels.md").read_text()
    assert f"Each of the {len(clicked)} ops" in said
    assert f"{cases:,} cases, {failed} of them failures" in said
    assert f"in {median(c['seconds'] for c in clicked):.0f} s, the slowest" in said
    assert f"in {max(c['seconds'] for c in clicked):.0f} s." in said


def test_a_failure_is_true_only_where_a_size_or_the_publication_says_so() -> None:
    assert true_failure(
        "sum", "cuda_atomic_per_element", "unavailable: size n: '33554432' cannot be used; one atomic an …"
    )
    assert not true_failure("sum", "cuda_two_pass", "unavailable: has no bf16 kernel (it has fp32)")
    assert not true_failure("sum", "cuda_two_pass", "wrong: max_abs 3")
    assert true_failure("add", "torch_aligned", "wrong: max_abs 3")
    assert unsolved(["a | x", "b | x", "a | y"], ["a | x", "a | y"]) == {"y"}
