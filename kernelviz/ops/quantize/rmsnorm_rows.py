"""Normalisation and quantisation in one, as in front of an fp8 matrix product: apart, the rows go to memory and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.model_sizes import AXES, presets
from kernelviz.ops.catalog.op import Launch, Op, Sizes, Tensors, TensorSpec, variant
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.quantize.reference import quantised, quantised_bound, scale_of
from kernelviz.ops.quantize.op import shown

if TYPE_CHECKING:
    from torch import Tensor

EPS = 1e-5
"""Llama 3's `rms_norm_eps`."""
TARGET = "fp8"


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Eight operations an element: rmsnorm's four and quantize's four; a byte each and 4 bytes a row written.

    >>> cost({"m": 2, "n": 1024}, 2)
    Cost(work_flop=16384, read_bytes=6144, written_bytes=2056)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=8 * m * n, read_bytes=(m * n + n) * itemsize_bytes, written_bytes=m * n + 4 * m)


def reference(x_MN: Tensor, w_N: Tensor) -> Tensors:
    """y = x / sqrt(mean(x²) + eps) * w, which q · scale stands for, and max|y| / 448 of each row."""
    y_MN = x_MN * (x_MN.square().mean(-1, keepdim=True) + EPS).rsqrt() * w_N
    return y_MN, scale_of(y_MN, TARGET)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """What y errs by, |y| (2 u + (8 + √N / 2) 2^-24) as in rmsnorm, and half a step of the format as in quantize_fp8.

    y may be rounded twice to the format of x before it is quantised, as where the two are done one after the other. The scale
    errs by as much as the largest |y|.
    """
    y_MN, scale_M = outputs
    statistics = (8 + problem.sizes["n"] ** 0.5 / 2) * FP32_ROUNDOFF
    error_MN = y_MN.abs() * statistics + stored(y_MN, problem.dtype, times=2)
    largest_M = y_MN.abs().amax(-1)
    relative_M = statistics + stored(largest_M, problem.dtype, times=2) / largest_M.clamp(min=2.0**-126)
    return error_MN + quantised_bound(y_MN, scale_M, TARGET), scale_M * (relative_M + 4 * FP32_ROUNDOFF)


def _composite(x_MN: Tensor, w_N: Tensor) -> tuple[Tensor, Tensor]:
    wide_MN = x_MN.float()
    scale_M1 = (wide_MN.pow(2).mean(-1, keepdim=True) + EPS).rsqrt()
    return quantised(wide_MN * scale_M1 * w_N.float(), TARGET)


@variant(backend="torch")
def torch_eager(x_MN: Tensor, w_N: Tensor) -> Launch:
    """torch.nn.functional.rms_norm, then torch ops that quantise: the normalised rows go to memory and back."""
    from torch.nn import functional

    shape = tuple(w_N.shape)
    return lambda: quantised(functional.rms_norm(x_MN, shape, w_N, EPS), TARGET)


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(x_MN: Tensor, w_N: Tensor) -> Launch:
    """torch.compile of both, normalisation by single ops: inductor makes one kernel of them."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(_composite, x_MN, w_N)


@variant(backend="triton", needs=("triton", "cuda", "sm_90"), sources=("triton.py",))
def triton_fused(x_MN: Tensor, w_N: Tensor) -> Launch:
    """Triton, one program a row (or several short ones): mean square and maximum of the same registers, written as fp8."""
    from kernelviz.ops.quantize import triton as kernels

    return kernels.bind_rmsnorm_quantize(x_MN, w_N, eps=EPS)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_fused(x_MN: Tensor, w_N: Tensor) -> Launch:
    """CUDA C++, mean square and maximum in one reduction: max|x w| is known before the scale of the norm is."""
    from kernelviz.ops.quantize import cuda as kernels

    return kernels.bind_rows(x_MN, w_N, TARGET, eps=EPS)


@variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), sources=("cuda.cu", "cuda.py"))
def cuda_cluster(x_MN: Tensor, w_N: Tensor) -> Launch:
    """CUDA C++, the same with rows of more than 64 KiB in the registers of a cluster of blocks."""
    from kernelviz.ops.quantize import cuda as kernels

    return kernels.bind_cluster(x_MN, w_N, TARGET, eps=EPS)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
    sources=("cuda_columns.cu", "cuda_columns.py", "cuda.cu", "cuda.py"),
)
def cuda_columns(x_MN: Tensor, w_N: Tensor) -> Launch:
    """CUDA C++, clusters that stay on their columns: the weight stays in registers, rows stream through shared memory."""
    from kernelviz.ops.quantize import cuda_columns as kernels

    return kernels.bind_columns(x_MN, w_N, TARGET, eps=EPS)


RMSNORM_QUANTIZE_FP8 = Op(
    name="rmsnorm_quantize_fp8",
    family="quantisation",
    summary="Root-mean-square normalisation of rows, written as 8-bit floating point with a scale each",
    formula="y = x / √(mean(x²) + 10⁻⁵) · w, scale = max|y| / 448, q = fp8(y / scale)",
    axes=AXES,
    dtypes=("bf16", "fp16", "fp32"),
    inputs=(TensorSpec(name="x_MN", axes=("m", "n")), TensorSpec(name="w_N", axes=("n",))),
    outputs=(
        TensorSpec(name="q_MN", axes=("m", "n"), dtype=TARGET),
        TensorSpec(name="scale_M", axes=("m",), dtype="fp32"),
    ),
    cost=cost,
    reference=reference,
    bound=bound,
    rule=(
        "|q · scale − y| ≤ |y| (2 u + (8 + √N / 2) 2⁻²⁴), at most two roundings to the format of x, and half a step of e4m3; "
        "scale: as much of itself"
    ),
    baseline="torch_eager",
    first=("torch_eager", "torch_compile", "triton_fused", "cuda_fused"),
    variants=(torch_eager, torch_compile, triton_fused, cuda_fused, cuda_cluster, cuda_columns),
    presets=presets("llama-3-8b", "llama-3-70b", "qwen2.5-7b", "deepseek-v3"),
    slab="m",
    shown=shown,
    shows=(
        TensorSpec(name="dequantised_MN", axes=("m", "n"), dtype="fp32"),
        TensorSpec(name="scale_M", axes=("m",), dtype="fp32"),
    ),
)
