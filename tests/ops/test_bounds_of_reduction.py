"""The bounds of sum, mean and row_sum accept every honest order of additions, and reject what they are there to reject."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from cases import odd_sizes
from checking import bind, compare, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernelviz.ops import op_named

DTYPES = ("fp32", "fp16", "bf16")
LONG = {"n": 2**20}


def one_accumulator(x_N: Tensor) -> Tensor:
    """Term after term in fp32, as atomics of single elements add them."""
    return torch.tensor([np.add.accumulate(x_N.float().numpy(), dtype=np.float32)[-1]])


def backwards(x_N: Tensor) -> Tensor:
    return one_accumulator(x_N.flip(0))


def of_blocks(x_N: Tensor) -> Tensor:
    """Sums of 256 elements each, these added one after the other."""
    parts = [p.sum() for p in x_N.float().split(256)]
    return one_accumulator(torch.stack(parts))


HONEST: tuple[Callable[[Tensor], Tensor], ...] = (one_accumulator, backwards, of_blocks)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [*odd_sizes(op_named("sum")), LONG], ids=str)
def test_honest_sums_are_accepted(sizes: dict[str, int], dtype: str) -> None:
    for name in ("sum", "mean"):
        op = op_named(name)
        problem = op.problem(sizes, dtype)
        for seed in range(3):
            (x_N,) = inputs_of(op, problem, seed)
            # All of one sign and small enough for fp16: partial sums grow as fast as they can.
            for x in (x_N, x_N * 0.01 + 0.05):
                for sum_of in HONEST:
                    total_1 = sum_of(x) / (sizes["n"] if name == "mean" else 1)
                    assert compare(op, problem, (x,), total_1.to(x.dtype)).passed, (name, sum_of.__name__, seed)


def in_half_precision(x_N: Tensor) -> Tensor:
    total_1 = torch.zeros(1, dtype=torch.bfloat16)
    for part in x_N.split(16):
        total_1 += part.float().sum().bfloat16()
    return total_1


def without_the_tail(x_N: Tensor) -> Tensor:
    return x_N[: x_N.numel() // 16 * 16].double().sum(0, keepdim=True)


def first_twice(x_N: Tensor) -> Tensor:
    return x_N.double().sum(0, keepdim=True) + x_N[:1]


@pytest.mark.parametrize("wrong", [in_half_precision, without_the_tail, first_twice])
def test_another_sum_is_rejected(wrong: Callable[[Tensor], Tensor]) -> None:
    op = op_named("sum")
    problem = op.problem({"n": 4099}, "fp32")
    for seed in range(5):
        (x_N,) = inputs_of(op, problem, seed)
        assert not compare(op, problem, (x_N,), wrong(x_N).float()).passed


@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_at_all_is_rejected_however_long_the_vector(dtype: str) -> None:
    """A bound in proportion to Σ|x| √N would accept 0 for the sum of 2^22 numbers of either sign."""
    op = op_named("sum")
    problem = op.problem({"n": 2**22}, dtype)
    (x_N,) = inputs_of(op, problem, seed=1)
    assert not compare(op, problem, (x_N,), torch.zeros(1, dtype=x_N.dtype)).passed


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_mean_over_one_less_shows(dtype: str) -> None:
    op = op_named("mean")
    problem = op.problem({"n": 33}, dtype, data="one_value")
    (x_N,) = inputs_of(op, problem)
    assert compare(op, problem, (x_N,), torch.ones(1, dtype=x_N.dtype)).passed
    assert not compare(op, problem, (x_N,), torch.full((1,), 33 / 32).to(x_N.dtype)).passed


def test_one_accumulator_that_no_longer_grows_is_rejected() -> None:
    """Ones added one by one to bf16 stop at 256, as they do in fp32 at 2^24."""
    op = op_named("sum")
    problem = op.problem({"n": 1023}, "bf16", data="one_value")
    (x_N,) = inputs_of(op, problem)
    total_1 = torch.zeros(1, dtype=torch.bfloat16)
    for x in x_N:
        total_1 += x
    assert total_1.item() == 256
    assert not compare(op, problem, (x_N,), total_1).passed


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_special_values_stay(value: float) -> None:
    op = op_named("sum")
    problem = op.problem({"n": 33}, "fp32")
    (x_N,) = inputs_of(op, problem)
    x_N[7] = value
    assert compare(op, problem, (x_N,), bind(op.variant_named("torch_eager"), problem, (x_N,))()).passed
    assert not compare(op, problem, (x_N,), torch.ones(1)).passed


@settings(max_examples=20, deadline=None)
@given(m=st.integers(1, 9), n=st.integers(1, 3000), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99))
def test_rows_are_sums_of_their_own(m: int, n: int, dtype: str, seed: int) -> None:
    op = op_named("row_sum")
    problem = op.problem({"m": m, "n": n}, dtype)
    (x_MN,) = inputs_of(op, problem, seed)
    y_M = torch.cat([of_blocks(x_N) for x_N in x_MN]).to(x_MN.dtype)
    assert compare(op, problem, (x_MN,), y_M).passed
    if dtype == "fp32" and m > 1:
        assert not compare(op, problem, (x_MN,), y_M.roll(1)).passed


@pytest.mark.parametrize("name", ["row_sum", "argmax", "topk"])
def test_bound_and_reference_of_slabs_are_slabs_of_the_whole(name: str) -> None:
    """The gate computes large references in pieces along the slab axis."""
    op = op_named(name)
    problem = op.problem({"m": 12, "n": 33} | ({"k": 5} if name == "topk" else {}), "fp32")
    (x,) = (t.double() for t in inputs_of(op, problem))
    whole = op.expected(problem, (x,))
    bounds = op.bound(problem, (x,), whole)
    for rows in (slice(0, 5), slice(5, 12)):
        pieces = op.expected(problem, (x[rows],))
        for piece, of_whole in zip(pieces, whole, strict=True):
            torch.testing.assert_close(piece, of_whole[rows])
        for piece, of_whole in zip(op.bound(problem, (x[rows],), pieces), bounds, strict=True):
            torch.testing.assert_close(piece, of_whole[rows])
