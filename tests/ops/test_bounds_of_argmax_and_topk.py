"""argmax and topk: only an index of a correct element passes. NaN is larger than all numbers, and -inf is an ordinary number."""

import pytest
import torch
from cases import odd_sizes
from checking import bind, compare, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernelviz.ops import Op, op_named

DTYPES = ("fp32", "fp16", "bf16")
INF, NAN = float("inf"), float("nan")


def special_rows(n: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Rows with ties, infinities, NaN and zeros of either sign."""
    x_MN = torch.randn((7, n), generator=torch.Generator().manual_seed(n)).to(dtype)
    x_MN[1] = 1.0
    x_MN[2] = -INF
    x_MN[3, n // 2] = NAN
    x_MN[4, n // 3] = INF
    x_MN[5] = -INF
    x_MN[5, n - 1] = -3.0
    x_MN[6] = 0.0
    x_MN[6, ::2] = -0.0
    return x_MN


def argmax_problem(m: int, n: int, dtype: str = "fp32"):
    op = op_named("argmax")
    return op, op.problem({"m": m, "n": n}, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_of_equal_largest_elements_will_do_and_no_other(dtype: str) -> None:
    op, problem = argmax_problem(2, 8, dtype)
    x_MN = torch.tensor([[0, 2, 1, 2, 0, 0, 0, 2], [5, 1, 1, 1, 1, 1, 1, 1]]).to(inputs_of(op, problem)[0].dtype)
    for index in (1, 3, 7):
        assert compare(op, problem, (x_MN,), torch.tensor([index, 0])).passed
    for wrong in ([0, 0], [1, 1], [2, 0]):
        assert not compare(op, problem, (x_MN,), torch.tensor(wrong)).passed


@pytest.mark.parametrize("index", [-1, 8, 2**31, 2**40, -(2**63)])
def test_an_index_outside_the_row_is_wrong_also_where_all_are_equal(index: int) -> None:
    op, problem = argmax_problem(1, 8)
    x_MN = torch.ones((1, 8))
    assert compare(op, problem, (x_MN,), torch.tensor([3])).passed
    assert not compare(op, problem, (x_MN,), torch.tensor([index])).passed


def test_the_largest_of_absolute_values_or_of_the_first_half_is_wrong() -> None:
    op, problem = argmax_problem(16, 131)
    (x_MN,) = inputs_of(op, problem)
    assert not compare(op, problem, (x_MN,), x_MN.abs().argmax(-1)).passed
    assert not compare(op, problem, (x_MN,), x_MN[:, :65].argmax(-1)).passed
    assert not compare(op, problem, (x_MN,), x_MN.argmin(-1)).passed


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [9, 131])
def test_argmax_of_special_rows(n: int, dtype: str) -> None:
    op, problem = argmax_problem(7, n, dtype)
    x_MN = special_rows(n, inputs_of(op, problem)[0].dtype)
    index_M = bind(op.variant_named("torch_eager"), problem, (x_MN,))()
    assert compare(op, problem, (x_MN,), index_M).passed
    assert isinstance(index_M, Tensor)
    index_M[3] = (index_M[3] + 1) % n  # beside the NaN
    assert not compare(op, problem, (x_MN,), index_M).passed


def topk_of(op: Op, dtype: str, m: int, n: int, k: int):
    problem = op.problem({"m": m, "n": n, "k": k}, dtype)
    (x_MN,) = inputs_of(op, problem)
    return problem, x_MN, *x_MN.topk(k)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", odd_sizes(op_named("topk")), ids=str)
def test_an_order_of_equal_elements_is_free(sizes: dict[str, int], dtype: str) -> None:
    op = op_named("topk")
    problem, x_MN, _, _ = topk_of(op, dtype, **sizes)
    # A stable sort prefers the first of equal ones, a reversed one the last.
    order_MN = x_MN.sort(dim=-1, descending=True, stable=True).indices[:, : sizes["k"]]
    from_behind_MN = (
        x_MN.shape[1] - 1 - x_MN.flip(-1).sort(dim=-1, descending=True, stable=True).indices[:, : sizes["k"]]
    )
    for indices_MK in (order_MN.contiguous(), from_behind_MN.contiguous()):
        assert compare(op, problem, (x_MN,), (x_MN.gather(-1, indices_MK), indices_MK)).passed


def test_wrong_selections_are_rejected() -> None:
    op = op_named("topk")
    problem, x_MN, values_MK, indices_MK = topk_of(op, "fp32", 4, 131, 8)
    assert compare(op, problem, (x_MN,), (values_MK, indices_MK)).passed
    of_all = x_MN.sort(-1, descending=True)
    next_MK = torch.cat([indices_MK[:, :-1], of_all.indices[:, 8:9]], -1)
    for indices in (next_MK, indices_MK.flip(-1), indices_MK.roll(1, 0), indices_MK.clone().fill_(131)):
        values = x_MN.gather(-1, indices.clamp(max=130))
        assert not compare(op, problem, (x_MN,), (values, indices)).passed
        assert not compare(op, problem, (x_MN,), (values_MK, indices)).passed
    assert not compare(op, problem, (x_MN,), (values_MK.bfloat16().float(), indices_MK)).passed


def test_one_index_twice_is_wrong_where_all_elements_are_equal() -> None:
    op = op_named("topk")
    problem = op.problem({"m": 1, "n": 8, "k": 3}, "fp32")
    x_MN, values_MK = torch.ones((1, 8)), torch.ones((1, 3))
    assert compare(op, problem, (x_MN,), (values_MK, torch.tensor([[6, 0, 3]]))).passed
    assert not compare(op, problem, (x_MN,), (values_MK, torch.tensor([[6, 0, 6]]))).passed


@pytest.mark.parametrize("name", ["sort_eager", "torch_eager"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_topk_of_special_rows(name: str, dtype: str) -> None:
    op = op_named("topk")
    problem = op.problem({"m": 7, "n": 131, "k": 9}, dtype)
    x_MN = special_rows(131, inputs_of(op, problem)[0].dtype)
    assert compare(op, problem, (x_MN,), bind(op.variant_named(name), problem, (x_MN,))()).passed


@settings(max_examples=20, deadline=None)
@given(
    m=st.integers(1, 5),
    n=st.integers(1, 600),
    share=st.floats(0, 1),
    dtype=st.sampled_from(DTYPES),
    data=st.sampled_from(("normal", "small_integers")),
)
def test_sorting_and_selecting_agree(m: int, n: int, share: float, dtype: str, data: str) -> None:
    op = op_named("topk")
    problem = op.problem({"m": m, "n": n, "k": max(1, int(share * n))}, dtype, data=data)
    inputs = inputs_of(op, problem)
    for name in ("sort_eager", "torch_eager"):
        assert compare(op, problem, inputs, bind(op.variant_named(name), problem, inputs)()).passed, name
