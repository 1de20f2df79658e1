"""The bounds of relu, sigmoid, silu and gelu accept honest arithmetic, and reject what they are there to reject."""

from collections.abc import Callable

import pytest
import torch
from checking import compare, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from kernelviz.ops import op_named

DTYPES = ("fp32", "fp16", "bf16")
KINDS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
NAMES = ("relu", "sigmoid", "silu", "gelu")
SIXTEEN = (-0.9999988, -1.1511536, -0.45888928, -0.053288851, 8.0197575e-3, -7.5515453e-4, 3.1882464e-5)
THIRTY_TWO = (
    -1.0,
    -1.1511058,
    -0.45920488,
    -0.052505132,
    7.0756334e-3,
    -1.4600168e-4,
    -1.8249029e-4,
    3.8608167e-5,
    -2.7709616e-6,
)


def accepted(name: str, x_N: Tensor, y_N: Tensor, dtype: str) -> bool:
    op = op_named(name)
    return compare(op, op.problem({"n": x_N.numel()}, dtype), (x_N,), y_N).passed


def everywhere(dtype: str) -> Tensor:
    """Normal numbers, and every region of the functions: from where they are 0 to where they are x or 1."""
    return torch.cat([torch.randn(20000), torch.linspace(-30.0, 30.0, 60001), torch.linspace(-120.0, 120.0, 4001)]).to(
        KINDS[dtype]
    )


def polynomial_gelu(x_N: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """What cuda_fast_math and triton_block compute, in fp32: max(x, 0) - |x| 2^Q(|x|)."""
    a_N = x_N.float().abs().clamp(max=12.0)
    q_N = torch.full_like(a_N, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        q_N = q_N * a_N + c
    return (x_N.float().relu() - a_N * q_N.exp2()).to(x_N.dtype)


def by_erfc(x_N: Tensor) -> Tensor:
    return (0.5 * x_N.float() * torch.special.erfc(-x_N.float() * 0.5**0.5)).to(x_N.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_honest_gelus_are_accepted(dtype: str) -> None:
    x_N = everywhere(dtype)
    assert accepted("gelu", x_N, functional.gelu(x_N), dtype)
    assert accepted("gelu", x_N, by_erfc(x_N), dtype)
    assert accepted("gelu", x_N, polynomial_gelu(x_N, THIRTY_TWO), dtype)
    if dtype != "fp32":
        assert accepted("gelu", x_N, polynomial_gelu(x_N, SIXTEEN), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_polynomials_of_the_kernels_are_these(dtype: str) -> None:
    """The kernels hold the same digits, in CUDA C++ and in Triton; a slip in one of them would show here first."""
    from kernelviz.ops.activation import cuda
    from kernelviz.ops.kernels.nvrtc import HEADERS

    assert '#include "gelu.cuh"' in cuda.SOURCE.read_text()
    for text in ((HEADERS / "gelu.cuh").read_text(), (HEADERS.parent / "triton_gelu.py").read_text()):
        digits = text.replace("f;", ";")
        for c in SIXTEEN if dtype != "fp32" else THIRTY_TWO:
            assert any(f"{abs(c):{form}}" in digits for form in (".7e", ".8g", ".7g", ".1f")), c


@pytest.mark.parametrize("dtype", DTYPES)
def test_honest_sigmoids_are_accepted(dtype: str) -> None:
    x_N = everywhere(dtype)
    wide_N = x_N.float()
    by_tanh = ((0.5 * wide_N.double()).tanh() * 0.5 + 0.5).to(x_N.dtype)
    by_power = (1 / (1 + (wide_N * -1.4426950408889634).exp2())).to(x_N.dtype)
    assert accepted("sigmoid", x_N, by_power, dtype)
    assert accepted("sigmoid", x_N, x_N.sigmoid(), dtype)
    assert accepted("silu", x_N, (wide_N / (1 + (-wide_N).exp())).to(x_N.dtype), dtype)
    assert accepted("silu", x_N, (wide_N * (1 / (1 + (wide_N * -1.4426950408889634).exp2()))).to(x_N.dtype), dtype)
    # In float64 the cancellation of 1 + tanh leaves nothing below x = -37.
    assert accepted("sigmoid", x_N[x_N > -15], by_tanh[x_N > -15], dtype)


def hard_sigmoid(x_N: Tensor) -> Tensor:
    return functional.hardsigmoid(x_N)


def sigmoid_by_fast_tanh(x_N: Tensor) -> Tensor:
    """One instruction on a GPU (tanh.approx.f32), whose 11 bits are too few for small results."""
    tanh_N = (0.5 * x_N.float()).tanh()
    return (0.5 + 0.5 * (tanh_N * 2**11).round() / 2**11).to(x_N.dtype)


def gelu_by_tanh(x_N: Tensor) -> Tensor:
    return functional.gelu(x_N, approximate="tanh")


def gelu_by_sigmoid(x_N: Tensor) -> Tensor:
    return (x_N.float() * (1.702 * x_N.float()).sigmoid()).to(x_N.dtype)


def relu6(x_N: Tensor) -> Tensor:
    return functional.relu6(x_N * 4) / 4


def without_the_last(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A tail that stays as it was."""

    def run(x_N: Tensor) -> Tensor:
        y_N = function(x_N)
        y_N[-1] = x_N[-1] - 1
        return y_N

    return run


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("sigmoid", hard_sigmoid),
        ("sigmoid", sigmoid_by_fast_tanh),
        ("silu", functional.hardswish),
        ("silu", functional.gelu),
        ("gelu", gelu_by_tanh),
        ("gelu", gelu_by_sigmoid),
        ("gelu", functional.silu),
        ("relu", relu6),
        ("relu", functional.leaky_relu),
        ("gelu", without_the_last(functional.gelu)),
        ("relu", without_the_last(functional.relu)),
    ],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_another_function_is_rejected(name: str, wrong: Callable[[Tensor], Tensor], dtype: str) -> None:
    (x_N,) = inputs_of(op_named(name), op_named(name).problem({"n": 16384}, dtype))
    assert not accepted(name, x_N, wrong(x_N), dtype)


@pytest.mark.parametrize("name", ["sigmoid", "silu", "gelu"])
def test_half_precision_inside_shows_in_fp32(name: str) -> None:
    (x_N,) = inputs_of(op_named(name), op_named(name).problem({"n": 4096}, "fp32"))
    function = {"sigmoid": torch.sigmoid, "silu": functional.silu, "gelu": functional.gelu}[name]
    assert not accepted(name, x_N, function(x_N.half()).float(), "fp32")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_nan_stays_nan_and_infinity_has_its_limit(name: str, dtype: str) -> None:
    op = op_named(name)
    x_N = torch.tensor([float("nan"), float("inf"), 1.0, -0.0], dtype=KINDS[dtype])
    (y_N,) = op.reference(x_N.double())
    assert y_N.isnan().tolist() == [True, False, False, False]
    assert y_N[1] == (1 if name == "sigmoid" else float("inf"))
    got_N = y_N.to(x_N.dtype)
    assert accepted(name, x_N, got_N, dtype)
    for place, wrong in ((0, 0.0), (1, float("nan"))):
        other_N = got_N.clone()
        other_N[place] = wrong
        assert not accepted(name, x_N, other_N, dtype)


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 5000), name=st.sampled_from(NAMES), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 100))
def test_eager_is_within_the_bound_at_any_size(n: int, name: str, dtype: str, seed: int) -> None:
    op = op_named(name)
    problem = op.problem({"n": n}, dtype)
    (x_N,) = inputs_of(op, problem, seed)
    assert compare(op, problem, (x_N,), op.variant_named("torch_eager").bind(x_N)()).passed


@pytest.mark.parametrize("name", NAMES)
def test_bound_and_reference_of_slabs_are_slabs_of_the_whole(name: str) -> None:
    op = op_named(name)
    problem = op.problem({"n": 12}, "fp32")
    (x,) = (t.double() for t in inputs_of(op, problem))
    (whole,) = op.reference(x)
    (bound,) = op.bound(problem, (x,), (whole,))
    for part in (slice(0, 5), slice(5, 12)):
        (piece,) = op.reference(x[part])
        torch.testing.assert_close(piece, whole[part])
        torch.testing.assert_close(op.bound(problem, (x[part],), (piece,))[0], bound[part])
