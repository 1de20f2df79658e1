"""Normalisations of rows: `rmsnorm`, `layernorm`, and `add_rmsnorm`, which adds a residual first.

All are limited by memory when fused, and several times slower as single ops. `add_rmsnorm` is what lies between two layers of a
decoder; as two ops it moves half as many bytes again.
"""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.model_sizes import AXES, presets
from kernelviz.ops.catalog.op import Backward, Op
from kernelviz.ops.catalog.tensors import Sizes, TensorSpec
from kernelviz.ops.normalisation import best
from kernelviz.ops.normalisation.reference import (
    add_rmsnorm_backward_bound,
    add_rmsnorm_backward_reference,
    add_rmsnorm_bound,
    add_rmsnorm_reference,
    layernorm_backward_bound,
    layernorm_backward_reference,
    layernorm_bound,
    layernorm_reference,
    rmsnorm_backward_bound,
    rmsnorm_backward_reference,
    rmsnorm_bound,
    rmsnorm_reference,
)
from kernelviz.ops.normalisation.variants import add_rmsnorm_variants, layernorm_variants, rmsnorm_variants


def rmsnorm_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Four operations an element (square, add, two products); rows and weight read once, rows written once.

    >>> rmsnorm_cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=8192, read_bytes=12288, written_bytes=8192)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=4 * m * n, read_bytes=(m * n + n) * itemsize_bytes, written_bytes=m * n * itemsize_bytes)


def rmsnorm_backward_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Nine operations an element: dy w; its product with x̂, summed; x̂; x̂ c, a difference, a product; dy x̂, summed.

    Rows, weight and dy read once, dx and dw written once; the scale of a row that the forward pass saves is not counted.

    >>> rmsnorm_backward_cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=18432, read_bytes=20480, written_bytes=12288)
    """
    m, n = sizes["m"], sizes["n"]
    read, written = (2 * m * n + n) * itemsize_bytes, (m * n + n) * itemsize_bytes
    return Cost(work_flop=9 * m * n, read_bytes=read, written_bytes=written)


def layernorm_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Seven operations an element (add; subtract, square, add; product, product, add); rows, weight and bias read once.

    >>> layernorm_cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=14336, read_bytes=16384, written_bytes=8192)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=7 * m * n, read_bytes=(m * n + 2 * n) * itemsize_bytes, written_bytes=m * n * itemsize_bytes)


def layernorm_backward_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Twelve operations an element: rmsnorm's nine, x - μ, and the sums of g and dy.

    Rows, weight and dy read once, dx, dw and db written once; the bias is not read. Nor are the mean and the scale of a row,
    which the forward pass saves, counted.

    >>> layernorm_backward_cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=24576, read_bytes=20480, written_bytes=16384)
    """
    m, n = sizes["m"], sizes["n"]
    read, written = (2 * m * n + n) * itemsize_bytes, (m * n + 2 * n) * itemsize_bytes
    return Cost(work_flop=12 * m * n, read_bytes=read, written_bytes=written)


def add_rmsnorm_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Five operations an element: the sum and rmsnorm's four; x, r and the weight read once, s and y written once.

    >>> add_rmsnorm_cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=10240, read_bytes=20480, written_bytes=16384)
    """
    m, n = sizes["m"], sizes["n"]
    read = (2 * m * n + n) * itemsize_bytes
    return Cost(work_flop=5 * m * n, read_bytes=read, written_bytes=2 * m * n * itemsize_bytes)


def add_rmsnorm_backward_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """rmsnorm's nine operations an element and the sum with ds; s, ds, dy and the weight read once, dx and dw written once.

    s is what the forward pass saves instead of x and r; dx is the gradient of both. The row's scale is not counted.

    >>> add_rmsnorm_backward_cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=20480, read_bytes=28672, written_bytes=12288)
    """
    m, n = sizes["m"], sizes["n"]
    read, written = (3 * m * n + n) * itemsize_bytes, (m * n + n) * itemsize_bytes
    return Cost(work_flop=10 * m * n, read_bytes=read, written_bytes=written)


_RMSNORM_INPUTS = (TensorSpec(name="x_MN", axes=("m", "n")), TensorSpec(name="w_N", axes=("n",)))

RMSNORM = Op(
    name="rmsnorm",
    family="normalisation",
    summary="Root-mean-square normalisation of each row, times a weight",
    formula="y = x / √(mean(x²) + 10⁻⁵) · w",
    axes=AXES,
    dtypes=("bf16", "fp16", "fp32"),
    inputs=_RMSNORM_INPUTS,
    outputs=(TensorSpec(name="y_MN", axes=("m", "n")),),
    cost=rmsnorm_cost,
    reference=rmsnorm_reference,
    bound=rmsnorm_bound,
    rule="|error| ≤ |y| (2 u + (8 + √N / 2) 2⁻²⁴): statistics in fp32, at most two roundings to the output's format",
    baseline="torch_eager",
    best=best.rmsnorm,
    first=(
        "composite_eager",
        "torch_eager",
        "torch_compile",
        "liger",
        "triton_block_per_row",
        "cuda_registers",
        "cuda_async",
    ),
    variants=rmsnorm_variants(),
    presets=presets("llama-3-8b", "llama-3-70b", "qwen2.5-7b", "deepseek-v3"),
    slab="m",
    backward=Backward(
        inputs=(*_RMSNORM_INPUTS, TensorSpec(name="dy_MN", axes=("m", "n"))),
        outputs=(TensorSpec(name="dx_MN", axes=("m", "n")), TensorSpec(name="dw_N", axes=("n",))),
        cost=rmsnorm_backward_cost,
        reference=rmsnorm_backward_reference,
        bound=rmsnorm_backward_bound,
        rule=(
            "dx: u r (|g| + 4 |x̂| √Σ(g x̂)² / N) + (24 + 1.5 √N) 2⁻²⁴ r (|g| + |x̂| mean|g x̂|) + u |dx|, g = dy w; "
            "dw: 4 u √Σ(dy x̂)² + (16 + √N / 2 + √M) 2⁻²⁴ Σ|dy x̂| + u |dw|: sums in fp32, g and x̂ may be rounded"
        ),
    ),
)

_LAYERNORM_INPUTS = (
    TensorSpec(name="x_MN", axes=("m", "n")),
    TensorSpec(name="w_N", axes=("n",)),
    TensorSpec(name="b_N", axes=("n",)),
)

LAYERNORM = Op(
    name="layernorm",
    family="normalisation",
    summary="Layer normalisation of each row, with weight and bias",
    formula="y = (x − mean x) / √(var x + 10⁻⁵) · w + b",
    axes=AXES,
    dtypes=("bf16", "fp16", "fp32"),
    inputs=_LAYERNORM_INPUTS,
    outputs=(TensorSpec(name="y_MN", axes=("m", "n")),),
    cost=layernorm_cost,
    reference=layernorm_reference,
    bound=layernorm_bound,
    rule=(
        "|error| ≤ |w| (s (r mean|x| + |x̂| (1 + (mean(x²) + μ²) / v)) + 4 r (|x| + |μ|) 2⁻²⁴) + 2 (|x̂ w| + |b|) 2⁻²⁴ + u |y|, "
        "s = (8 + √N / 2) 2⁻²⁴, v = var + 10⁻⁵, r = 1 / √v: statistics in fp32, one rounding to the output's format"
    ),
    baseline="torch_eager",
    best=best.layernorm,
    first=("torch_eager", "torch_compile", "liger", "triton_block_per_row", "cuda_registers", "cuda_async"),
    variants=layernorm_variants(),
    presets=presets("gpt-2", "bert-base", "llama-3-8b", "llama-3-70b"),
    slab="m",
    backward=Backward(
        inputs=(*_LAYERNORM_INPUTS, TensorSpec(name="dy_MN", axes=("m", "n"))),
        outputs=(
            TensorSpec(name="dx_MN", axes=("m", "n")),
            TensorSpec(name="dw_N", axes=("n",)),
            TensorSpec(name="db_N", axes=("n",)),
        ),
        cost=layernorm_backward_cost,
        reference=layernorm_backward_reference,
        bound=layernorm_backward_bound,
        rule=(
            "dx: u r (|g| + 4 √Σg² / N + 4 |x̂| √Σ(g x̂)² / N) + r (e |c| + |x̂| mean(|g| e)) + r (ρ + (16 + √N) 2⁻²⁴) "
            "(|g| + mean|g| + |x̂| mean|g x̂|) + u |dx|, g = dy w, c = mean(g x̂), e and ρ the errors of x̂ and r; "
            "dw: 4 u √Σ(dy x̂)² + Σ|dy| e + (8 + √M) 2⁻²⁴ Σ|dy x̂| + u |dw|; db: (8 + √M) 2⁻²⁴ Σ|dy| + u |db|"
        ),
    ),
)

_ADD_RMSNORM_INPUTS = (
    TensorSpec(name="x_MN", axes=("m", "n")),
    TensorSpec(name="r_MN", axes=("m", "n")),
    TensorSpec(name="w_N", axes=("n",)),
)

ADD_RMSNORM = Op(
    name="add_rmsnorm",
    family="normalisation",
    summary="Sum with the residual, stored, and its root-mean-square normalisation, times a weight",
    formula="s = x + r, y = s / √(mean(s²) + 10⁻⁵) · w",
    axes=AXES,
    dtypes=("bf16", "fp16", "fp32"),
    inputs=_ADD_RMSNORM_INPUTS,
    outputs=(TensorSpec(name="s_MN", axes=("m", "n")), TensorSpec(name="y_MN", axes=("m", "n"))),
    cost=add_rmsnorm_cost,
    reference=add_rmsnorm_reference,
    bound=add_rmsnorm_bound,
    rule=(
        "s: u |s|; y: |y| (3 u + min(1, 4 / √N) u + (8 + √N / 2) 2⁻²⁴): statistics in fp32; rounded may be s, the normalised "
        "row, and y"
    ),
    baseline="torch_eager",
    best=best.add_rmsnorm,
    first=("torch_eager", "torch_compile", "liger", "triton_block_per_row", "cuda_registers", "cuda_async"),
    variants=add_rmsnorm_variants(),
    presets=presets("llama-3-8b", "llama-3-70b", "qwen2.5-7b", "deepseek-v3"),
    slab="m",
    backward=Backward(
        inputs=(
            *_ADD_RMSNORM_INPUTS,
            TensorSpec(name="ds_MN", axes=("m", "n")),
            TensorSpec(name="dy_MN", axes=("m", "n")),
        ),
        outputs=(TensorSpec(name="dx_MN", axes=("m", "n")), TensorSpec(name="dw_N", axes=("n",))),
        cost=add_rmsnorm_backward_cost,
        reference=add_rmsnorm_backward_reference,
        bound=add_rmsnorm_backward_bound,
        rule=(
            "dx: u a (|g| + 4 |ŝ| √Σ(g ŝ)² / N) + a (e |c| + |ŝ| mean(|g| e)) + a (ρ + (16 + √N) 2⁻²⁴) (|g| + |ŝ| mean|g ŝ|) "
            "+ 2⁻²⁴ (|ds| + |dx|) + u (|dx - ds| + |dx|), g = dy w, c = mean(g ŝ), e and ρ the errors of ŝ and a, with s rounded"
            "; dw: 4 u √Σ(dy ŝ)² + Σ|dy| e + (8 + √M) 2⁻²⁴ Σ|dy ŝ| + u |dw|"
        ),
    ),
)
