"""The bounds of gelu(layernorm) and relu(batchnorm) accept honest arithmetic, and reject what they are there to reject."""

from collections.abc import Callable

import pytest
import torch
from checking import bind, compare, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from kernelviz.ops import op_named

DTYPES = ("fp32", "fp16", "bf16")
EPS = 1e-5


def normalised(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    away = x.float() - x.float().mean(-1, keepdim=True)
    return away * (away.square().mean(-1, keepdim=True) + EPS).rsqrt() * w.float() + b.float()


def fused(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return functional.gelu(normalised(x, w, b)).to(x.dtype)


def stored_between(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return functional.gelu(normalised(x, w, b).to(x.dtype))


def by_polynomial(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """erf by Abramowitz and Stegun 7.1.26, in fp32."""
    z = normalised(x, w, b)
    a = z.abs() * 0.5**0.5
    t = 1 / (1 + 0.3275911 * a)
    series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    erf = (1 - series * torch.exp(-a * a)).copysign(z)
    return (0.5 * z * (1 + erf)).to(x.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "sizes", [{"m": 1, "n": 1}, {"m": 67, "n": 33}, {"m": 16, "n": 1031}, {"m": 2, "n": 2**16}], ids=str
)
@pytest.mark.parametrize("honest", [fused, stored_between, by_polynomial])
def test_honest_ways_are_accepted(
    honest: Callable[[Tensor, Tensor, Tensor], Tensor], sizes: dict[str, int], dtype: str
) -> None:
    op = op_named("norm_activation")
    problem = op.problem(sizes, dtype)
    for seed in range(3):
        inputs = inputs_of(op, problem, seed)
        assert compare(op, problem, inputs, honest(*inputs)).passed, seed


def by_tanh(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return functional.gelu(normalised(x, w, b), approximate="tanh").to(x.dtype)


def gelu_first(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return normalised(functional.gelu(x.float()), w, b).to(x.dtype)


def without_bias(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return fused(x, w, torch.zeros_like(b))


def relu_instead(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return normalised(x, w, b).relu().to(x.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrong", [by_tanh, gelu_first, without_bias, relu_instead])
def test_another_function_is_rejected(wrong: Callable[[Tensor, Tensor, Tensor], Tensor], dtype: str) -> None:
    op = op_named("norm_activation")
    problem = op.problem({"m": 64, "n": 1031}, dtype)
    inputs = inputs_of(op, problem)
    assert compare(op, problem, inputs, fused(*inputs)).passed
    assert not compare(op, problem, inputs, wrong(*inputs)).passed


def batchnorm(x: Tensor, mean: Tensor, variance: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return (x.float() - mean) * (variance.abs() + EPS).rsqrt() * w + b


def folded(x: Tensor, mean: Tensor, variance: Tensor, w: Tensor, b: Tensor) -> Tensor:
    factor = (variance.abs() + EPS).rsqrt() * w
    return x.float() * factor + (b - mean * factor)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [{"m": 1, "n": 1}, {"m": 67, "n": 33}, {"m": 256, "n": 1031}], ids=str)
def test_honest_batchnorms_are_accepted(sizes: dict[str, int], dtype: str) -> None:
    op = op_named("batchnorm_relu")
    problem = op.problem(sizes, dtype)
    for seed in range(3):
        inputs = inputs_of(op, problem, seed)
        kind = inputs[0].dtype
        for z in (batchnorm(*inputs), folded(*inputs), batchnorm(*inputs).to(kind)):
            assert compare(op, problem, inputs, z.relu().to(kind)).passed, seed


@pytest.mark.parametrize("dtype", DTYPES)
def test_other_batchnorms_are_rejected(dtype: str) -> None:
    op = op_named("batchnorm_relu")
    problem = op.problem({"m": 64, "n": 131}, dtype)
    x, mean, variance, w, b = inputs_of(op, problem)
    one = torch.ones_like(w)
    for z in (
        batchnorm(x, mean, variance, w, b).abs(),
        batchnorm(x, mean, variance, w, one * 0),
        batchnorm(x, mean, one, w, b),
        batchnorm(x, mean * 0, variance, w, b),
        batchnorm(x, mean, variance.square(), w, b),
        batchnorm(x, x.float().mean(0), x.float().var(0), w, b),
    ):
        assert not compare(op, problem, (x, mean, variance, w, b), z.relu().to(x.dtype)).passed
    z = batchnorm(x, mean, variance, w, b).to(x.dtype)
    assert compare(op, problem, (x, mean, variance, w, b), z.relu()).passed
    assert not compare(op, problem, (x, mean, variance, w, b), z).passed


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(("norm_activation", "batchnorm_relu")),
    st.integers(1, 70),
    st.integers(1, 300),
    st.sampled_from(DTYPES),
    st.integers(0, 99),
)
def test_torch_is_right_on_any_shape(name: str, m: int, n: int, dtype: str, seed: int) -> None:
    op = op_named(name)
    problem = op.problem({"m": m, "n": n}, dtype)
    inputs = inputs_of(op, problem, seed)
    accuracy = compare(op, problem, inputs, bind(op.variant_named("torch_eager"), problem, inputs)())
    assert accuracy.passed, accuracy.reasons
