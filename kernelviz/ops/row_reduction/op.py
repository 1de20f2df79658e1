"""`row_sum` and `argmax` of rows: the whole matrix is read, one number a row is written."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.row_reduction import best
from kernelviz.ops.row_reduction.reference import (
    argmax_bound,
    argmax_compared,
    argmax_reference,
    row_sum_bound,
    row_sum_reference,
)
from kernelviz.ops.row_reduction.variants import argmax_variants, row_sum_variants
from kernelviz.ops.row_reduction.variants_published import triton_published


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

ROW_SUM = Op(
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
    best=best.row_sum,
    first=_FIRST,
    variants=(*row_sum_variants(), triton_published),
    presets=_ROWS,
    slab="m",
)
ARGMAX = Op(
    name="argmax",
    family="reduction",
    summary="Index of the largest element of each row",
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
    best=best.argmax,
    first=_FIRST,
    variants=argmax_variants(),
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
    compared=argmax_compared,
    compared_outputs=(TensorSpec(name="largest_M", axes=("m",)),),
)
