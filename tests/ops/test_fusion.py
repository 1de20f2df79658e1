"""What each op declares about its fusion: variants that exist, steps that add up, and sizes that show the effect."""

from __future__ import annotations

from typing import get_args

import pytest

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.fusion import FusionFamily, unfused_bytes
from kernelviz.ops import Op, catalogue
from kernelviz.ops.catalog.fusion import CACHES, Fusion

OPS = [op for op in catalogue().values() if op.fusion is not None]
EACH = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
L2_BYTES = 60 * 2**20


def fusion_of(op: Op) -> Fusion:
    assert op.fusion is not None
    return op.fusion


def test_all_six_families_have_an_op() -> None:
    assert {fusion_of(op).family for op in OPS} == set(get_args(FusionFamily))


@EACH
def test_the_variants_exist_and_are_either_fused_or_not(op: Op) -> None:
    fusion = fusion_of(op)
    names = {v.name for v in op.variants}
    assert set(fusion.unfused) <= names
    assert set(fusion.fused) <= names
    assert not set(fusion.unfused) & set(fusion.fused)
    assert len(set(fusion.unfused)) == len(fusion.unfused)


@EACH
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_steps_do_the_arithmetic_of_the_op_and_move_more_bytes(op: Op, dtype: str) -> None:
    """One kernel saves bytes and launches, and no arithmetic."""
    if dtype not in op.dtypes:
        pytest.skip(f"no {dtype}")
    fusion, itemsize = fusion_of(op), dtype_named(dtype).itemsize_bytes
    problem = op.problem(fusion.sizes, dtype)
    fused = op.cost_of(problem)
    for composition in fusion.compositions:
        steps = composition.steps(problem.sizes, itemsize)
        assert sum(step.cost.work_flop for step in steps) == fused.work_flop
        saved = unfused_bytes(steps) - fused.moved_bytes
        # Each intermediate tensor is written once, and read at least once.
        assert saved >= 2 * sum(step.result_bytes for step in steps) > 0
        assert steps[-1].result_bytes == 0
        assert steps[0].cost.read_bytes <= fused.read_bytes
        assert steps[-1].cost.written_bytes == fused.written_bytes
        assert all(step.launches >= 1 for step in steps)


@EACH
def test_default_sizes_have_intermediate_tensors_of_four_times_the_cache(op: Op) -> None:
    fusion = fusion_of(op)
    itemsize = dtype_named(fusion.dtype).itemsize_bytes
    sizes = fusion.default_sizes(itemsize, L2_BYTES)
    half = {**sizes, fusion.grows: sizes[fusion.grows] // 2}
    assert fusion.intermediate_bytes(sizes, itemsize) >= CACHES * L2_BYTES
    assert fusion.intermediate_bytes(half, itemsize) < CACHES * L2_BYTES, "not larger than needed"
    assert fusion.default_sizes(itemsize, None) == fusion.sizes
    op.problem(sizes, fusion.dtype)
    op.problem(fusion.cpu_sizes, fusion.cpu_dtype)
    assert op.needed_bytes(op.problem(sizes, fusion.dtype)) < 75 * 10**9, "a GPU of 80 GB can measure it"
    if fusion.work is not None:
        assert fusion.work.axis in op.axis_names
        assert fusion.work.axis != fusion.grows


def test_a_composition_of_one_step_saves_nothing_and_is_none() -> None:
    fusion = fusion_of(catalogue()["pointwise_chain"])
    assert fusion.steps_of("cuda_stepwise", {"m": 8, "n": 8, "k": 1}, 2) is None
    assert fusion.steps_of("cuda_stepwise", {"m": 8, "n": 8, "k": 2}, 2) is not None
    assert fusion.steps_of("cuda_fused", {"m": 8, "n": 8, "k": 2}, 2) is None
