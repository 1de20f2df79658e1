"""gelu(layernorm(x)): an activation in the pass of the normalisation before it, which then costs arithmetic only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.model_sizes import AXES, presets
from kernelviz.ops.catalog.op import Launch, Op, Sizes, Tensors, TensorSpec, variant
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored

if TYPE_CHECKING:
    from torch import Tensor

EPS = 1e-5
"""torch's default, and GPT-2's `layer_norm_epsilon`."""


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Fifteen operations an element: layernorm's seven, and gelu by a polynomial of degree 6 with a power of two.

    >>> cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=30720, read_bytes=16384, written_bytes=8192)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=15 * m * n, read_bytes=(m * n + 2 * n) * itemsize_bytes, written_bytes=m * n * itemsize_bytes)


def _normalised(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Tensor:
    away_MN = x_MN - x_MN.mean(-1, keepdim=True)
    return away_MN * (away_MN.square().mean(-1, keepdim=True) + EPS).rsqrt() * w_N + b_N


def reference(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Tensors:
    """gelu((x - mean) / sqrt(var + eps) * w + b) by erf along each row, in the dtype of the inputs (float64 in the gate)."""
    from torch.nn import functional

    return (functional.gelu(_normalised(x_MN, w_N, b_N)),)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """How far gelu moves where z = layernorm(x) moves by what it errs, 8 |z| 2^-24 for the normal distribution, one rounding.

    z errs by |w| (s (r mean|x| + |x̂| (1 + (mean(x²) + μ²) / v)) + 4 r (|x| + |μ|) 2^-24) + 2 (|x̂ w| + |b|) 2^-24 in fp32,
    s = (8 + √N / 2) 2^-24, v = var + eps, r = 1 / √v: the mean errs by s mean|x|, the variance by s var, or, where it is
    E[x²] - μ², by s (mean(x²) + μ²). And by u |z|, since a layer that normalises may store z before gelu reads it. For the
    distribution: erf errs by up to 2.5 · 2^-24 where it is the polynomial of Abramowitz and Stegun 7.1.26, its argument by
    1.5 · 2^-24 of itself, and 1 + erf(z / √2) cancels for negative z.
    """
    from torch.nn import functional

    x_MN, w_N, b_N = inputs
    mean_M1 = x_MN.mean(-1, keepdim=True)
    power_M1 = x_MN.square().mean(-1, keepdim=True) + mean_M1.square()
    variance_M1 = (x_MN - mean_M1).square().mean(-1, keepdim=True) + EPS
    scale_M1 = variance_M1.rsqrt()
    hat_MN = (x_MN - mean_M1) * scale_M1
    s = (8 + problem.sizes["n"] ** 0.5 / 2) * FP32_ROUNDOFF
    error_MN = s * (scale_M1 * x_MN.abs().mean(-1, keepdim=True) + hat_MN.abs() * (1 + power_M1 / variance_M1))
    error_MN = error_MN + 4 * FP32_ROUNDOFF * scale_M1 * (x_MN.abs() + mean_M1.abs())
    z_MN = hat_MN * w_N + b_N
    z_error_MN = error_MN * w_N.abs() + 2 * FP32_ROUNDOFF * ((hat_MN * w_N).abs() + b_N.abs())
    z_error_MN = z_error_MN + stored(z_MN, problem.dtype)
    y_MN = outputs[0]
    up_MN = (functional.gelu(z_MN + z_error_MN) - y_MN).abs()
    down_MN = (functional.gelu(z_MN - z_error_MN) - y_MN).abs()
    return (up_MN.maximum(down_MN) + 8 * FP32_ROUNDOFF * z_MN.abs() + stored(y_MN, problem.dtype),)


def _fused_norm(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Tensor:
    from torch.nn import functional

    return functional.gelu(functional.layer_norm(x_MN, tuple(w_N.shape), w_N, b_N, EPS))


@variant(backend="torch")
def composite_eager(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """Single torch ops in float32, rounded at the end: every step is a kernel that reads and writes the whole matrix."""
    from torch.nn import functional

    return lambda: functional.gelu(_normalised(x_MN.float(), w_N.float(), b_N.float())).to(x_MN.dtype)


@variant(backend="torch")
def torch_eager(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """torch.nn.functional.layer_norm, then gelu: two kernels, so twice the traffic."""
    return lambda: _fused_norm(x_MN, w_N, b_N)


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """torch.compile of the two: inductor makes one kernel of them."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(_fused_norm, x_MN, w_N, b_N)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_erf(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """Triton, one program a row, gelu with libdevice's erf: the arithmetic competes with the memory."""
    from kernelviz.ops.norm_activation import triton as kernels

    return kernels.bind_layernorm_gelu(x_MN, w_N, b_N, eps=EPS, exact=True)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_fused(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """Triton, the same with gelu as x⁺ − |x| 2^Q(|x|), Q a polynomial: a third of the instructions."""
    from kernelviz.ops.norm_activation import triton as kernels

    return kernels.bind_layernorm_gelu(x_MN, w_N, b_N, eps=EPS, exact=False)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_fused(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """CUDA C++, a block a row in registers as 16-byte words, gelu by the polynomial; rows beyond 64 KiB are read twice."""
    from kernelviz.ops.norm_activation import cuda as kernels

    return kernels.bind_rows(x_MN, w_N, b_N, eps=EPS)


@variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), sources=("cuda.cu", "cuda.py"))
def cuda_cluster(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """CUDA C++, the same with rows of more than 64 KiB in the registers of a cluster of blocks."""
    from kernelviz.ops.norm_activation import cuda as kernels

    return kernels.bind_cluster(x_MN, w_N, b_N, eps=EPS)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
    sources=("cuda_columns.cu", "cuda_columns.py", "cuda.cu", "cuda.py"),
)
def cuda_columns(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """CUDA C++, clusters that stay on their columns: weight and bias stay in registers, tensor cores add up mean and variance."""
    from kernelviz.ops.norm_activation import cuda_columns as kernels

    return kernels.bind_columns(x_MN, w_N, b_N, eps=EPS)


OP = Op(
    name="norm_activation",
    family="normalisation",
    summary="gelu of the layer normalisation of each row, with weight and bias",
    formula="y = gelu((x − mean x) / √(var x + 10⁻⁵) · w + b)",
    axes=AXES,
    dtypes=("bf16", "fp16", "fp32"),
    inputs=(
        TensorSpec(name="x_MN", axes=("m", "n")),
        TensorSpec(name="w_N", axes=("n",)),
        TensorSpec(name="b_N", axes=("n",)),
    ),
    outputs=(TensorSpec(name="y_MN", axes=("m", "n")),),
    cost=cost,
    reference=reference,
    bound=bound,
    rule=(
        "|error| ≤ max |gelu(z ± e) − y| + 8 |z| 2⁻²⁴ + u |y|, z = layernorm(x), e = u |z| + |w| (s (r mean|x| + |x̂| (1 + "
        "(mean(x²) + μ²) / v)) + 4 r (|x| + |μ|) 2⁻²⁴) + 2 (|x̂ w| + |b|) 2⁻²⁴, s = (8 + √N / 2) 2⁻²⁴, v = var + 10⁻⁵, r = 1 / √v"
    ),
    baseline="torch_eager",
    first=("torch_eager", "torch_compile", "triton_erf", "triton_fused", "cuda_fused"),
    variants=(
        composite_eager,
        torch_eager,
        torch_compile,
        triton_erf,
        triton_fused,
        cuda_fused,
        cuda_cluster,
        cuda_columns,
    ),
    presets=presets("gpt-2", "bert-base", "llama-3-8b"),
    slab="m",
)
