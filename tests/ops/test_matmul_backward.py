"""Backward passes of matrix products and linear layers: the references are gradients, and the bounds reject what is wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from checking import bind, compare, inputs_of
from torch import Tensor

from kernelviz.core.problem import Problem
from kernelviz.ops import Op, op_named, refresh

LINEAR = ("linear_relu", "linear_gelu", "linear_silu")
OPS = ("matmul", *LINEAR)
SIZES = {"m": 67, "n": 72, "k": 129}


def problem_of(op: Op, dtype: str) -> Problem:
    return op.problem(SIZES, dtype, direction="backward")


@pytest.mark.parametrize("name", OPS)
def test_the_reference_is_the_gradient_that_autograd_computes(name: str) -> None:
    op = op_named(name)
    problem = problem_of(op, "fp32")
    inputs = [t.double().requires_grad_() for t in inputs_of(op, problem)]
    (outputs,) = op.reference(*inputs[:-1])
    gradients = torch.autograd.grad(outputs, inputs[:-1], inputs[-1])
    for computed, expected in zip(op.of(problem).reference(*inputs), gradients, strict=True):
        torch.testing.assert_close(computed, expected)


def in_steps(name: str, dtype: torch.dtype) -> Callable[..., tuple[Tensor, ...]]:
    """The backward pass with every intermediate result stored in `dtype`, the products in fp32."""
    derivatives: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "linear_relu": lambda z, g: torch.ops.aten.threshold_backward(g, z, 0),
        "linear_gelu": lambda z, g: torch.ops.aten.gelu_backward(g, z),
        "linear_silu": lambda z, g: torch.ops.aten.silu_backward(g, z),
    }

    def backward(x: Tensor, w: Tensor, b: Tensor, dy: Tensor) -> tuple[Tensor, ...]:
        product = (x.float() @ w.float().t()).to(dtype)
        dz = derivatives[name]((product.float() + b.float()).to(dtype).float(), dy.float()).to(dtype).float()
        return (dz @ w.float()).to(dtype), (dz.t() @ x.float()).to(dtype), dz.sum(0).to(dtype)

    return backward


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize("name", LINEAR)
def test_a_pass_in_single_steps_is_within_the_bound(name: str, dtype: str) -> None:
    op = op_named(name)
    problem = problem_of(op, dtype)
    for seed in range(5):
        inputs = inputs_of(op, problem, seed)
        assert compare(op, problem, inputs, in_steps(name, inputs[0].dtype)(*inputs)).passed


PLANTED: dict[str, Callable[..., tuple[Tensor, ...]]] = {
    "the derivative at z without the bias": lambda right, x, w, b, dy: right(x, w, torch.zeros_like(b), dy),
    "no derivative": lambda right, x, w, b, dy: (
        (dy.float() @ w.float()).to(x.dtype),
        (dy.float().t() @ x.float()).to(x.dtype),
        dy.float().sum(0).to(x.dtype),
    ),
    "a row that is left out of dw and db": lambda right, x, w, b, dy: (
        right(x, w, b, dy)[0],
        *right(x[1:], w, b, dy[1:])[1:],
    ),
    "a column of z that is left out of dx": lambda right, x, w, b, dy: (
        right(x, w[1:], b[1:], dy[:, 1:])[0],
        *right(x, w, b, dy)[1:],
    ),
}


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize("fault", PLANTED)
@pytest.mark.parametrize("name", LINEAR)
def test_a_wrong_pass_is_rejected(name: str, fault: str, dtype: str) -> None:
    op = op_named(name)
    problem = problem_of(op, dtype)
    inputs = inputs_of(op, problem)
    wrong = PLANTED[fault](in_steps(name, inputs[0].dtype), *inputs)
    assert not compare(op, problem, inputs, wrong).passed


@pytest.mark.parametrize("name", ["linear_gelu", "linear_silu"])
def test_a_pass_in_bf16_is_no_pass_in_fp32(name: str) -> None:
    op = op_named(name)
    problem = problem_of(op, "fp32")
    inputs = inputs_of(op, problem)
    narrow = in_steps(name, torch.bfloat16)(*(t.bfloat16() for t in inputs))
    assert not compare(op, problem, inputs, tuple(t.float() for t in narrow)).passed


def test_gradients_of_a_product_in_the_wrong_order_or_with_a_term_too_few_are_rejected() -> None:
    op = op_named("matmul")
    problem = op.problem(dict.fromkeys("mnk", 64), "fp32", direction="backward")
    a, b, dc = inputs = inputs_of(op, problem)
    right = (dc @ b.t(), a.t() @ dc)
    assert compare(op, problem, inputs, right).passed
    for wrong in (right[::-1], (dc @ b, right[1]), (right[0], a @ dc), (dc[:, 1:] @ b[:, 1:].t(), right[1])):
        assert not compare(op, problem, inputs, wrong).passed


@pytest.mark.parametrize("name", OPS)
def test_a_backward_pass_follows_inputs_that_change(name: str) -> None:
    """The forward pass that saves z is run again when the inputs hold other numbers."""
    op = op_named(name)
    problem = problem_of(op, "bf16")
    inputs = inputs_of(op, problem)
    launch = bind(op.variant_named("torch_eager"), problem, inputs)
    for seed in (1, 2):
        for tensor, other in zip(inputs, inputs_of(op, problem, seed), strict=True):
            tensor.copy_(other)
        refresh(launch)
        assert compare(op, problem, inputs, launch()).passed
