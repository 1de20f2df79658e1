"""The limiter of compute-bound ops: attention as an H200 measured it; convolution, the loss and decoding as planted cases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import planted_limits as plant
import pytest

import kernelviz as kv
from kernelviz.core.result import Kernel
from kernelviz.formats import shipped_runs
from kernelviz.metrics.limiter import HALF, MOSTLY_WORKING, ROOF_SHARE, limiter
from kernelviz.metrics.limiter_evidence import Limiter
from kernelviz.metrics.limiter_facts import case_facts
from kernelviz.metrics.roofline import speed_of_light
from kernelviz.metrics.rows import Row, rows
from kernelviz.ops import op_named
from kernelviz.text.limiter import describe_limiter_reason

DEVICE, ROOFS = plant.machine(plant.MATMUL)
RUNS = Path(__file__).parents[2] / "docs" / "runs"
RECORDED = ("causal-16-heads-4096", "causal-16-heads-4096-d64", "backward-causal-16-heads-1024")
SIZES = {
    "causal_attention": {"b": 4, "s": 4096, "hq": 32, "hk": 8, "d": 128},
    "varlen_attention": {"b": 8, "s": 4096, "u": 1, "hq": 32, "hk": 8, "d": 128},
    "conv2d": {"n": 256, "h": 14, "w": 14, "c": 256, "k": 256, "r": 3, "s": 1},
    "conv_bias_relu": {"n": 256, "h": 28, "w": 28, "c": 128, "k": 128, "r": 3, "s": 1},
    "linear_cross_entropy": {"m": 8192, "h": 4096, "v": 128256},
    "attention_decode": {"b": 16, "l": 8192, "hq": 64, "hk": 8, "d": 128},
    "paged_attention_decode": {"b": 64, "l": 65536, "hq": 64, "hk": 8, "d": 128},
}


def recorded() -> Iterator[tuple[Row, Limiter]]:
    for name in RECORDED:
        run = kv.load(RUNS / f"h200-attention-{name}.kvz")
        roofs = run.environment.roofs
        for row in rows(run, roofs):
            yield row, limiter(row.result, run.environment.device, roofs)


def test_attention_at_half_of_the_matrix_product_is_limited_by_arithmetic_and_never_by_its_occupancy() -> None:
    """27 of these cases were called latency with the advice to raise the occupancy, and 4 backward passes a chain of copies."""
    seen = set()
    for row, found in recorded():
        assert row.efficiency is not None
        reason = str(describe_limiter_reason(found))
        assert found.kind == ("compute" if row.efficiency >= HALF else "unclear"), reason
        assert f"{row.efficiency * 100:.0f} % of the measured matmul bf16" in reason
        if found.kind == "unclear" and row.result.variant != "composite_eager":
            assert "kernels that compute need no higher occupancy" in reason
        seen.add(found.kind)
    assert seen == {"compute", "unclear"}


def test_one_rule_for_compute_and_latency_over_every_recorded_convolution_and_matrix_product() -> None:
    """Persistent kernels of cuDNN start 120 blocks on 132 multiprocessors. Cases of 1.1 ms at 54 % of the roof were called
    latency for that, and beside them grids with as little work for the multiprocessors (196 blocks) were called unclear."""
    seen = set()
    for name in shipped_runs.names():
        run = shipped_runs.load(name)
        device, roofs = run.environment.device, run.environment.roofs
        for row in rows(run, roofs):
            if row.figure is None:
                continue
            facts = case_facts(row.result, row.figure, device, roofs, "cold")
            found = limiter(row.result, device, roofs)
            working = facts.working_fraction
            if not facts.computes or working is None or found.kind == "launch":
                continue
            share, reason = facts.of_time(facts.roofed_s), f"{row.result.case.key}: {describe_limiter_reason(found)}"
            if share >= ROOF_SHARE:
                assert found.kind == "compute", reason
            elif working <= MOSTLY_WORKING:
                assert found.kind == "latency", reason
                assert found.evidence[0].kind in ("few_blocks", "uneven_blocks"), reason
            elif found.evidence and any(e.kind == "too_short" for e in found.evidence):
                assert found.kind == "latency", reason
            else:
                assert found.kind == ("compute" if share >= HALF else "unclear"), reason
            seen.add((row.result.problem.op, found.kind, working < 1))
    assert seen >= {("conv_bias_relu", kind, True) for kind in ("latency", "compute", "unclear")}
    assert ("matmul", "compute", False) in seen


def test_all_variants_of_the_smallest_convolution_have_the_same_limiter() -> None:
    run = shipped_runs.load("h200-fusion-conv_bias_relu")
    kinds: dict[int, set[str]] = {}
    for row in rows(run, run.environment.roofs):
        sizes = row.result.problem.sizes
        if row.figure is not None and sizes["c"] == 64:
            found = limiter(row.result, run.environment.device, run.environment.roofs)
            kinds.setdefault(sizes["n"], set()).add(found.kind)
    assert (kinds[1], kinds[16]) == ({"latency"}, {"unclear"})
    assert kinds[4] == {"latency", "unclear"}, "one variant is between"
    assert kinds[1024] == kinds[2048] == {"compute", "unclear"}, "and never latency with a millisecond of work"


def planted(op_name: str, share: float, kernels: int = 1, registers: int = 168) -> tuple[str, str]:
    """Kind and reason of a case that reaches this share of the roofs, by kernels of low occupancy."""
    op = op_named(op_name)
    problem = op.problem(sizes=SIZES[op_name], dtype="bf16")
    cost = op.cost_of(problem)
    light = speed_of_light(problem, cost, ROOFS)
    assert light is not None
    time_s = light.time_s / share
    launched: tuple[Kernel, ...] = tuple(
        plant.kernel(time_s / kernels, blocks=4096, threads=384, registers=registers) for _ in range(kernels)
    )
    result = msgspec.structs.replace(plant.planted(time_s, cost=cost, kernels=launched), problem=problem)
    found = limiter(result, DEVICE, ROOFS)
    return found.kind, str(describe_limiter_reason(found))


@pytest.mark.parametrize("op", [name for name in SIZES if "decode" not in name])
@pytest.mark.parametrize("share", [0.9, 0.55])
def test_convolution_the_loss_and_attention_are_limited_by_arithmetic(op: str, share: float) -> None:
    kind, reason = planted(op, share)
    assert kind == "compute", reason
    assert f"{share * 100:.0f} % of the measured matmul bf16" in reason


@pytest.mark.parametrize("op", [name for name in SIZES if "decode" in name])
def test_decoding_is_limited_by_reading_its_cache(op: str) -> None:
    """A split and its combine step are two kernels; at 40 % of the roof, a low occupancy is a reason here."""
    for kernels in (1, 2):
        kind, reason = planted(op, 0.93, kernels)
        assert kind == "bandwidth", reason
        assert "93 % of the measured read" in reason
    kind, reason = planted(op, 0.4, registers=255)
    assert kind == "latency", reason
    assert reason.startswith("theoretical occupancy")
