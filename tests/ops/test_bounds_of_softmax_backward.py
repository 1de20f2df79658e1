"""The bound of softmax's backward pass accepts honest arithmetic, and rejects what it is there to reject."""

from collections.abc import Callable

import pytest
import torch
from checking import bind, compare, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernelviz.ops import op_named

DTYPES = ("fp32", "fp16", "bf16")
OP = op_named("softmax")


def honest(x_MN: Tensor, dy_MN: Tensor) -> Tensor:
    """From y as it is stored, sums in fp32."""
    y_MN = x_MN.float().softmax(-1).to(x_MN.dtype).float()
    return (y_MN * (dy_MN.float() - (y_MN * dy_MN.float()).sum(-1, keepdim=True))).to(x_MN.dtype)


def one_by_one(x_MN: Tensor, dy_MN: Tensor) -> Tensor:
    """One accumulator, product after product, each rounded to the inputs' format: Liger's in bf16."""
    y_MN = x_MN.float().softmax(-1).to(x_MN.dtype)
    products_MN = (y_MN * dy_MN).float()
    return (y_MN.float() * (dy_MN.float() - products_MN.cumsum(-1)[:, -1:])).to(x_MN.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spread", [1.0, 30.0, 3000.0])
@pytest.mark.parametrize(
    "sizes", [{"m": 1, "n": 1}, {"m": 67, "n": 33}, {"m": 3, "n": 1031}, {"m": 2, "n": 40000}], ids=str
)
def test_honest_gradients_are_accepted(sizes: dict[str, int], spread: float, dtype: str) -> None:
    problem = OP.problem(sizes, dtype, direction="backward")
    for seed in range(2):
        x_MN, dy_MN = inputs_of(OP, problem, seed)
        x_MN *= spread
        for found in (honest(x_MN, dy_MN), one_by_one(x_MN, dy_MN)):
            assert compare(OP, problem, (x_MN, dy_MN), found).passed
        for name in ("composite_eager", "torch_eager"):
            launch = bind(OP.variant_named(name), problem, (x_MN, dy_MN))
            assert compare(OP, problem, (x_MN, dy_MN), launch()).passed, name


def without_the_mean(x_MN: Tensor, dy_MN: Tensor) -> Tensor:
    return (x_MN.float().softmax(-1) * dy_MN.float()).to(x_MN.dtype)


def plain_mean(x_MN: Tensor, dy_MN: Tensor) -> Tensor:
    return (x_MN.float().softmax(-1) * (dy_MN.float() - dy_MN.float().mean(-1, keepdim=True))).to(x_MN.dtype)


def without_the_last(x_MN: Tensor, dy_MN: Tensor) -> Tensor:
    """A tail that the sum forgets."""
    y_MN = x_MN.float().softmax(-1)
    mean_M1 = (y_MN * dy_MN.float())[:, :-1].sum(-1, keepdim=True)
    return (y_MN * (dy_MN.float() - mean_M1)).to(x_MN.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrong", [without_the_mean, plain_mean, without_the_last])
def test_another_gradient_is_rejected(wrong: Callable[[Tensor, Tensor], Tensor], dtype: str) -> None:
    problem = OP.problem({"m": 64, "n": 131}, dtype, direction="backward")
    x_MN, dy_MN = inputs_of(OP, problem)
    assert compare(OP, problem, (x_MN, dy_MN), honest(x_MN, dy_MN)).passed
    assert not compare(OP, problem, (x_MN, dy_MN), wrong(x_MN, dy_MN)).passed


def test_a_y_of_half_precision_shows_in_fp32() -> None:
    problem = OP.problem({"m": 16, "n": 1031}, "fp32", direction="backward")
    x_MN, dy_MN = inputs_of(OP, problem)
    assert not compare(OP, problem, (x_MN, dy_MN), honest(x_MN.half(), dy_MN.half()).float()).passed


@settings(max_examples=15, deadline=None)
@given(m=st.integers(1, 9), n=st.integers(1, 300), seed=st.integers(0, 99))
def test_the_reference_is_autograds(m: int, n: int, seed: int) -> None:
    problem = OP.problem({"m": m, "n": n}, "fp32", direction="backward")
    x_MN, dy_MN = (t.double() for t in inputs_of(OP, problem, seed))
    leaf_MN = x_MN.clone().requires_grad_()
    leaf_MN.softmax(-1).backward(dy_MN)
    assert leaf_MN.grad is not None
    torch.testing.assert_close(leaf_MN.grad, OP.of(problem).reference(x_MN, dy_MN)[0])
