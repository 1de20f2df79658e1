"""A strided copy takes the elements it is asked for, bit by bit."""

import pytest
import torch
from checking import bind, checked, compare, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from special_values import patterns

from kernelviz.measure.session.inputs import as_tuple
from kernelviz.ops import op_named

DTYPES = ("fp32", "fp16", "bf16")
INF = float("inf")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name", ["torch_eager", pytest.param("torch_compile", marks=pytest.mark.xdist_group("inductor"))]
)
def test_it_keeps_every_bit(name: str, dtype: str) -> None:
    op = op_named("strided_copy")
    x_NS = patterns(dtype)[:-1].view(-1, 2)
    bits = torch.int32 if x_NS.element_size() == 4 else torch.int16
    (y_N,) = as_tuple(bind(op.variant_named(name), op.problem({"n": len(x_NS), "s": 2}, dtype), (x_NS,))())
    assert torch.equal(y_N.view(bits), x_NS.view(bits)[:, 0])
    assert y_N.data_ptr() != x_NS.data_ptr()


@pytest.mark.parametrize("dtype", DTYPES)
def test_other_elements_are_rejected(dtype: str) -> None:
    op = op_named("strided_copy")
    problem = op.problem({"n": 1031, "s": 5}, dtype)
    (x_NS,) = inputs_of(op, problem)
    right = x_NS[:, 0].clone()
    assert compare(op, problem, (x_NS,), right).passed
    for wrong in (x_NS[:, 1].clone(), x_NS.reshape(-1)[:1031].clone(), right.roll(1)):
        assert not compare(op, problem, (x_NS,), wrong).passed
    right[1030] = torch.nextafter(right[1030], torch.tensor(INF, dtype=right.dtype))
    assert not compare(op, problem, (x_NS,), right).passed


@given(n=st.integers(1, 400), s=st.integers(1, 70), seed=st.integers(0, 2**16), dtype=st.sampled_from(DTYPES))
@settings(max_examples=20, deadline=None)
def test_eager_is_right_at_any_stride(n: int, s: int, seed: int, dtype: str) -> None:
    op = op_named("strided_copy")
    accuracy = checked(op, op.variant_named("torch_eager"), op.problem({"n": n, "s": s}, dtype), seed)
    assert accuracy.passed, accuracy.reasons


def test_reference_of_slabs_is_slabs_of_the_whole() -> None:
    op = op_named("strided_copy")
    (x_NS,) = (t.double() for t in inputs_of(op, op.problem({"n": 12, "s": 3}, "fp32")))
    (whole,) = op.reference(x_NS)
    for part in (slice(0, 5), slice(5, 12)):
        assert torch.equal(op.reference(x_NS[part])[0], whole[part])
