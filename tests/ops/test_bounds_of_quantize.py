"""The bounds of the quantising ops accept every rounding to the nearest, and reject other scales and other roundings."""

from collections.abc import Callable

import pytest
import torch
from checking import bind, compare, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernelviz.ops import op_named
from kernelviz.ops.quantize.reference import half_step

DTYPES = ("fp32", "fp16", "bf16")
QUANTIZE = ("quantize_fp8", "quantize_int8")
FP8 = torch.float8_e4m3fn


def test_half_a_step_is_half_the_distance_between_neighbours() -> None:
    """Against every number of the format itself."""
    numbers = torch.arange(0, 127, dtype=torch.uint8).view(FP8).double()  # 0 ... 448
    middle = (numbers[:-1] + numbers[1:]) / 2
    torch.testing.assert_close(half_step(middle, "fp8"), (numbers[1:] - numbers[:-1]) / 2, rtol=0, atol=0)
    torch.testing.assert_close(half_step(-middle, "fp8"), half_step(middle, "fp8"), rtol=0, atol=0)


def scaled(x: Tensor, largest: float) -> tuple[Tensor, Tensor]:
    scale = x.float().abs().amax(-1).clamp(min=1e-12) / largest
    return x.float() / scale[:, None], scale


def by_reciprocal(x: Tensor) -> tuple[Tensor, Tensor]:
    _, scale = scaled(x, 127.0)
    return (x.float() * (1 / scale)[:, None]).round().to(torch.int8), scale


def ties_away(x: Tensor) -> tuple[Tensor, Tensor]:
    value, scale = scaled(x, 127.0)
    return (value.abs() + 0.5).floor().mul(value.sign()).to(torch.int8), scale


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("honest", [by_reciprocal, ties_away])
@pytest.mark.parametrize("data", ["normal", "uniform", "zeros", "small_integers", "one_value"])
def test_any_rounding_to_the_nearest_is_accepted(
    honest: Callable[[Tensor], tuple[Tensor, Tensor]], data: str, dtype: str
) -> None:
    op = op_named("quantize_int8")
    problem = op.problem({"m": 64, "n": 1031}, dtype, data=data)
    for seed in range(3):
        inputs = inputs_of(op, problem, seed)
        assert compare(op, problem, inputs, honest(*inputs)).passed


def cut(x: Tensor) -> tuple[Tensor, Tensor]:
    value, scale = scaled(x, 127.0)
    return value.to(torch.int8), scale


def one_scale_for_all(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = (x.float().abs().amax() / 127).expand(len(x)).contiguous()
    return (x.float() / scale[:, None]).round().to(torch.int8), scale


def up_to_128(x: Tensor) -> tuple[Tensor, Tensor]:
    value, scale = scaled(x, 128.0)
    return value.round().clamp(-128, 127).to(torch.int8), scale


def inverse_scale(x: Tensor) -> tuple[Tensor, Tensor]:
    q, scale = by_reciprocal(x)
    return q, 1 / scale


def coarse_scale(x: Tensor) -> tuple[Tensor, Tensor]:
    _, scale = scaled(x, 127.0)
    coarse = scale.bfloat16().float()
    return (x.float() / coarse[:, None]).round().clamp(-127, 127).to(torch.int8), coarse


def a_row_late(x: Tensor) -> tuple[Tensor, Tensor]:
    q, scale = by_reciprocal(x)
    return q.roll(1, 0), scale


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrong", [cut, one_scale_for_all, up_to_128, inverse_scale, coarse_scale, a_row_late])
def test_other_roundings_and_scales_are_rejected(wrong: Callable[[Tensor], tuple[Tensor, Tensor]], dtype: str) -> None:
    op = op_named("quantize_int8")
    problem = op.problem({"m": 64, "n": 131}, dtype)
    inputs = inputs_of(op, problem)
    assert compare(op, problem, inputs, by_reciprocal(*inputs)).passed
    assert not compare(op, problem, inputs, wrong(*inputs)).passed


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_other_neighbour_in_fp8_is_rejected(dtype: str) -> None:
    op = op_named("quantize_fp8")
    problem = op.problem({"m": 16, "n": 131}, dtype)
    inputs = inputs_of(op, problem)
    inputs[0][:, 0] = 1000.0  # beside which many others are subnormal in fp8
    q, scale = bind(op.variant_named("torch_eager"), problem, inputs)()
    assert compare(op, problem, inputs, (q, scale)).passed
    bits = q.view(torch.uint8).clone()
    at = int((q[0].float().abs() < 400).nonzero()[0])
    bits[0, at] += 1
    assert not compare(op, problem, inputs, (bits.view(FP8), scale)).passed
    flushed = torch.where(q.float().abs() < 2.0**-6, 0.0, q.float()).to(FP8)
    assert (flushed.float() == 0).sum() > (q.float() == 0).sum()
    assert not compare(op, problem, inputs, (flushed, scale)).passed


@pytest.mark.parametrize("dtype", DTYPES)
def test_normalised_rows_may_be_stored_before_they_are_quantised(dtype: str) -> None:
    op = op_named("rmsnorm_quantize_fp8")
    for sizes in ({"m": 3, "n": 7}, {"m": 64, "n": 1031}, {"m": 2, "n": 2**16}):
        problem = op.problem(sizes, dtype)
        for seed in range(3):
            x, w = inputs_of(op, problem, seed)
            y = x.float() * (x.float().square().mean(-1, keepdim=True) + 1e-5).rsqrt() * w.float()
            for rows in (y, y.to(x.dtype)):
                value, scale = scaled(rows, 448.0)
                q = value.clamp(-448, 448).to(FP8)
                assert compare(op, problem, (x, w), (q, scale)).passed
            unweighted, scale = scaled(y / w.float(), 448.0)
            assert not compare(op, problem, (x, w), (unweighted.clamp(-448, 448).to(FP8), scale)).passed


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(QUANTIZE), st.integers(1, 70), st.integers(1, 300), st.sampled_from(DTYPES), st.integers(0, 99))
def test_torch_is_right_on_any_shape(name: str, m: int, n: int, dtype: str, seed: int) -> None:
    op = op_named(name)
    problem = op.problem({"m": m, "n": n}, dtype)
    inputs = inputs_of(op, problem, seed)
    accuracy = compare(op, problem, inputs, bind(op.variant_named("torch_eager"), problem, inputs)())
    assert accuracy.passed, accuracy.reasons
