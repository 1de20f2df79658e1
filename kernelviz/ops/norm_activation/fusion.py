"""The compositions that a normalisation with its activation in one kernel replaces."""

from __future__ import annotations

from dataclasses import replace

from kernelviz.core.fusion import Step
from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.fusion import Composition, Fusion, elementwise_step
from kernelviz.ops.catalog.tensors import Sizes

_FP32_BYTES = 4
_NORM_FLOP, _GELU_FLOP = 7, 8
"""Operations for each element, as in the cost of the op."""


def layernorm_steps(sizes: Sizes, itemsize_bytes: int) -> tuple[Step, ...]:
    """The layer normalisation, then gelu.

    >>> [step.cost.moved_bytes for step in layernorm_steps({"m": 2, "n": 8}, 2)]
    [96, 64]
    """
    elements, rows_bytes = sizes["m"] * sizes["n"], 2 * sizes["n"] * itemsize_bytes
    return (
        elementwise_step("layer_normalisation", elements, itemsize_bytes, flop=_NORM_FLOP, operand_bytes=rows_bytes),
        elementwise_step("gelu", elements, itemsize_bytes, flop=_GELU_FLOP, last=True),
    )


def composite_steps(sizes: Sizes, itemsize_bytes: int) -> tuple[Step, ...]:
    """Single operations in fp32 (`reference.layer_normalised`), with conversions unless x is in fp32. Two of weight and bias are
    counted as launches only, and a number for each row as no intermediate tensor.

    >>> [step.kind for step in composite_steps({"m": 2, "n": 8}, 4)]
    ['mean', 'difference', 'square', 'mean', 'product', 'product', 'sum', 'gelu']
    """
    m, n = sizes["m"], sizes["n"]
    elements, tensor_bytes = m * n, m * n * _FP32_BYTES
    mean = Step(kind="mean", cost=Cost(work_flop=elements, read_bytes=tensor_bytes, written_bytes=m * _FP32_BYTES))
    row_bytes, column_bytes = n * _FP32_BYTES, m * _FP32_BYTES
    wide = itemsize_bytes == _FP32_BYTES
    steps = (
        mean,
        elementwise_step("difference", elements, _FP32_BYTES, flop=1, operand_bytes=column_bytes),
        elementwise_step("square", elements, _FP32_BYTES, flop=1),
        replace(mean, launches=3),  # the sum with epsilon and the root are kernels of one number for each row
        elementwise_step("product", elements, _FP32_BYTES, flop=1, operand_bytes=column_bytes),
        elementwise_step("product", elements, _FP32_BYTES, flop=1, operand_bytes=row_bytes),
        elementwise_step("sum", elements, _FP32_BYTES, flop=1, operand_bytes=row_bytes),
        elementwise_step("gelu", elements, _FP32_BYTES, flop=_GELU_FLOP, last=wide),
    )
    if wide:
        return steps
    narrow_bytes = elements * itemsize_bytes
    first = Step(
        kind="to_fp32",
        cost=Cost(work_flop=0, read_bytes=narrow_bytes, written_bytes=tensor_bytes),
        result_bytes=tensor_bytes,
        launches=3,
    )
    last = Step(kind="from_fp32", cost=Cost(work_flop=0, read_bytes=tensor_bytes, written_bytes=narrow_bytes))
    return (first, *steps, last)


def batchnorm_steps(sizes: Sizes, itemsize_bytes: int) -> tuple[Step, ...]:
    """The batch normalisation with its four numbers for each channel, then relu.

    >>> [step.cost.moved_bytes for step in batchnorm_steps({"m": 2, "n": 8}, 2)]
    [192, 64]
    """
    elements, channels_bytes = sizes["m"] * sizes["n"], 4 * sizes["n"] * _FP32_BYTES
    return (
        elementwise_step("batch_normalisation", elements, itemsize_bytes, flop=2, operand_bytes=channels_bytes),
        elementwise_step("relu", elements, itemsize_bytes, flop=1, last=True),
    )


LAYERNORM_GELU = Fusion(
    family="norm_activation",
    compositions=(
        Composition(variants=("torch_eager", "triton_stepwise"), steps=layernorm_steps),
        Composition(variants=("composite_eager",), steps=composite_steps),
    ),
    fused=("torch_compile", "triton_erf", "triton_fused", "cuda_fused", "cuda_cluster", "cuda_columns"),
    grows="m",
    sizes={"m": 32, "n": 4096},
    cpu_sizes={"m": 4096, "n": 1024},
)
BATCHNORM_RELU = Fusion(
    family="norm_activation",
    compositions=(Composition(variants=("torch_eager", "triton_stepwise"), steps=batchnorm_steps),),
    fused=("torch_compile", "triton_fused", "cuda_columns"),
    grows="m",
    sizes={"m": 32, "n": 4096},
    cpu_sizes={"m": 4096, "n": 1024},
)
