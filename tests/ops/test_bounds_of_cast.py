"""The reference of the casts is the nearest number of the format, and nothing else passes."""

from collections.abc import Callable

import numpy
import pytest
import torch
from checking import bind, checked, compare, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernelviz.core.dtypes import DTYPES
from kernelviz.measure.session.inputs import as_tuple
from kernelviz.ops import op_named
from kernelviz.ops.cast.reference import rounded

INF, NAN = float("inf"), float("nan")
TARGETS = ("fp16", "bf16", "fp8")


def kind(name: str) -> torch.dtype:
    return getattr(torch, DTYPES[name].torch_name)


def codes(target: str) -> Tensor:
    """Every finite number of a format, ascending, float64; -0 left out."""
    bits = 8 if target == "fp8" else 16
    whole = torch.arange(2**bits, dtype=torch.int32).to(torch.uint8 if bits == 8 else torch.int16)
    values = whole.view(kind(target)).double()
    return torch.unique(values[torch.isfinite(values)])


def patterns(count: int) -> Tensor:
    """fp32 numbers of random bits, finite and not."""
    bits = torch.randint(-(2**31), 2**31, (count,), generator=torch.Generator().manual_seed(0))
    return bits.to(torch.int32).view(torch.float32)


@pytest.mark.parametrize("target", TARGETS)
def test_the_reference_is_the_nearest_number(target: str) -> None:
    """Against the list of all numbers of the format: between two neighbours, at them, halfway, and a little off halfway."""
    numbers = codes(target)
    middles = (numbers[1:] + numbers[:-1]) / 2
    step = middles.abs() * 2.0**-40 + 2.0**-300
    for x, expected in (
        (numbers, numbers),
        (middles - step, numbers[:-1]),
        (middles + step, numbers[1:]),
    ):
        assert torch.equal(rounded(x, target), expected)
    # Halfway: the one whose last bit is 0, which is the one that is an even multiple of their distance.
    gap = numbers[1:] - numbers[:-1]
    even = torch.where(torch.remainder(numbers[1:] / gap, 2) == 0, numbers[1:], numbers[:-1])
    assert torch.equal(rounded(middles, target), even)


@pytest.mark.parametrize("target", TARGETS)
def test_the_reference_of_what_the_format_does_not_hold(target: str) -> None:
    largest = DTYPES[target].largest if target != "bf16" else float(torch.finfo(torch.bfloat16).max)
    beyond = 448.0 if target == "fp8" else INF
    x = torch.tensor([INF, -INF, NAN, -0.0, 1.5 * largest, -3.0 * largest], dtype=torch.float64)
    found = rounded(x, target)
    assert found[[0, 1, 4, 5]].tolist() == [beyond, -beyond, beyond, -beyond]
    assert found[2].isnan()
    assert found[3] == 0
    assert found[3].signbit()


def test_the_reference_is_what_numpy_converts_to() -> None:
    x_N = patterns(2**16)
    with numpy.errstate(over="ignore", invalid="ignore"):
        expected = torch.from_numpy(x_N.numpy().astype(numpy.float16).astype(numpy.float64))
    torch.testing.assert_close(rounded(x_N.double(), "fp16"), expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("target", ["fp16", "bf16"])
@pytest.mark.parametrize(
    "name", ["torch_eager", pytest.param("torch_compile", marks=pytest.mark.xdist_group("inductor"))]
)
def test_torch_converts_every_pattern_like_that(name: str, target: str) -> None:
    op = op_named(f"cast_{target}")
    for x_N in (patterns(2**16), patterns(2**16)[1:]):
        problem = op.problem({"n": x_N.numel()}, "fp32")
        (y_N,) = as_tuple(bind(op.variant_named(name), problem, (x_N,))())
        assert compare(op, problem, (x_N,), y_N.masked_fill(y_N.isnan(), NAN)).passed


def test_torch_converts_to_fp8_like_that_as_far_as_it_goes() -> None:
    """Beyond 464 versions of torch differ: NaN or 448."""
    op = op_named("cast_fp8")
    for dtype in op.dtypes:
        bits = torch.arange(-(2**15), 2**15, dtype=torch.int32)
        x_N = (bits << 16).view(torch.float32)
        x_N = x_N[x_N.abs() <= 464].to(kind(dtype))
        problem = op.problem({"n": x_N.numel()}, dtype)
        assert compare(op, problem, (x_N,), as_tuple(bind(op.variant_named("torch_eager"), problem, (x_N,))())).passed


def cut(x_N: Tensor, target: str) -> Tensor:
    """Towards zero."""
    y_N = rounded(x_N.double(), target)
    lower_N = torch.nextafter(y_N, torch.zeros_like(y_N))
    return torch.where(y_N.abs() > x_N.double().abs(), rounded(lower_N - (y_N - x_N.double()), target), y_N)


def ties_away(x_N: Tensor, target: str) -> Tensor:
    wide_N = x_N.double()
    return rounded(wide_N + wide_N.sign() * wide_N.abs() * 2.0**-30, target)


def flushed(x_N: Tensor, target: str) -> Tensor:
    """Numbers below the smallest normal one to zero."""
    y_N = rounded(x_N.double(), target)
    return torch.where(y_N.abs() < torch.finfo(kind(target)).smallest_normal, 0.0, y_N)


def through_fp16(x_N: Tensor, target: str) -> Tensor:
    """Rounded twice."""
    return rounded(x_N.half().double(), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("other", [cut, ties_away, flushed])
def test_another_rounding_is_rejected(other: Callable[[Tensor, str], Tensor], target: str) -> None:
    op = op_named(f"cast_{target}")
    numbers = codes(target)[1:-1]
    # Numbers of the format, what lies halfway between two, and normal ones.
    x_N = torch.cat([numbers, (numbers[1:] + numbers[:-1]) / 2, torch.randn(1000, dtype=torch.float64)]).float()
    problem = op.problem({"n": x_N.numel()}, "fp32")
    assert compare(op, problem, (x_N,), rounded(x_N.double(), target).to(kind(target))).passed
    assert not compare(op, problem, (x_N,), other(x_N, target).to(kind(target))).passed


@pytest.mark.parametrize("target", ["bf16", "fp8"])
def test_two_roundings_are_rejected(target: str) -> None:
    op = op_named(f"cast_{target}")
    # Halfway between two numbers of the format after a first rounding, above it before.
    x_N = torch.full((8,), 1.0 + DTYPES[target].unit_roundoff + 2.0**-20)
    problem = op.problem({"n": 8}, "fp32")
    assert compare(op, problem, (x_N,), rounded(x_N.double(), target).to(kind(target))).passed
    assert not compare(op, problem, (x_N,), through_fp16(x_N, target).to(kind(target))).passed


@given(n=st.integers(1, 3000), seed=st.integers(0, 2**16), target=st.sampled_from(TARGETS))
@settings(max_examples=20, deadline=None)
def test_eager_is_right_at_any_length(n: int, seed: int, target: str) -> None:
    op = op_named(f"cast_{target}")
    for dtype in op.dtypes:
        accuracy = checked(op, op.variant_named("torch_eager"), op.problem({"n": n}, dtype), seed)
        assert accuracy.passed, accuracy.reasons


@pytest.mark.parametrize("target", TARGETS)
def test_reference_of_slabs_is_slabs_of_the_whole(target: str) -> None:
    op = op_named(f"cast_{target}")
    (x_N,) = (t.double() for t in inputs_of(op, op.problem({"n": 12}, "fp32")))
    (whole,) = op.reference(x_N)
    for part in (slice(0, 5), slice(5, 12)):
        assert torch.equal(op.reference(x_N[part])[0], whole[part])
