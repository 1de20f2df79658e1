"""Reductions of rows: their sums, and the places of their largest elements. Read everything, write one number a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.op import Axis, Op, Preset, Sizes, Tensors, TensorSpec
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.row_reduction import argmaxes, variants

if TYPE_CHECKING:
    from torch import Tensor


def row_sum_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """One addition an element; the matrix read once, one number a row written.

    >>> row_sum_cost({"m": 2, "n": 1024}, 2)
    Cost(work_flop=2048, read_bytes=4096, written_bytes=4)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=m * n, read_bytes=m * n * itemsize_bytes, written_bytes=m * itemsize_bytes)


def argmax_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """One comparison an element; the matrix read once, one 64-bit index a row written.

    >>> argmax_cost({"m": 2, "n": 1024}, 2)
    Cost(work_flop=2048, read_bytes=4096, written_bytes=16)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=m * n, read_bytes=m * n * itemsize_bytes, written_bytes=8 * m)


def row_sum_reference(x_MN: Tensor) -> Tensors:
    """Σ x along each row, in the dtype of the input (float64 in the gate)."""
    return (x_MN.sum(-1),)


def row_sum_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """1.01 u |y| + √N (2 ‖x‖ + |y|) 2^-24, ‖x‖ of the row: any order of additions in fp32, one rounding to the output's format.

    Of partial sums s₁ … s_N each addition errs by at most 2^-24 |s_k|, in no particular direction: together by about
    2^-24 √(Σ s_k²) / √3. The numbers come in no order, so s_k is k y / N plus a fluctuation of √k ‖x‖ / √N; the worst of all
    orders of adding, one accumulator, gives √N (‖x‖ / √2 + |y| / √3) 2^-24 / √3. The bound is 3 to 5 times that.
    """
    x_MN, y_M = inputs[0], outputs[0]
    drift_M = problem.sizes["n"] ** 0.5 * (2 * x_MN.norm(dim=-1) + y_M.abs()) * FP32_ROUNDOFF
    return (stored(y_M, problem.dtype) + drift_M,)


def argmax_reference(x_MN: Tensor) -> Tensors:
    """The largest element of each row: what the index must point to."""
    return (x_MN.amax(-1),)


def argmax_shown(inputs: Tensors, outputs: Tensors) -> Tensors:
    """The elements that the indices point to; NaN for an index outside the row."""
    x_MN, index_M = inputs[0], outputs[0]
    inside_M = (index_M >= 0) & (index_M < x_MN.shape[1])
    found_M = x_MN.gather(-1, index_M.clamp(0, x_MN.shape[1] - 1)[:, None])[:, 0]
    return (found_M.where(inside_M, float("nan")),)


def argmax_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Zero: nothing is rounded, so the element must be the largest one itself. Of equal ones, any."""
    return (outputs[0].new_zeros(()).expand_as(outputs[0]),)


_AXES = (
    Axis(name="m", caption="rows", default="2^27/n", cpu_default="2^20/n"),
    Axis(name="n", caption="row length", default="2^7..2^17", cpu_default="2^8,2^10,2^12"),
)
_INPUTS = (TensorSpec(name="x_MN", axes=("m", "n")),)
_FIRST = ("torch_eager", "torch_compile", "triton_block_per_row", "cuda_row_per_warp", "cuda_adaptive")
_ROWS = (
    Preset(
        name="rows",
        caption="As many rows as make 256 MiB in bf16, 2048 to 131072 elements each",
        sizes={"m": "2^27/n", "n": "2048,4096,8192,32768,131072"},
    ),
    Preset(
        name="few-rows",
        caption="1 to 64 rows of 2^20 elements: fewer rows than an H200 has SMs",
        sizes={"m": "1,4,16,64", "n": "2^20"},
    ),
    Preset(name="large", caption="1 GiB in bf16", sizes={"m": "2^29/n", "n": "4096,32768"}),
)

OPS = (
    Op(
        name="row_sum",
        family="reduction",
        summary="Sum of each row",
        formula="y = Σ x along each row",
        axes=_AXES,
        dtypes=("bf16", "fp16", "fp32"),
        inputs=_INPUTS,
        outputs=(TensorSpec(name="y_M", axes=("m",)),),
        cost=row_sum_cost,
        reference=row_sum_reference,
        bound=row_sum_bound,
        rule="|error| ≤ 1.01 u |y| + √N (2 ‖x‖ + |y|) 2⁻²⁴: added in fp32 in any order, rounded once to the output's format",
        baseline="torch_eager",
        first=_FIRST,
        variants=variants.VARIANTS,
        presets=_ROWS,
        slab="m",
    ),
    Op(
        name="argmax",
        family="reduction",
        summary="Place of the largest element of each row",
        formula="y = argmax x along each row",
        axes=_AXES,
        dtypes=("bf16", "fp16", "fp32"),
        inputs=_INPUTS,
        outputs=(TensorSpec(name="index_M", axes=("m",), dtype="int64"),),
        cost=argmax_cost,
        reference=argmax_reference,
        bound=argmax_bound,
        rule="exact: the element that the index points to is the row's largest; of equal ones any will do",
        baseline="torch_eager",
        first=_FIRST,
        variants=argmaxes.VARIANTS,
        presets=(
            Preset(
                name="llama-3",
                caption="Llama 3, greedy decoding over a vocabulary of 128256",
                sizes={"m": "1,16,64,512,4096", "n": "128256"},
            ),
            Preset(
                name="qwen2.5-7b",
                caption="Qwen 2.5 7B, greedy decoding over a vocabulary of 152064",
                sizes={"m": "1,16,64,512,4096", "n": "152064"},
            ),
            Preset(
                name="gpt-2",
                caption="GPT-2, greedy decoding over a vocabulary of 50257",
                sizes={"m": "1,16,64,512,4096", "n": "50257"},
            ),
            *_ROWS,
        ),
        slab="m",
        shown=argmax_shown,
        shows=(TensorSpec(name="largest_M", axes=("m",)),),
    ),
)
