"""Every variant that runs on a CPU, every dtype, odd sizes; and what every variant does with inputs that are not contiguous."""

import pytest
import torch
from cases import odd_sizes, precisions, problems, variants
from checking import bind, checked, compare, inputs_of

from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.ops import Op, Variant, op_named

HERE = [
    pytest.param(op, v, p, id=f"{v.name}-{p.key}")
    for op, v in variants("torch")
    for p in problems(op, v)
    if p.compute != "tf32"
]
COMPILED = [
    pytest.param(
        op, v, op.problem(sizes, dtype), id=f"{op.name}-{dtype}-{i}", marks=pytest.mark.xdist_group("inductor")
    )
    for op, v in variants("inductor")
    for dtype in op.dtypes
    for i, sizes in enumerate(odd_sizes(op)[-2:])
]


@pytest.mark.parametrize(("op", "variant", "problem"), [*HERE, *COMPILED])
def test_agrees_with_the_reference(op: Op, variant: Variant, problem: Problem) -> None:
    accuracy = checked(op, variant, problem)
    assert accuracy.passed, accuracy.message
    assert accuracy.unwritten == 0


@pytest.mark.parametrize("data", ["uniform", "zeros", "small_integers", "one_value"])
@pytest.mark.parametrize(("op", "variant"), variants("torch"), ids=lambda x: x.name)
def test_agrees_on_other_data(op: Op, variant: Variant, data: str) -> None:
    for dtype in op.dtypes:
        problem = op.problem(odd_sizes(op)[-1], dtype, data=data)
        accuracy = checked(op, variant, problem)
        assert accuracy.passed, (dtype, accuracy.message)


def not_contiguous(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers, every second element of memory, or column by column."""
    if tensor.dim() == 1:
        wide = torch.empty(2 * tensor.numel(), dtype=tensor.dtype)[::2]
    else:
        wide = torch.empty(tuple(reversed(tensor.shape)), dtype=tensor.dtype).t()
    wide.copy_(tensor)
    assert not wide.is_contiguous()
    return wide


@pytest.mark.parametrize(("op", "variant"), variants(), ids=lambda x: x.name)
def test_inputs_that_are_not_contiguous_are_understood_or_refused(op: Op, variant: Variant) -> None:
    """torch reads strides; our own kernels index memory themselves, and their bind says which input it cannot take."""
    dtype, compute = next(iter(precisions(op, variant)))
    problem = op.problem(dict.fromkeys(op.axis_names, 37), dtype, compute=compute)
    plain = inputs_of(op, problem)
    for position, spec in enumerate(op.inputs):
        inputs = tuple(not_contiguous(t) if i == position else t for i, t in enumerate(plain))
        if variant.backend in ("triton", "cuda"):
            with pytest.raises(BadField, match=rf"input {spec.name}: .*strides .*contiguous"):
                bind(variant, problem, inputs)
        else:
            accuracy = compare(op, problem, plain, bind(variant, problem, inputs)())
            assert accuracy.passed, accuracy.message


def test_a_launch_reads_the_inputs_as_they_are_when_it_is_called() -> None:
    for op, variant in variants("torch", "inductor"):
        problem = op.problem(dict.fromkeys(op.axis_names, 16), "fp32")
        inputs = inputs_of(op, problem)
        launch = bind(variant, problem, inputs)
        launch()
        for tensor, other in zip(inputs, inputs_of(op, problem, seed=1), strict=True):
            tensor.copy_(other)
        assert compare(op, problem, inputs, launch()).passed, variant.name


def test_tf32_is_refused_on_a_cpu() -> None:
    op = op_named("matmul")
    problem = op.problem({"m": 2, "n": 2, "k": 2}, "fp32", compute="tf32")
    with pytest.raises(BadField, match=r"tf32.*choose ieee"):
        bind(op.variant_named("torch_eager"), problem, inputs_of(op, problem))
