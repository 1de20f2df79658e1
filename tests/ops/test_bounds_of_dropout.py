"""What the gate of dropout proves: the values, the share that is kept, and that neighbours are drawn for themselves."""

from collections.abc import Callable

import pytest
import torch
from checking import bind, compare, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernelviz.core.result import Accuracy
from kernelviz.ops import op_named
from kernelviz.ops.dropout.reference import P

KINDS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
DTYPES = tuple(KINDS)
N = 2**17 + 5


def judged(y_of: Callable[[Tensor], Tensor], dtype: str = "fp32", n: int = N, seed: int = 0) -> Accuracy:
    op = op_named("dropout")
    problem = op.problem({"n": n}, dtype)
    (x_N,) = inputs_of(op, problem, seed)
    torch.manual_seed(seed)
    return compare(op, problem, (x_N,), y_of(x_N))


def masked(keep_N: Tensor, x_N: Tensor, scale: float = 1 / (1 - P)) -> Tensor:
    return (x_N.float() * scale).to(x_N.dtype).where(keep_N, 0.0)


def honest(x_N: Tensor) -> Tensor:
    return masked(torch.rand(x_N.shape) >= P, x_N)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 7, 63, 65, 1021, N])
def test_an_honest_dropout_is_accepted(n: int, dtype: str) -> None:
    for seed in range(5):
        found = judged(honest, dtype, n, seed)
        assert found.passed, found.reasons
    # As torch on a CPU: 4/3 rounded to the format of the tensor.
    scale = float(torch.tensor(1 / (1 - P), dtype=KINDS[dtype]))
    assert judged(lambda x_N: masked(torch.rand(x_N.shape) >= P, x_N, scale), dtype, n).passed


def another_probability(x_N: Tensor) -> Tensor:
    return masked(torch.rand(x_N.shape) >= 0.23, x_N)


def without_the_scale(x_N: Tensor) -> Tensor:
    return masked(torch.rand(x_N.shape) >= P, x_N, 1.0)


def scale_of_eight_bits(x_N: Tensor) -> Tensor:
    return masked(torch.rand(x_N.shape) >= P, x_N, 1.328125)


def nothing_dropped(x_N: Tensor) -> Tensor:
    return masked(torch.ones(x_N.shape, dtype=torch.bool), x_N)


def everything_dropped(x_N: Tensor) -> Tensor:
    return torch.zeros_like(x_N)


def every_fourth_dropped(x_N: Tensor) -> Tensor:
    """The right share, and no chance in it."""
    return masked(torch.arange(x_N.numel()) % 4 != 0, x_N)


def words_share_a_number(x_N: Tensor) -> Tensor:
    words = torch.rand(-(-x_N.numel() // 8))
    return masked(words.repeat_interleave(8)[: x_N.numel()] >= P, x_N)


def blocks_begin_anew(x_N: Tensor) -> Tensor:
    """A counter without the block's index: all blocks have one mask."""
    return masked(torch.rand(4096).repeat(-(-x_N.numel() // 4096))[: x_N.numel()] >= P, x_N)


def a_part_left_out(x_N: Tensor) -> Tensor:
    y_N = honest(x_N)
    y_N[-4096:] = 0
    return y_N


def a_part_not_dropped(x_N: Tensor) -> Tensor:
    y_N = honest(x_N)
    y_N[:2048] = masked(torch.ones(2048, dtype=torch.bool), x_N[:2048])
    return y_N


def dropped_are_small_numbers(x_N: Tensor) -> Tensor:
    y_N = honest(x_N)
    return y_N.where(y_N != 0, 1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "wrong",
    [
        another_probability,
        without_the_scale,
        nothing_dropped,
        everything_dropped,
        every_fourth_dropped,
        words_share_a_number,
        blocks_begin_anew,
        a_part_left_out,
        a_part_not_dropped,
        dropped_are_small_numbers,
    ],
)
def test_another_mask_or_scale_is_rejected(wrong: Callable[[Tensor], Tensor], dtype: str) -> None:
    assert not judged(wrong, dtype).passed


@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_a_scale_of_eight_bits_is_rejected(dtype: str) -> None:
    assert not judged(scale_of_eight_bits, dtype).passed


@pytest.mark.parametrize("data", ["zeros", "one_value", "small_integers"])
@pytest.mark.parametrize("name", ["composite_eager", "torch_eager", "torch_saved_mask"])
def test_inputs_of_zeros_prove_nothing_and_disturb_nothing(name: str, data: str) -> None:
    op = op_named("dropout")
    problem = op.problem({"n": 4099}, "fp16", data=data)
    inputs = inputs_of(op, problem)
    found = compare(op, problem, inputs, bind(op.variant_named(name), problem, inputs)())
    assert found.passed, found.reasons
    if data != "zeros":
        assert not compare(op, problem, inputs, torch.zeros_like(inputs[0])).passed


@pytest.mark.parametrize("name", ["composite_eager", "torch_eager", "torch_saved_mask"])
def test_two_calls_drop_different_elements(name: str) -> None:
    op = op_named("dropout")
    problem = op.problem({"n": 4099}, "fp32")
    inputs = inputs_of(op, problem)
    launch = bind(op.variant_named(name), problem, inputs)
    first = launch()
    first = first.clone() if isinstance(first, Tensor) else first[0].clone()
    assert not torch.equal(first, launch())


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 5000), seed=st.integers(0, 1000), dtype=st.sampled_from(DTYPES))
def test_chance_alone_is_never_found_wrong(n: int, seed: int, dtype: str) -> None:
    found = judged(honest, dtype, n, seed)
    assert found.passed, found.reasons
