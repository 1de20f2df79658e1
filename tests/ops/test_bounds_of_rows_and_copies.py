"""The bounds of copy, scale and softmax accept honest arithmetic, and reject what they are there to reject."""

from collections.abc import Callable

import pytest
import torch
from cases import odd_sizes
from checking import bind, compare, inputs_of
from torch import Tensor

from kernelviz.ops import op_named

DTYPES = ("fp32", "fp16", "bf16")
INF = float("inf")


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_copy_may_not_differ_at_all(dtype: str) -> None:
    op = op_named("copy")
    problem = op.problem({"n": 4099}, dtype)
    (x_N,) = inputs_of(op, problem)
    assert compare(op, problem, (x_N,), x_N.clone()).passed
    other_N = x_N.clone()
    other_N[4098] = torch.nextafter(x_N[4098], torch.tensor(INF, dtype=x_N.dtype))
    assert not compare(op, problem, (x_N,), other_N).passed


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_product_is_rounded_once(dtype: str) -> None:
    op = op_named("scale")
    problem = op.problem({"n": 4099}, dtype)
    for seed in range(20):
        (x_N,) = inputs_of(op, problem, seed)
        y_N = (x_N.float() * 0.7).to(x_N.dtype)
        assert compare(op, problem, (x_N,), y_N).passed
        assert not compare(op, problem, (x_N,), torch.nextafter(y_N, torch.full_like(y_N, INF))).passed


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_scalar_in_half_precision_is_rejected(dtype: str) -> None:
    op = op_named("scale")
    problem = op.problem({"n": 4099}, dtype)
    (x_N,) = inputs_of(op, problem)
    # In bf16 itself, a scalar rounded to fp16 is off by a fourteenth of the output's own rounding.
    for kind in (torch.bfloat16,) if dtype == "bf16" else (torch.float16, torch.bfloat16):
        coarse = float(torch.tensor(0.7, dtype=kind))
        assert not compare(op, problem, (x_N,), (x_N.float() * coarse).to(x_N.dtype)).passed


def online(x_MN: Tensor, block: int = 16) -> Tensor:
    """The textbook's running maximum and sum, in fp32."""
    wide_MN = x_MN.float()
    top_M = torch.full(x_MN.shape[:1], -INF)
    total_M = torch.zeros(x_MN.shape[:1])
    for part_MB in torch.split(wide_MN, block, dim=-1):
        now_M = torch.maximum(top_M, part_MB.amax(-1))
        total_M = total_M * (top_M - now_M).exp() + (part_MB - now_M[:, None]).exp().sum(-1)
        top_M = now_M
    return ((wide_MN - top_M[:, None]).exp() / total_M[:, None]).to(x_MN.dtype)


def one_by_one(x_MN: Tensor) -> Tensor:
    """One accumulator in fp32, term after term."""
    e_MN = (x_MN.float() - x_MN.float().amax(-1, keepdim=True)).exp()
    return (e_MN / e_MN.cumsum(-1)[:, -1:]).to(x_MN.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spread", [1.0, 30.0, 3000.0])
@pytest.mark.parametrize(
    "sizes", [*odd_sizes(op_named("softmax"))[:6], {"m": 4, "n": 4096}, {"m": 1, "n": 2**17}], ids=str
)
def test_honest_softmaxes_are_accepted(sizes: dict[str, int], spread: float, dtype: str) -> None:
    """Large logits, too: what an exponent errs by grows with its size. Ascending ones: every block is a new maximum."""
    op = op_named("softmax")
    problem = op.problem(sizes, dtype)
    for seed in range(3):
        (x_MN,) = inputs_of(op, problem, seed)
        for x in (x_MN * spread, (x_MN * spread).sort(-1).values):
            for name in ("composite_eager", "torch_eager"):
                assert compare(op, problem, (x,), bind(op.variant_named(name), problem, (x,))()).passed, (name, seed)
            assert compare(op, problem, (x,), online(x, max(16, sizes["n"] // 64))).passed
            assert compare(op, problem, (x,), one_by_one(x)).passed


def sum_in_half_precision(x_MN: Tensor) -> Tensor:
    e_MN = (x_MN.float() - x_MN.float().amax(-1, keepdim=True)).exp()
    return (e_MN / e_MN.sum(-1, keepdim=True).bfloat16().float()).to(x_MN.dtype)


def power_of_two(x_MN: Tensor) -> Tensor:
    e_MN = (x_MN.float() - x_MN.float().amax(-1, keepdim=True)).exp2()
    return (e_MN / e_MN.sum(-1, keepdim=True)).to(x_MN.dtype)


def without_the_last(x_MN: Tensor) -> Tensor:
    """A tail that the sum forgets."""
    e_MN = (x_MN.float() - x_MN.float().amax(-1, keepdim=True)).exp()
    return (e_MN / e_MN[:, :-1].sum(-1, keepdim=True)).to(x_MN.dtype)


def columns_instead_of_rows(x_MN: Tensor) -> Tensor:
    return x_MN.softmax(0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrong", [sum_in_half_precision, power_of_two, without_the_last, columns_instead_of_rows])
def test_another_function_is_rejected(wrong: Callable[[Tensor], Tensor], dtype: str) -> None:
    op = op_named("softmax")
    problem = op.problem({"m": 64, "n": 131}, dtype)
    (x_MN,) = inputs_of(op, problem)
    assert compare(op, problem, (x_MN,), x_MN.double().softmax(-1).to(x_MN.dtype)).passed
    assert not compare(op, problem, (x_MN,), wrong(x_MN)).passed


def test_powers_of_half_precision_show_in_fp32() -> None:
    op = op_named("softmax")
    problem = op.problem({"m": 16, "n": 1031}, "fp32")
    (x_MN,) = inputs_of(op, problem)
    assert not compare(op, problem, (x_MN,), x_MN.half().softmax(-1).float()).passed


@pytest.mark.parametrize("name", ["copy", "scale", "softmax"])
def test_bound_and_reference_of_slabs_are_slabs_of_the_whole(name: str) -> None:
    """The gate computes large references in pieces along the slab axis."""
    op = op_named(name)
    problem = op.problem(dict.fromkeys(op.axis_names, 12), "fp32")
    (x,) = (t.double() for t in inputs_of(op, problem))
    (whole,) = op.reference(x)
    (bound,) = op.bound(problem, (x,), (whole,))
    for rows in (slice(0, 5), slice(5, 12)):
        (piece,) = op.reference(x[rows])
        torch.testing.assert_close(piece, whole[rows])
        torch.testing.assert_close(op.bound(problem, (x[rows],), (piece,))[0], bound[rows])
