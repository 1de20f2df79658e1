"""The bound of the chains accepts honest arithmetic, and rejects what it is there to reject; fewer bytes, not fewer launches."""

from collections.abc import Callable

import pytest
import torch
from checking import bind, compare, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernelviz.core.problem import Problem
from kernelviz.ops import op_named

DTYPES = ("fp32", "fp16", "bf16")
NAMES = ("pointwise_chain", "pointwise_chain_scalar")
Chain = Callable[[Tensor, Tensor, Tensor], Tensor]


def problem_of(name: str, dtype: str, k: int) -> Problem:
    sizes = {"m": 64, "n": 65, "k": k} if name == "pointwise_chain" else {"n": 4099, "k": k}
    return op_named(name).problem(sizes, dtype)


def in_fp32(x: Tensor, s_K: Tensor, b_K: Tensor) -> Tensor:
    wide = x.float()
    for s, b in zip(s_K.float(), b_K.float(), strict=True):
        wide = (wide * s + b).relu()
    return wide.to(x.dtype)


def rounded_once_a_step(x: Tensor, s_K: Tensor, b_K: Tensor) -> Tensor:
    """As two 16-bit numbers an instruction: product and sum in one, rounded at its end."""
    for s, b in zip(s_K.double(), b_K.double(), strict=True):
        x = (x.double() * s + b).to(x.dtype).relu()
    return x


def eager(x: Tensor, s_K: Tensor, b_K: Tensor) -> Tensor:
    for s, b in zip(s_K, b_K, strict=True):
        x = (x * s + b).relu()
    return x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [1, 2, 8, 32])
def test_honest_chains_are_accepted(k: int, name: str, dtype: str) -> None:
    op, problem = op_named(name), problem_of(name, dtype, k)
    for seed in range(3):
        inputs = inputs_of(op, problem, seed)
        for chain in (in_fp32, rounded_once_a_step, eager):
            found = compare(op, problem, inputs, chain(*inputs))
            assert found.passed, found.reasons


def one_step_less(x: Tensor, s_K: Tensor, b_K: Tensor) -> Tensor:
    return in_fp32(x, s_K[:-1], b_K[:-1])


def first_step_again(x: Tensor, s_K: Tensor, b_K: Tensor) -> Tensor:
    return in_fp32(x, s_K[:1].expand_as(s_K), b_K[:1].expand_as(b_K))


def relu_at_the_end_only(x: Tensor, s_K: Tensor, b_K: Tensor) -> Tensor:
    wide = x.float()
    for s, b in zip(s_K.float(), b_K.float(), strict=True):
        wide = wide * s + b
    return wide.relu().to(x.dtype)


def next_elements_row(x: Tensor, s_K: Tensor, b_K: Tensor) -> Tensor:
    """An index that is off by one."""
    return in_fp32(x, s_K.roll(1, -1), b_K)


def tail_left_out(x: Tensor, s_K: Tensor, b_K: Tensor) -> Tensor:
    y = in_fp32(x, s_K, b_K)
    y.view(-1)[-1] = x.view(-1)[-1] - 1
    return y


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "wrong", [one_step_less, first_step_again, relu_at_the_end_only, next_elements_row, tail_left_out]
)
def test_another_chain_is_rejected(wrong: Chain, name: str, dtype: str) -> None:
    op, problem = op_named(name), problem_of(name, dtype, 3)
    inputs = inputs_of(op, problem, seed=2)
    assert not compare(op, problem, inputs, wrong(*inputs)).passed


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_inside_shows_in_fp32(name: str) -> None:
    op, problem = op_named(name), problem_of(name, "fp32", 2)
    inputs = inputs_of(op, problem, seed=2)
    assert not compare(op, problem, inputs, in_fp32(*(t.half() for t in inputs)).float()).passed


def test_nan_survives_every_relu() -> None:
    op = op_named("pointwise_chain_scalar")
    problem = op.problem({"n": 4, "k": 3}, "fp32")
    x_N, s_K, b_K = inputs_of(op, problem)
    x_N[1] = float("nan")
    y_N = eager(x_N, s_K, b_K)
    assert compare(op, problem, (x_N, s_K, b_K), y_N.masked_fill(y_N.isnan(), float("nan"))).passed
    assert not compare(op, problem, (x_N, s_K, b_K), y_N.nan_to_num(nan=0.0)).passed


@pytest.mark.parametrize("name", NAMES)
def test_without_a_gpu_the_graph_is_the_chain_itself(name: str) -> None:
    op, problem = op_named(name), problem_of(name, "bf16", 2)
    inputs = inputs_of(op, problem)
    eagerly = bind(op.variant_named("torch_eager"), problem, inputs)()
    assert torch.equal(bind(op.variant_named("torch_graph"), problem, inputs)(), eagerly)


@settings(max_examples=20, deadline=None)
@given(
    m=st.integers(1, 30),
    n=st.integers(1, 200),
    k=st.integers(1, 6),
    dtype=st.sampled_from(DTYPES),
    name=st.sampled_from(NAMES),
)
def test_eager_is_within_the_bound_at_any_size(m: int, n: int, k: int, dtype: str, name: str) -> None:
    op = op_named(name)
    drawn = {"m": m, "n": n, "k": k}
    problem = op.problem({axis: drawn[axis] for axis in op.axis_names}, dtype)
    inputs = inputs_of(op, problem, seed=m)
    assert compare(op, problem, inputs, eager(*inputs)).passed


def test_bound_and_reference_of_slabs_are_slabs_of_the_whole() -> None:
    op, problem = op_named("pointwise_chain"), problem_of("pointwise_chain", "fp32", 3)
    x, s, b = (t.double() for t in inputs_of(op, problem))
    (whole,) = op.reference(x, s, b)
    (bound,) = op.bound(problem, (x, s, b), (whole,))
    for rows in (slice(0, 5), slice(5, 64)):
        (piece,) = op.reference(x[rows], s, b)
        torch.testing.assert_close(piece, whole[rows])
        torch.testing.assert_close(op.bound(problem, (x[rows], s, b), (piece,))[0], bound[rows])
