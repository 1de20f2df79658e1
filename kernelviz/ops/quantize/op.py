"""Quantisation of rows to 8 bits, each with its own scale, alone and after a root-mean-square normalisation.

The second is what an fp8 matrix product needs as its input. As two ops the normalised rows are written and read again.
"""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.model_sizes import AXES, presets
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Sizes, TensorSpec
from kernelviz.ops.quantize import best
from kernelviz.ops.quantize.reference import compared, rmsnorm_bound, rmsnorm_reference, rows_bound, rows_reference
from kernelviz.ops.quantize.variants import rmsnorm_variants, rows_variants


def rows_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Four operations an element (magnitude, maximum, product, rounding); read once; a byte each and 4 bytes a row written.

    >>> rows_cost({"m": 2, "n": 1024}, 2)
    Cost(work_flop=8192, read_bytes=4096, written_bytes=2056)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=4 * m * n, read_bytes=m * n * itemsize_bytes, written_bytes=m * n + 4 * m)


def rmsnorm_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Eight operations an element: rmsnorm's four and quantize's four; a byte each and 4 bytes a row written.

    >>> rmsnorm_cost({"m": 2, "n": 1024}, 2)
    Cost(work_flop=16384, read_bytes=6144, written_bytes=2056)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=8 * m * n, read_bytes=(m * n + n) * itemsize_bytes, written_bytes=m * n + 4 * m)


def _rows_op(target: str, caption: str, formula: str, step: str) -> Op:
    return Op(
        name=f"quantize_{target}",
        family="quantisation",
        summary=f"Conversion of rows to {caption}, with one scale for each row",
        formula=formula,
        axes=AXES,
        dtypes=("bf16", "fp16", "fp32"),
        inputs=(TensorSpec(name="x_MN", axes=("m", "n")),),
        outputs=(
            TensorSpec(name="q_MN", axes=("m", "n"), dtype=target),
            TensorSpec(name="scale_M", axes=("m",), dtype="fp32"),
        ),
        cost=rows_cost,
        reference=rows_reference(target),
        bound=rows_bound(target),
        rule=f"|q · scale − x| ≤ half a step of the format ({step}) and 8 |x| 2⁻²⁴ for fp32; scale: 4 · 2⁻²⁴ of itself",
        baseline="torch_eager",
        best=best.quantize,
        first=("torch_eager", "torch_compile", "triton_row", "cuda_registers"),
        variants=rows_variants(target),
        presets=presets("llama-3-8b", "llama-3-70b", "qwen2.5-7b", "deepseek-v3"),
        slab="m",
        compared=compared,
        compared_outputs=(
            TensorSpec(name="dequantised_MN", axes=("m", "n"), dtype="fp32"),
            TensorSpec(name="scale_M", axes=("m",), dtype="fp32"),
        ),
    )


QUANTIZE_FP8 = _rows_op(
    "fp8",
    "8-bit floating point, e4m3",
    "scale = max|x| / 448, q = fp8(x / scale)",
    "2^(e − 4) · scale where |x| / scale is in 2^e … 2^(e + 1), 2⁻¹⁰ · scale below 2⁻⁶",
)
QUANTIZE_INT8 = _rows_op("int8", "8-bit whole numbers", "scale = max|x| / 127, q = round(x / scale)", "scale / 2")
RMSNORM_QUANTIZE_FP8 = Op(
    name="rmsnorm_quantize_fp8",
    family="quantisation",
    summary="Root-mean-square normalisation of each row, converted to 8-bit floating point with one scale for each row",
    formula="y = x / √(mean(x²) + 10⁻⁵) · w, scale = max|y| / 448, q = fp8(y / scale)",
    axes=AXES,
    dtypes=("bf16", "fp16", "fp32"),
    inputs=(TensorSpec(name="x_MN", axes=("m", "n")), TensorSpec(name="w_N", axes=("n",))),
    outputs=(
        TensorSpec(name="q_MN", axes=("m", "n"), dtype="fp8"),
        TensorSpec(name="scale_M", axes=("m",), dtype="fp32"),
    ),
    cost=rmsnorm_cost,
    reference=rmsnorm_reference,
    bound=rmsnorm_bound,
    rule=(
        "|q · scale − y| ≤ |y| (2 u + (8 + √N / 2) 2⁻²⁴), at most two roundings to the format of x, and half a step of e4m3; "
        "scale: as much of itself"
    ),
    baseline="torch_eager",
    best=best.rmsnorm_quantize,
    first=("torch_eager", "torch_compile", "triton_fused", "cuda_fused"),
    variants=rmsnorm_variants(),
    presets=presets("llama-3-8b", "llama-3-70b", "qwen2.5-7b", "deepseek-v3"),
    slab="m",
    compared=compared,
    compared_outputs=(
        TensorSpec(name="dequantised_MN", axes=("m", "n"), dtype="fp32"),
        TensorSpec(name="scale_M", axes=("m",), dtype="fp32"),
    ),
)
