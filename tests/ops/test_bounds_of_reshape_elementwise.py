"""reshape_elementwise is exact in values and in layout: a view with exchanged strides is no result."""

import pytest
import torch
from checking import bind, compare, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelviz.core.reasons import OutputStrides
from kernelviz.measure.session.inputs import check_specs
from kernelviz.ops import op_named

DTYPES = ("fp32", "fp16", "bf16")


@settings(max_examples=20, deadline=None)
@given(
    m=st.integers(1, 100),
    n=st.integers(1, 100),
    dtype=st.sampled_from(DTYPES),
    name=st.sampled_from(["contiguous_then_op", "torch_eager"]),
)
def test_torch_is_exact_at_any_size(m: int, n: int, dtype: str, name: str) -> None:
    op = op_named("reshape_elementwise")
    problem = op.problem({"m": m, "n": n}, dtype)
    inputs = inputs_of(op, problem, seed=m)
    y_NM = bind(op.variant_named(name), problem, inputs)()
    assert compare(op, problem, inputs, y_NM).passed
    assert torch.equal(y_NM, inputs[0].t().relu())


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_the_transposed_relu_is_rejected(dtype: str) -> None:
    op = op_named("reshape_elementwise")
    problem = op.problem({"m": 37, "n": 41}, dtype)
    (x_MN,) = inputs_of(op, problem)
    right = x_MN.t().relu().contiguous()
    assert compare(op, problem, (x_MN,), right).passed
    nudged = right.clone()
    nudged[40, 36] = torch.nextafter(right[40, 36], torch.tensor(float("inf"), dtype=right.dtype))
    rows_kept = x_MN.relu().view(41, 37)
    without_the_step = x_MN.t().contiguous()
    for wrong in (nudged, rows_kept, without_the_step):
        assert not compare(op, problem, (x_MN,), wrong).passed


def test_a_view_with_the_right_numbers_is_rejected() -> None:
    op = op_named("reshape_elementwise")
    problem = op.problem({"m": 37, "n": 41}, "fp32")
    (x_MN,) = inputs_of(op, problem)
    view = x_MN.relu().t()
    assert torch.equal(view, x_MN.t().relu().contiguous())
    assert check_specs(op, problem, (view,)) == OutputStrides(output="y_NM", strides=(1, 41))


def test_nan_stays_nan() -> None:
    op = op_named("reshape_elementwise")
    problem = op.problem({"m": 3, "n": 2}, "fp32")
    (x_MN,) = inputs_of(op, problem)
    x_MN[2, 1] = float("nan")
    right = x_MN.t().relu().contiguous()
    assert compare(op, problem, (x_MN,), right.masked_fill(right.isnan(), float("nan"))).passed
    assert not compare(op, problem, (x_MN,), right.nan_to_num(nan=0.0)).passed
