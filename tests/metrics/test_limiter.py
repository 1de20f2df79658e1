"""The limiter on planted cases, on every shipped result, and where something is not known."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import get_args

import msgspec
import planted_limits as plant
import pytest
import sample_runs as samples

from kernelviz.core.problem import Cost
from kernelviz.core.result import Conditions, Result
from kernelviz.core.run import Run
from kernelviz.formats import shipped_runs
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.limiter import ROOF_SHARE, EvidenceKind, Limiter, LimiterKind, Missing, MissingKind, limiter
from kernelviz.metrics.roofline import efficiency, intense
from kernelviz.text.limiter import (
    EVIDENCE,
    MEANINGS,
    MISSING,
    describe_evidence,
    describe_limiter_reason,
)

DEVICE, ROOFS = plant.machine()
Shipped = list[tuple[Run, Result, Headline, Limiter]]


def line(found: Limiter) -> str:
    return f"{found.kind}: {describe_limiter_reason(found)}"


def because_of(found: Limiter) -> str:
    return str(describe_limiter_reason(found))


def limit(result: Result, headline: Headline = "cold") -> Limiter:
    return limiter(result, DEVICE, ROOFS, headline)


@pytest.mark.parametrize(
    ("make", "headline", "word", "because"),
    [
        (plant.empty_kernel, "cold", "launch", r"69\d ns is 1\.0 × an empty kernel's 683 ns"),
        (
            plant.strided_copy,
            "cold",
            "bandwidth",
            r"a wave of blocks takes 5\.9 µs for 8 bytes per thread, 9 empty kernels: .*\(inferred\); moves .* in 1\.46 ms: 8 %",
        ),
        (plant.scalar_copy, "warm", "latency", r"a wave of blocks passes in 0?\.?\d+ [nµ]s, .*\(8 per thread\)"),
        (
            plant.naive_matmul,
            "cold",
            "unclear",
            r"4\.10 TFLOP/s: 0\.5 % of the measured matmul bf16.*reads that repeat",
        ),
        (plant.big_copy, "cold", "bandwidth", r"moves 537 MB in 124 µs: 99 % of the measured copy at 537 MB"),
        (plant.l2_sized, "warm", "L2", r"5\.42 TB/s is 1\.20 × what memory delivers.*warm is 0\.71 of cold"),
        (plant.l2_sized, "cold", "bandwidth", r"85 % of the measured read:write 2:1"),
        (plant.fused_chain, "cold", "bandwidth", r"100 % of the measured copy"),
        (
            plant.unfused_chain,
            "cold",
            "bandwidth",
            r"6 kernels pass results through memory: .*\(inferred\).*7 % of 1\.72 ms",
        ),
        (
            plant.short_chain,
            "cold",
            "launch",
            r"9 kernels of at least an empty one's 683 ns and the gaps.* are 55 % of 12\.5 µs",
        ),
        (
            plant.low_occupancy,
            "cold",
            "latency",
            r"theoretical occupancy 6 %: 48 KiB of shared memory per block; moves .* 8 %",
        ),
    ],
)
def test_planted_cases(make: Callable[[], Result], headline: Headline, word: str, because: str) -> None:
    found = limit(make(), headline)
    assert found.kind == word, line(found)
    assert re.search(because, because_of(found)), because_of(found)


@pytest.fixture(scope="module")
def all_shipped() -> Shipped:
    return [
        (run, result, headline, limiter(result, run.environment.device, run.environment.roofs, headline))
        for run in map(shipped_runs.load, shipped_runs.names())
        for result in run.results
        for headline in ("cold", "warm")
    ]


def test_no_shipped_result_is_contradicted(all_shipped: Shipped) -> None:
    """Obvious facts of the H200's runs, each over all cases that it is true of."""
    cold = {(r.problem.op, r.variant, *r.problem.sizes.values()): f.kind for _, r, h, f in all_shipped if h == "cold"}
    variants = shipped_runs.load(plant.ADD).plan.variants
    assert {cold["add", v, 2**12] for v in variants} == {"launch"}
    assert {cold["add", v, 2**28] for v in variants} == {"bandwidth"}
    assert {cold["scale", "torch_eager", 2**n] for n in range(22, 29)} == {"bandwidth"}
    for size in (4096, 8192):
        assert cold["matmul", "torch_eager", size, size, size] == "compute"
        assert cold["matmul", "triton_grouped", size, size, size] == "compute"
    hand_made = {word for (op, v, *_), word in cold.items() if op == "matmul" and v in ("cuda_naive", "cuda_tiled")}
    assert hand_made == {"unclear"}
    assert {word for (op, v, *_), word in cold.items() if v == "composite_eager"} == {"bandwidth"}
    assert "compute" not in {word for (op, *_), word in cold.items() if op != "matmul"}


def test_who_reaches_a_roof_is_limited_by_it_and_who_does_not_is_not(all_shipped: Shipped) -> None:
    seen = set()
    for run, result, headline, found in all_shipped:
        share = efficiency(result, run.environment.roofs, headline=headline)
        if share is None or len(result.kernels) > 2:
            continue
        if share >= ROOF_SHARE:
            expected = {"compute"} if intense(result.cost) else {"bandwidth", "L2"}
            assert found.kind in expected, line(found)
        else:
            assert found.kind in ("launch", "latency", "L2", "unclear"), line(found)
        seen.add(found.kind)
    assert seen == set(get_args(LimiterKind)) == set(MEANINGS)


def test_every_answer_has_numbers_or_names_what_is_missing(all_shipped: Shipped) -> None:
    for _, _, _, found in all_shipped:
        assert found.evidence or found.missing
        assert found.kind == "unclear" or all(re.search(r"\d", str(describe_evidence(e))) for e in found.evidence)
        assert found.kind == "unclear" or not found.missing
        assert "None" not in line(found)
        assert "nan" not in line(found)


def test_a_larger_problem_is_never_launch_limited_again(all_shipped: Shipped) -> None:
    """Along a sweep, the limiters have this order: launching, then latency, then a roof."""
    order = ["launch", "latency", "unclear", "bandwidth"]
    for variant in shipped_runs.load(plant.ADD).plan.variants:
        words = [f.kind for run, r, h, f in all_shipped if run.id == plant.ADD and r.variant == variant and h == "cold"]
        assert words == sorted(words, key=order.index), variant


def test_a_processor_and_a_file_without_figures_are_unclear_with_what_is_missing() -> None:
    problem = samples.problems("add", [{"n": 2**20}], "fp32")[0]
    on_cpu = limiter(samples.timed(problem, "torch_eager", 0.5, device=samples.CPU), samples.CPU, ROOFS)
    assert on_cpu.kind == "unclear"
    assert on_cpu.missing == (Missing("gpu"),)
    bare = plant.planted(1e-3, cost=None)
    found = limiter(bare, DEVICE, ())
    assert (found.kind, found.evidence) == ("unclear", ())
    assert found.missing == (Missing("empty_kernel"), Missing("cost"), Missing("resources"))
    failed = samples.failed(problem, "torch_eager", "wrong")
    assert limit(failed).missing == (Missing("device_time", "cold"),)
    assert limit(plant.big_copy(), "cold").kind == "bandwidth"
    cold_only = plant.planted(1e-3, cost=plant.HALF_GIB, kernels=(plant.kernel(1e-3),))
    assert limit(cold_only, "warm").missing == (Missing("device_time", "warm"),)


def test_without_an_empty_kernel_nothing_is_called_latency() -> None:
    """Few blocks take long, but so does launching them."""
    without = tuple(r for r in ROOFS if r.what != "empty_kernel")
    short = plant.real(plant.ADD, "triton_block", n=4096)
    found = limiter(short, DEVICE, without)
    assert found.kind == "unclear"
    assert found.missing == (Missing("empty_kernel"),)
    assert limiter(plant.big_copy(), DEVICE, without).kind == "bandwidth"


def test_a_chain_of_slow_kernels_is_not_called_bandwidth() -> None:
    """Each takes ten times as long as moving the bytes once: no chain of full-size passes does that."""
    four = tuple(plant.kernel(1.23e-3) for _ in range(4))
    assert limit(plant.planted(4.95e-3, cost=plant.HALF_GIB, kernels=four)).kind == "unclear"
    small = Cost(work_flop=0, read_bytes=2**23, written_bytes=2**23)
    in_l2 = tuple(plant.kernel(8e-6) for _ in range(4))
    assert limit(plant.planted(33e-6, cost=small, kernels=in_l2)).kind == "unclear", "its results may lie in the L2"


def test_the_clock_is_told_where_the_power_cap_held_it() -> None:
    fast = plant.real(plant.MATMUL, "torch_eager", m=2048, n=2048, k=2048)
    capped = msgspec.structs.replace(fast, conditions=Conditions(event_reasons=("power cap",)))
    assert re.search(r"SM clock \d{4} MHz under the power cap", because_of(limit(capped)))
    assert "SM clock" not in because_of(limit(fast))


def test_every_kind_of_fact_has_a_text() -> None:
    assert set(EVIDENCE) == set(get_args(EvidenceKind))
    assert set(MISSING) == set(get_args(MissingKind))
