"""Every variant that runs on a CPU, every dtype, odd sizes; and what every variant does with inputs that are not contiguous."""

import msgspec
import pytest
import torch
from cases import WRONG, odd_sizes, problems, same_sizes, variants, ways
from checking import bind, checked, compare, inputs_of, reasons_of

from kernelviz.core.backends import BACKENDS
from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.measure.session.inputs import as_tuple
from kernelviz.ops import Op, Variant, op_named

HONEST = [(op, v) for op, v in variants("torch") if (op.name, v.name) not in WRONG and "cuda" not in v.needs]
HERE = [
    pytest.param(op, v, p, id=f"{v.name}-{p.key}") for op, v in HONEST for p in problems(op, v) if p.compute != "tf32"
]
INDUCTOR = list({op.family: (op, v) for op, v in variants("inductor")}.values())
"""One op a family, as compiling takes seconds; all are compiled and checked on a GPU (docs/gpu-report.json)."""
COMPILED = [
    pytest.param(op, v, way.problem(op, sizes), id=f"{op.name}-{way}-{i}", marks=pytest.mark.xdist_group("inductor"))
    for op, v in INDUCTOR
    for way in {w.direction: w for w in ways(op, v) if w.compute != "tf32"}.values()
    for i, sizes in enumerate(odd_sizes(op)[-1:])
]


@pytest.mark.parametrize(("op", "variant", "problem"), [*HERE, *COMPILED])
def test_agrees_with_the_reference(op: Op, variant: Variant, problem: Problem) -> None:
    accuracy = checked(op, variant, problem)
    assert accuracy.passed, accuracy.reasons
    assert accuracy.unwritten == 0


@pytest.mark.parametrize("data", ["uniform", "zeros", "small_integers", "one_value", "outliers"])
@pytest.mark.parametrize(("op", "variant"), HONEST, ids=lambda x: x.name)
def test_agrees_on_other_data(op: Op, variant: Variant, data: str) -> None:
    for way in ways(op, variant):
        if way.compute == "tf32":
            continue
        problem = msgspec.structs.replace(way.problem(op, odd_sizes(op)[-1]), data=data)
        accuracy = checked(op, variant, problem)
        assert accuracy.passed, (str(way), reasons_of(accuracy))


REFUSES_STRIDES = {
    ("grouped_matmul", "torch_grouped_mm"),
    ("block_scaled_matmul", "torch_scaled_mm"),
    *((op, f"sdpa_{library}") for op in ("attention", "causal_attention") for library in ("flash", "cudnn")),
    ("varlen_attention", "torch_varlen"),
    ("conv2d", "torch_cudnn_search"),
    ("conv_bias_relu", "torch_cudnn_fused"),
    ("conv_bias_relu", "torch_cudnn_stepwise"),
}
"""Variants that call an operator of torch which does not take every stride."""
OF_THE_SECOND_KERNEL: dict[tuple[str, str, str], tuple[type[Exception], str]] = {
    ("conv_bias_relu", "cuda_stepwise", "b_K"): (BadField, "size c: .*multiple of 8"),
    ("conv_bias_relu", "torch_cudnn_stepwise", "b_K"): (NotImplementedError, "cudnn_convolution"),
}
"""Inputs that a second kernel gets only once the first has taken the problem, and why the first does not take it here: 37
channels, and a processor."""


def not_contiguous(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers, every second element of memory, or column by column."""
    if tensor.dim() == 1 or max(tensor.shape) == tensor.numel():  # a single row or column is contiguous in either order
        wide = torch.empty((*tensor.shape[:-1], 2 * tensor.shape[-1]), dtype=tensor.dtype)[..., ::2]
    else:
        wide = torch.empty(tuple(reversed(tensor.shape)), dtype=tensor.dtype).permute(*reversed(range(tensor.dim())))
    if wide.is_contiguous():  # one row, whose columns follow each other either way
        wide = torch.empty((*tensor.shape, 2), dtype=tensor.dtype)[..., 0]
    wide.copy_(tensor)
    assert not wide.is_contiguous()
    return wide


@pytest.mark.parametrize(
    ("op", "variant"),
    [
        *((o, v) for o, v in variants() if (o.name, v.name) not in WRONG and v.backend != "inductor"),
        *(pytest.param(o, v, marks=pytest.mark.xdist_group("inductor")) for o, v in INDUCTOR),
    ],
    ids=lambda x: x.name,
)
def test_inputs_that_are_not_contiguous_are_understood_or_refused(op: Op, variant: Variant) -> None:
    """torch reads strides; our own kernels index memory themselves, and their bind says which input it cannot take."""
    if "liger" in variant.needs:
        pytest.importorskip("liger_kernel")
    problem = next(iter(ways(op, variant))).problem(op, same_sizes(op, 37))
    plain = inputs_of(op, problem)
    for position, spec in enumerate(op.inputs):
        if plain[position].numel() < 2:
            continue
        inputs = tuple(not_contiguous(t) if i == position else t.clone() for i, t in enumerate(plain))
        own_rules = variant.backend == "library" or (op.name, variant.name) in REFUSES_STRIDES
        if own_rules or BACKENDS[variant.backend].compiler:
            usual = (BadField, rf"input {spec.name}: .*strides .*contiguous")
            error, text = OF_THE_SECOND_KERNEL.get((op.name, variant.name, spec.name), usual)
            with pytest.raises(error, match=text):
                bind(variant, problem, inputs)
        else:
            outputs = as_tuple(bind(variant, problem, inputs)())  # torch gives them the strides of the inputs
            accuracy = compare(op, problem, plain, tuple(t.contiguous() for t in outputs))
            assert accuracy.passed, accuracy.reasons


@pytest.mark.parametrize(
    "tried", [HONEST, pytest.param(INDUCTOR, marks=pytest.mark.xdist_group("inductor"))], ids=["eager", "compiled"]
)
def test_a_launch_reads_the_inputs_as_they_are_when_it_is_called(tried: list[tuple[Op, Variant]]) -> None:
    for op, variant in tried:
        if variant.backend == "inductor":  # a problem of COMPILED, so that no other graph is compiled
            forward = [w for w in ways(op, variant) if w.direction == "forward" and w.compute != "tf32"]
            problem = forward[-1].problem(op, odd_sizes(op)[-1])
        else:
            problem = next(iter(ways(op, variant))).problem(op, same_sizes(op, 16))
        inputs = inputs_of(op, problem)
        launch = bind(variant, problem, inputs)
        launch()
        for tensor, other in zip(inputs, inputs_of(op, problem, seed=1), strict=True):
            tensor.copy_(other)
        kept = tuple(t.clone() for t in inputs)
        assert compare(op, problem, kept, launch()).passed, variant.name


@pytest.mark.xdist_group("inductor")
def test_the_compiled_transposition_of_one_row_is_not_the_memory_of_its_input() -> None:
    op = op_named("transpose")
    problem = op.problem({"m": 1, "n": 1031}, "fp32")
    inputs = inputs_of(op, problem)
    (result_NM,) = as_tuple(bind(op.variant_named("torch_compile"), problem, inputs)())
    assert result_NM.data_ptr() != inputs[0].data_ptr()
    assert compare(op, problem, inputs, (result_NM,)).passed


def test_tf32_is_refused_on_a_cpu() -> None:
    op = op_named("matmul")
    problem = op.problem({"m": 2, "n": 2, "k": 2}, "fp32", compute="tf32")
    with pytest.raises(BadField, match=r"tf32.*choose ieee"):
        bind(op.variant_named("torch_eager"), problem, inputs_of(op, problem))
