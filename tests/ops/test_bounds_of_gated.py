"""The bounds of swiglu and geglu, both passes, accept honest arithmetic, and reject what they are there to reject."""

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
NAMES = ("swiglu", "geglu")
SIZES = {"m": 64, "n": 257}
Inputs = tuple[Tensor, ...]


def problem_of(name: str, dtype: str, direction: str = "forward"):
    return op_named(name).problem(SIZES, dtype, direction=direction)


def spread(inputs: Inputs, by: float) -> Inputs:
    return ((inputs[0] * by).to(inputs[0].dtype), *inputs[1:])


def logistic(a_MN: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """sigma(w) and dw/da as the kernels compute them, in fp32."""
    if name == "swiglu":
        return a_MN.sigmoid(), torch.ones_like(a_MN)
    square_MN = a_MN * a_MN
    return (a_MN * (1.5957691 + 0.071354816 * square_MN)).sigmoid(), 1.5957691 + 0.21406445 * square_MN


def fused(name: str, a_MN: Tensor, b_MN: Tensor) -> Tensor:
    """In fp32, rounded once."""
    wide_MN = a_MN.float()
    return (wide_MN * logistic(wide_MN, name)[0] * b_MN.float()).to(a_MN.dtype)


def gate_stored(name: str, a_MN: Tensor, b_MN: Tensor) -> Tensor:
    """As Liger: the gate rounded to the output's format before the product."""
    wide_MN = a_MN.float()
    return (wide_MN * logistic(wide_MN, name)[0]).to(a_MN.dtype) * b_MN


def fused_backward(name: str, a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Inputs:
    wide_a, wide_b, wide_dy = a_MN.float(), b_MN.float(), dy_MN.float()
    s_MN, slope_MN = logistic(wide_a, name)
    g_MN = wide_a * s_MN
    da_MN = wide_dy * wide_b * (s_MN + g_MN * (1 - s_MN) * slope_MN)
    return da_MN.to(a_MN.dtype), (wide_dy * g_MN).to(a_MN.dtype)


def products_stored(name: str, a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Inputs:
    """As autograd of two ops: the product dy b and the gate are rounded on the way."""
    wide_a = a_MN.float()
    s_MN, slope_MN = logistic(wide_a, name)
    g_MN = wide_a * s_MN
    dg_MN = s_MN + g_MN * (1 - s_MN) * slope_MN
    return ((dy_MN * b_MN).float() * dg_MN).to(a_MN.dtype), dy_MN * g_MN.to(a_MN.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("by", [1.0, 6.0])
def test_honest_gates_are_accepted(name: str, by: float, dtype: str) -> None:
    op = op_named(name)
    for seed in range(3):
        problem = problem_of(name, dtype)
        inputs = spread(inputs_of(op, problem, seed), by)
        for y_MN in (fused(name, *inputs), gate_stored(name, *inputs), bind(op.variants[0], problem, inputs)()):
            found = compare(op, problem, inputs, y_MN)
            assert found.passed, found.reasons
        problem = problem_of(name, dtype, "backward")
        inputs = spread(inputs_of(op, problem, seed), by)
        eager = bind(op.variant_named("torch_eager"), problem, inputs)()
        for outputs in (fused_backward(name, *inputs), products_stored(name, *inputs), eager):
            found = compare(op, problem, inputs, outputs)
            assert found.passed, found.reasons


def other_gate(name: str, a_MN: Tensor, b_MN: Tensor) -> Tensor:
    return fused({"swiglu": "geglu", "geglu": "swiglu"}[name], a_MN, b_MN)


def gelu_by_erf(name: str, a_MN: Tensor, b_MN: Tensor) -> Tensor:
    return functional.gelu(a_MN) * b_MN


def exchanged(name: str, a_MN: Tensor, b_MN: Tensor) -> Tensor:
    return fused(name, b_MN, a_MN)


def gate_of_eight_bits(name: str, a_MN: Tensor, b_MN: Tensor) -> Tensor:
    s_MN = (logistic(a_MN.float(), name)[0] * 2**8).round() / 2**8
    return (a_MN.float() * s_MN * b_MN.float()).to(a_MN.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrong", [other_gate, gelu_by_erf, exchanged, gate_of_eight_bits])
def test_another_gate_is_rejected(wrong: Callable[[str, Tensor, Tensor], Tensor], name: str, dtype: str) -> None:
    op, problem = op_named(name), problem_of(name, dtype)
    inputs = inputs_of(op, problem)
    assert not compare(op, problem, inputs, wrong(name, *inputs)).passed


def without_the_gates_slope(name: str, a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Inputs:
    s_MN = logistic(a_MN.float(), name)[0]
    return (dy_MN * b_MN * s_MN).to(a_MN.dtype), fused_backward(name, a_MN, b_MN, dy_MN)[1]


def gradients_exchanged(name: str, a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Inputs:
    da_MN, db_MN = fused_backward(name, a_MN, b_MN, dy_MN)
    return db_MN, da_MN


def sign_of_the_slope(name: str, a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Inputs:
    wide_a = a_MN.float()
    s_MN, slope_MN = logistic(wide_a, name)
    dg_MN = s_MN - wide_a * s_MN * (1 - s_MN) * slope_MN
    return (dy_MN * b_MN * dg_MN).to(a_MN.dtype), fused_backward(name, a_MN, b_MN, dy_MN)[1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrong", [without_the_gates_slope, gradients_exchanged, sign_of_the_slope])
def test_another_gradient_is_rejected(wrong: Callable[..., Inputs], name: str, dtype: str) -> None:
    op, problem = op_named(name), problem_of(name, dtype, "backward")
    inputs = inputs_of(op, problem)
    assert not compare(op, problem, inputs, wrong(name, *inputs)).passed


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_of_the_backward_pass_is_autograds(name: str) -> None:
    op, problem = op_named(name), problem_of(name, "fp32", "backward")
    a_MN, b_MN, dy_MN = (t.double() for t in inputs_of(op, problem))
    assert op.backward is not None
    leaves = (a_MN.requires_grad_(), b_MN.requires_grad_())
    expected = torch.autograd.grad(op.reference(*leaves)[0], leaves, dy_MN)
    for got, want in zip(op.backward.reference(a_MN.detach(), b_MN.detach(), dy_MN), expected, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("name", NAMES)
def test_half_precision_inside_shows_in_fp32(name: str, direction: str) -> None:
    op, problem = op_named(name), problem_of(name, "fp32", direction)
    inputs = inputs_of(op, problem)
    halves = tuple(t.half() for t in inputs)
    if direction == "forward":
        assert not compare(op, problem, inputs, fused(name, *halves).float()).passed
    else:
        outputs = tuple(t.float() for t in fused_backward(name, *halves))
        assert not compare(op, problem, inputs, outputs).passed


@settings(max_examples=20, deadline=None)
@given(
    m=st.integers(1, 40),
    n=st.integers(1, 200),
    name=st.sampled_from(NAMES),
    dtype=st.sampled_from(DTYPES),
    direction=st.sampled_from(["forward", "backward"]),
)
def test_eager_is_within_the_bound_at_any_size(m: int, n: int, name: str, dtype: str, direction: str) -> None:
    op = op_named(name)
    problem = op.problem({"m": m, "n": n}, dtype, direction=direction)
    inputs = inputs_of(op, problem, seed=m)
    assert compare(op, problem, inputs, bind(op.variant_named("torch_eager"), problem, inputs)()).passed
