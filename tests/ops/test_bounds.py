"""The bounds accept honest arithmetic on many seeds, and reject what they are there to reject."""

from collections.abc import Callable

import pytest
import torch
from cases import odd_sizes
from checking import bind, compare, inputs_of
from torch import Tensor

from kernelviz.ops import op_named

FP32 = torch.float32


def to_fraction_bits(x: Tensor, bits: int, *, nearest: bool) -> Tensor:
    """fp32 numbers rounded (half away from zero) or cut to that many fraction bits, by their bit patterns."""
    dropped = 23 - bits
    pattern = x.contiguous().view(torch.int32)
    if nearest:
        pattern = pattern + (1 << (dropped - 1))
    return (pattern & ~((1 << dropped) - 1)).view(FP32)


def matmul_problem(k: int, compute: str | None, dtype: str = "fp32", m: int = 64):
    return op_named("matmul").problem({"m": m, "n": m, "k": k}, dtype, compute=compute)


def product(a: Tensor, b: Tensor) -> Tensor:
    return (a.double() @ b.double()).to(a.dtype)


@pytest.mark.parametrize("k", [4096, 16384])
@pytest.mark.parametrize("nearest", [True, False], ids=["rounded", "cut"])
def test_tf32_is_no_fp32_and_is_tf32(k: int, nearest: bool) -> None:
    op = op_named("matmul")
    asked, allowed = matmul_problem(k, "ieee"), matmul_problem(k, "tf32")
    a, b = inputs_of(op, asked)
    c = product(to_fraction_bits(a, 10, nearest=nearest), to_fraction_bits(b, 10, nearest=nearest))
    assert not compare(op, asked, (a, b), c).passed
    assert compare(op, allowed, (a, b), c).passed


@pytest.mark.parametrize("k", [1, 2, 3, 17])
def test_short_sums_of_tf32_are_within_its_bound(k: int) -> None:
    """With few terms there is no averaging: the bound must hold for the worst of them."""
    op, problem = op_named("matmul"), matmul_problem(k, "tf32", m=256)
    for seed in range(5):
        a, b = inputs_of(op, problem, seed)
        c = product(to_fraction_bits(a, 10, nearest=False), to_fraction_bits(b, 10, nearest=False))
        assert compare(op, problem, (a, b), c).passed


def test_bf16_inputs_are_no_tf32() -> None:
    op, problem = op_named("matmul"), matmul_problem(4096, "tf32", m=256)
    a, b = inputs_of(op, problem)
    assert not compare(op, problem, (a, b), product(a.bfloat16().float(), b.bfloat16().float())).passed


@pytest.mark.parametrize("k", [1, 131, 4096, 16384])
def test_the_plainest_fp32_sum_is_within_the_bound(k: int) -> None:
    """One accumulator, term after term, as cuda_naive adds them."""
    op, problem = op_named("matmul"), matmul_problem(k, "ieee")
    for seed in range(3):
        a, b = inputs_of(op, problem, seed)
        total = torch.zeros((64, 64))
        for i in range(k):
            total += a[:, i : i + 1] * b[i : i + 1, :]
        assert compare(op, problem, (a, b), total).passed


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_a_sum_in_half_precision_is_rejected(dtype: str) -> None:
    op, problem = op_named("matmul"), matmul_problem(1024, None, dtype)
    a, b = inputs_of(op, problem)
    total = torch.zeros((64, 64), dtype=a.dtype)
    for i in range(1024):
        total += a[:, i : i + 1] * b[i : i + 1, :]
    assert not compare(op, problem, (a, b), total).passed


def rmsnorm(x: Tensor, w: Tensor, *, eps: float = 1e-5) -> Tensor:
    """In float64, rounded once: the best answer there is."""
    wide = x.double()
    return (wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt() * w.double()).to(x.dtype)


def stored_before_the_weight(x: Tensor, w: Tensor) -> Tensor:
    """As Hugging Face's Llama does it: two roundings."""
    wide = x.float()
    return (wide * (wide.square().mean(-1, keepdim=True) + 1e-5).rsqrt()).to(x.dtype) * w


def statistics_in_bf16(x: Tensor, w: Tensor) -> Tensor:
    scale = (x.bfloat16().square().mean(-1, keepdim=True).float() + 1e-5).rsqrt()
    return (x.float() * scale * w.float()).to(x.dtype)


def without_eps(x: Tensor, w: Tensor) -> Tensor:
    return rmsnorm(x, w, eps=0.0)


def without_weight(x: Tensor, w: Tensor) -> Tensor:
    return rmsnorm(x, torch.ones_like(w))


def standard_deviation(x: Tensor, w: Tensor) -> Tensor:
    return rmsnorm(x - x.mean(-1, keepdim=True), w)


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize(
    "sizes", [*odd_sizes(op_named("rmsnorm")), {"m": 64, "n": 4096}, {"m": 4, "n": 2**17}], ids=str
)
def test_honest_rmsnorms_are_accepted(sizes: dict[str, int], dtype: str) -> None:
    op = op_named("rmsnorm")
    problem = op.problem(sizes, dtype)
    for seed in range(5):
        inputs = inputs_of(op, problem, seed)
        for name in ("composite_eager", "torch_eager"):
            assert compare(op, problem, inputs, bind(op.variant_named(name), problem, inputs)()).passed, (name, seed)
        assert compare(op, problem, inputs, stored_before_the_weight(*inputs)).passed


@pytest.mark.parametrize("wrong", [without_weight, standard_deviation])
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_another_function_is_rejected(wrong: Callable[[Tensor, Tensor], Tensor], dtype: str) -> None:
    op = op_named("rmsnorm")
    problem = op.problem({"m": 16, "n": 1031}, dtype)
    inputs = inputs_of(op, problem)
    assert compare(op, problem, inputs, rmsnorm(*inputs)).passed
    assert not compare(op, problem, inputs, wrong(*inputs)).passed


@pytest.mark.parametrize("wrong", [statistics_in_bf16, without_eps])
@pytest.mark.parametrize("n", [64, 1031, 8192])
def test_coarse_statistics_and_a_forgotten_eps_show_in_fp32(wrong: Callable[[Tensor, Tensor], Tensor], n: int) -> None:
    op = op_named("rmsnorm")
    problem = op.problem({"m": 64, "n": n}, "fp32")
    inputs = inputs_of(op, problem)
    assert not compare(op, problem, inputs, wrong(*inputs)).passed


def test_a_forgotten_eps_shows_on_zeros_in_every_dtype() -> None:
    op = op_named("rmsnorm")
    for dtype in op.dtypes:
        problem = op.problem({"m": 3, "n": 64}, dtype, data="zeros")
        inputs = inputs_of(op, problem)
        assert compare(op, problem, inputs, rmsnorm(*inputs)).passed
        assert not compare(op, problem, inputs, without_eps(*inputs)).passed


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_a_sum_is_rounded_once(dtype: str) -> None:
    op = op_named("add")
    problem = op.problem({"n": 4099}, dtype)
    for seed in range(20):
        x, y = inputs_of(op, problem, seed)
        assert compare(op, problem, (x, y), x + y).passed
        # The next number beyond the right one is wrong already.
        assert not compare(op, problem, (x, y), torch.nextafter(x + y, torch.full_like(x, float("inf")))).passed


def test_half_precision_inside_is_no_fp32_sum() -> None:
    op = op_named("add")
    problem = op.problem({"n": 1021}, "fp32")
    x, y = inputs_of(op, problem)
    assert not compare(op, problem, (x, y), (x.half() + y.half()).float()).passed


@pytest.mark.parametrize("name", ["add", "rmsnorm", "matmul"])
def test_bound_and_reference_of_slabs_are_slabs_of_the_whole(name: str) -> None:
    """The gate computes large references in pieces along the slab axis."""
    op = op_named(name)
    problem = op.problem(dict.fromkeys(op.axis_names, 12), "fp32")
    inputs = tuple(t.double() for t in inputs_of(op, problem))
    whole = op.reference(*inputs)
    bounds = op.bound(problem, inputs, whole)
    assert op.slab is not None
    for first, last in ((0, 5), (5, 12)):
        cut = tuple(t[first:last] if s.axes[0] == op.slab else t for s, t in zip(op.inputs, inputs, strict=True))
        piece = op.reference(*cut)
        torch.testing.assert_close(piece[0], whole[0][first:last])
        torch.testing.assert_close(op.bound(problem, cut, piece)[0], bounds[0][first:last])
