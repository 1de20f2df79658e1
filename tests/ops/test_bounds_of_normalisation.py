"""The bounds of layernorm, add_rmsnorm and of the backward passes accept honest arithmetic, and reject what they are there for.

Those of rmsnorm's forward pass are in test_bounds.
"""

from collections.abc import Callable

import pytest
import torch
from checking import bind, compare, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernelviz.ops import op_named

DTYPES = ("fp32", "fp16", "bf16")
EPS = 1e-5
OPS = ("rmsnorm", "layernorm", "add_rmsnorm")
SIZES = ({"m": 1, "n": 1}, {"m": 3, "n": 7}, {"m": 67, "n": 33}, {"m": 16, "n": 1031}, {"m": 2, "n": 2**17})


def two_passes(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    away = x.float() - x.float().mean(-1, keepdim=True)
    return (away * (away.square().mean(-1, keepdim=True) + EPS).rsqrt() * w.float() + b.float()).to(x.dtype)


def welford(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """One accumulator in fp32, element after element, as torch's kernels have one a thread."""
    mean, squares = torch.zeros(len(x)), torch.zeros(len(x))
    for i, column in enumerate(x.float().unbind(-1)):
        away = column - mean
        mean = mean + away / (i + 1)
        squares = squares + away * (column - mean)
    scale = (squares / x.shape[-1] + EPS).rsqrt()
    return ((x.float() - mean[:, None]) * scale[:, None] * w.float() + b.float()).to(x.dtype)


def mean_of_squares(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """E[x²] - μ² in fp32: right where the mean is small against the deviation."""
    wide = x.float()
    mean = wide.mean(-1, keepdim=True)
    scale = (wide.square().mean(-1, keepdim=True) - mean.square() + EPS).rsqrt()
    return (wide * (scale * w.float()) + (b.float() - mean * scale * w.float())).to(x.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES[:-1], ids=str)
@pytest.mark.parametrize("variance", [two_passes, welford, mean_of_squares])
def test_honest_layernorms_are_accepted(
    variance: Callable[[Tensor, Tensor, Tensor], Tensor], sizes: dict[str, int], dtype: str
) -> None:
    op = op_named("layernorm")
    problem = op.problem(sizes, dtype)
    for seed in range(5):
        inputs = inputs_of(op, problem, seed)
        assert compare(op, problem, inputs, variance(*inputs)).passed, seed


@pytest.mark.parametrize("level", [0.0, 10.0, 1000.0])
def test_layernorms_of_rows_far_from_zero(level: float) -> None:
    """x - μ stays right where the mean is a thousand deviations; so do torch's own kernels."""
    op = op_named("layernorm")
    problem = op.problem({"m": 16, "n": 1031}, "fp32")
    x, w, b = inputs_of(op, problem)
    x = x + level
    assert compare(op, problem, (x, w, b), two_passes(x, w, b)).passed
    assert compare(op, problem, (x, w, b), welford(x, w, b)).passed
    assert compare(op, problem, (x, w, b), bind(op.variant_named("torch_eager"), problem, (x, w, b))()).passed


def without_bias(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return two_passes(x, w, torch.zeros_like(b))


def weight_and_bias_swapped(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return two_passes(x, b, w)


def not_centred(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    wide = x.float()
    scale = (wide.square().mean(-1, keepdim=True) + EPS).rsqrt()
    return (wide * scale * w.float() + b.float()).to(x.dtype)


def unbiased(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """N - 1 instead of N: half a thousandth at N = 1031, which shows in fp32 and fp16."""
    n = x.shape[-1]
    away = x.float() - x.float().mean(-1, keepdim=True)
    scale = (away.square().sum(-1, keepdim=True) / (n - 1) + EPS).rsqrt()
    return (away * scale * w.float() + b.float()).to(x.dtype)


def without_the_last(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """A tail that the statistics forget."""
    wide = x.float()
    away = wide - wide[:, :-1].mean(-1, keepdim=True)
    return (away * (away[:, :-1].square().mean(-1, keepdim=True) + EPS).rsqrt() * w.float() + b.float()).to(x.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrong", [without_bias, weight_and_bias_swapped, not_centred, without_the_last])
def test_another_function_is_no_layernorm(wrong: Callable[[Tensor, Tensor, Tensor], Tensor], dtype: str) -> None:
    op = op_named("layernorm")
    problem = op.problem({"m": 64, "n": 131}, dtype)
    inputs = inputs_of(op, problem)
    assert compare(op, problem, inputs, two_passes(*inputs)).passed
    assert not compare(op, problem, inputs, wrong(*inputs)).passed


def test_finer_faults_of_a_layernorm_show_in_fp32() -> None:
    op = op_named("layernorm")
    problem = op.problem({"m": 64, "n": 1031}, "fp32")
    x, w, b = inputs_of(op, problem)
    assert not compare(op, problem, (x, w, b), unbiased(x, w, b)).passed
    assert not compare(op, problem, (x, w, b), two_passes(x.half(), w, b).float()).passed
    away = x - x.mean(-1, keepdim=True)
    without_eps = away * away.square().mean(-1, keepdim=True).rsqrt() * w + b
    assert not compare(op, problem, (x, w, b), without_eps).passed
    # A thousand deviations from zero, E[x²] - μ² has lost the variance.
    far = x + 3000
    assert not compare(op, problem, (far, w, b), (far - far.mean(-1, keepdim=True)).sign() * w + b).passed


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_forgotten_eps_shows_on_constant_rows(dtype: str) -> None:
    op = op_named("layernorm")
    problem = op.problem({"m": 3, "n": 64}, dtype, data="one_value")
    x, w, b = inputs_of(op, problem)
    assert compare(op, problem, (x, w, b), two_passes(x, w, b)).passed
    away = x - x.mean(-1, keepdim=True)
    assert not compare(op, problem, (x, w, b), away * away.square().mean(-1, keepdim=True).rsqrt() * w + b).passed


def rms(s: Tensor, w: Tensor) -> Tensor:
    return s.float() * (s.float().square().mean(-1, keepdim=True) + EPS).rsqrt() * w.float()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_the_sum_may_be_rounded_before_or_after_it_is_normalised(sizes: dict[str, int], dtype: str) -> None:
    op = op_named("add_rmsnorm")
    problem = op.problem(sizes, dtype)
    for seed in range(5):
        x, r, w = inputs_of(op, problem, seed)
        s = x + r
        assert compare(op, problem, (x, r, w), (s, rms(s, w).to(s.dtype))).passed, seed
        assert compare(op, problem, (x, r, w), (s, rms(x.float() + r.float(), w).to(s.dtype))).passed, seed
        llama = rms(s, torch.ones_like(w)).to(s.dtype) * w
        assert compare(op, problem, (x, r, w), (s, llama)).passed, seed


@pytest.mark.parametrize("dtype", DTYPES)
def test_both_outputs_of_add_rmsnorm_are_compared(dtype: str) -> None:
    op = op_named("add_rmsnorm")
    problem = op.problem({"m": 16, "n": 131}, dtype)
    x, r, w = inputs_of(op, problem)
    s = x + r
    y = rms(s, w).to(s.dtype)
    for wrong in (
        (x, y),
        (y, s),
        (s, rms(x, w).to(s.dtype)),
        (torch.nextafter(s, s.new_full((), 9e9)), y),
        (s, y * 1.03),
    ):
        assert not compare(op, problem, (x, r, w), wrong).passed


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_gradients_of_torch_are_accepted(name: str, sizes: dict[str, int], dtype: str) -> None:
    op = op_named(name)
    problem = op.problem(sizes, dtype, direction="backward")
    for seed in range(3):
        inputs = inputs_of(op, problem, seed)
        for variant in ("composite_eager", "torch_eager"):
            outputs = bind(op.variant_named(variant), problem, inputs)()
            assert compare(op, problem, inputs, outputs).passed, (variant, seed)


def rmsnorm_gradients(x: Tensor, w: Tensor, dy: Tensor, *, rounded: bool) -> tuple[Tensor, Tensor]:
    """In fp32, or as Liger does it in Llama's casting: g and x̂ stored in the format of x."""
    scale = (x.float().square().mean(-1, keepdim=True) + EPS).rsqrt()
    hat, g = x.float() * scale, dy.float() * w.float()
    if rounded:
        g, hat_stored = (dy * w).float(), hat.to(x.dtype)
        dw = (dy * hat_stored).float().sum(0)
    else:
        dw = (dy.float() * hat).sum(0)
    dx = scale * (g - hat * (g * hat).mean(-1, keepdim=True))
    return dx.to(x.dtype), dw.to(x.dtype)


@pytest.mark.parametrize("rounded", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [*SIZES, {"m": 4096, "n": 33}], ids=str)
def test_stored_products_are_accepted(sizes: dict[str, int], dtype: str, rounded: bool) -> None:
    op = op_named("rmsnorm")
    problem = op.problem(sizes, dtype, direction="backward")
    for seed in range(3):
        inputs = inputs_of(op, problem, seed)
        assert compare(op, problem, inputs, rmsnorm_gradients(*inputs, rounded=rounded)).passed, seed


@pytest.mark.parametrize("dtype", DTYPES)
def test_wrong_gradients_are_rejected(dtype: str) -> None:
    op = op_named("rmsnorm")
    problem = op.problem({"m": 512, "n": 131}, dtype, direction="backward")
    x, w, dy = inputs_of(op, problem)
    dx, dw = rmsnorm_gradients(x, w, dy, rounded=False)
    scale = (x.float().square().mean(-1, keepdim=True) + EPS).rsqrt()
    without_projection = (scale * dy.float() * w.float()).to(x.dtype)
    without_scale = (dy.float() * x.float()).sum(0).to(x.dtype)
    in_half = torch.zeros_like(w)
    for term in (dy.float() * x.float() * scale).bfloat16().to(x.dtype).unbind(0):
        in_half += term
    last_row_forgotten = rmsnorm_gradients(x[:-1], w, dy[:-1], rounded=False)[1]
    assert compare(op, problem, (x, w, dy), (dx, dw)).passed
    for wrong in ((without_projection, dw), (dx, without_scale), (dx, in_half), (dx, last_row_forgotten), (-dx, dw)):
        assert not compare(op, problem, (x, w, dy), wrong).passed


def test_the_gradient_of_the_stored_sum_is_part_of_it() -> None:
    op = op_named("add_rmsnorm")
    problem = op.problem({"m": 64, "n": 131}, "bf16", direction="backward")
    x, r, w, ds, dy = inputs_of(op, problem)
    dx, dw = bind(op.variant_named("composite_eager"), problem, (x, r, w, ds, dy))()
    assert compare(op, problem, (x, r, w, ds, dy), (dx, dw)).passed
    assert not compare(op, problem, (x, r, w, ds, dy), (dx - ds, dw)).passed


@pytest.mark.parametrize("name", ["layernorm", "add_rmsnorm"])
def test_bound_and_reference_of_slabs_are_slabs_of_the_whole(name: str) -> None:
    """The gate computes large references in pieces along the slab axis."""
    op = op_named(name)
    problem = op.problem({"m": 12, "n": 12}, "bf16")
    inputs = tuple(t.double() for t in inputs_of(op, problem))
    whole = op.reference(*inputs)
    bounds = op.bound(problem, inputs, whole)
    for rows in (slice(0, 5), slice(5, 12)):
        cut = tuple(t[rows] if s.axes[0] == "m" else t for s, t in zip(op.inputs, inputs, strict=True))
        pieces = op.reference(*cut)
        for piece, all_of_it in zip(pieces, whole, strict=True):
            torch.testing.assert_close(piece, all_of_it[rows])
        for piece, all_of_it in zip(op.bound(problem, cut, pieces), bounds, strict=True):
            torch.testing.assert_close(piece, all_of_it[rows])


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(OPS), st.integers(1, 70), st.integers(1, 300), st.sampled_from(DTYPES), st.integers(0, 99))
def test_torch_is_right_on_any_shape(name: str, m: int, n: int, dtype: str, seed: int) -> None:
    op = op_named(name)
    for direction in op.directions:
        problem = op.problem({"m": m, "n": n}, dtype, direction=direction)
        inputs = inputs_of(op, problem, seed)
        accuracy = compare(op, problem, inputs, bind(op.variant_named("torch_eager"), problem, inputs)())
        assert accuracy.passed, accuracy.reasons
