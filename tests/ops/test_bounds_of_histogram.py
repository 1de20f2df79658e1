"""histogram: counts are whole numbers, so one byte in the wrong bin is wrong."""

import pytest
import torch
from checking import bind, compare, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelviz.ops import op_named


@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(1, 5000),
    data=st.sampled_from(("normal", "uniform", "zeros", "small_integers", "one_value")),
    name=st.sampled_from(("torch_eager", "scatter_add_eager")),
    bin_=st.integers(0, 255),
)
def test_a_byte_too_many_or_in_the_next_bin_is_wrong(n: int, data: str, name: str, bin_: int) -> None:
    op = op_named("histogram")
    problem = op.problem({"n": n}, "uint8", data=data)
    inputs = inputs_of(op, problem)
    counts = bind(op.variant_named(name), problem, inputs)()
    assert isinstance(counts, torch.Tensor)
    assert compare(op, problem, inputs, counts).passed
    assert int(counts.sum()) == n
    more = counts.clone()
    more[bin_] += 1
    assert not compare(op, problem, inputs, more).passed
    more[(bin_ + 1) % 256] -= 1
    assert not compare(op, problem, inputs, more).passed


@pytest.mark.parametrize("width", [8, 16])
def test_counters_that_overflow_are_wrong(width: int) -> None:
    op = op_named("histogram")
    problem = op.problem({"n": 2**width + 5}, "uint8", data="one_value")
    inputs = inputs_of(op, problem)
    assert not compare(op, problem, inputs, torch.bincount(inputs[0], minlength=256) % 2**width).passed
