"""relu(batchnorm(x)) at inference: with the running statistics, a factor and a summand a channel, so one pass over the matrix.

At training the statistics are those of the batch, which must be read before the first element is written: a column reduction and
a pass more. That is another op with another cost; this one is 2 N e.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.model_sizes import AXES, presets
from kernelviz.ops.catalog.op import Launch, Op, Preset, Sizes, Tensors, TensorSpec, variant
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored

if TYPE_CHECKING:
    from torch import Tensor

EPS = 1e-5
"""torch's default."""


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Three operations an element (product, sum, maximum); four numbers a channel, in fp32 whatever x is, read once.

    >>> cost({"m": 2, "n": 1024}, 2)
    Cost(work_flop=6144, read_bytes=20480, written_bytes=4096)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=3 * m * n, read_bytes=m * n * itemsize_bytes + 16 * n, written_bytes=m * n * itemsize_bytes)


def _scale(variance_N: Tensor, w_N: Tensor) -> Tensor:
    # A running variance is never negative; here it is drawn like any other input, so its magnitude is taken.
    return (variance_N.abs() + EPS).rsqrt() * w_N


def reference(x_MN: Tensor, mean_N: Tensor, variance_N: Tensor, w_N: Tensor, b_N: Tensor) -> Tensors:
    """max((x - mean) / sqrt(|variance| + eps) * w + b, 0), in the dtype of the inputs (float64 in the gate)."""
    return (((x_MN - mean_N) * _scale(variance_N, w_N) + b_N).relu(),)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """8 ((|x| + |mean|) a + |b|) 2^-24, a = |w| / √(|variance| + eps), in fp32, and two roundings to the output's format.

    Eight units: the approximate reciprocal root (2), eps, the product with w, and either x - mean, its product with a and the sum
    with b, or the product x a and the sum with b - mean a. Two roundings: a layer that normalises stores what relu reads, and
    relu lets no error grow.
    """
    x_MN, mean_N, variance_N, w_N, b_N = inputs
    a_N = _scale(variance_N, w_N)
    z_MN = (x_MN - mean_N) * a_N + b_N
    sizes_MN = (x_MN.abs() + mean_N.abs()) * a_N.abs() + b_N.abs()
    return (8 * FP32_ROUNDOFF * sizes_MN + stored(z_MN, problem.dtype, times=2),)


def _composite(x_MN: Tensor, mean_N: Tensor, variance_N: Tensor, w_N: Tensor, b_N: Tensor) -> Tensor:
    return ((x_MN.float() - mean_N) * _scale(variance_N, w_N) + b_N).relu().to(x_MN.dtype)


@variant(backend="torch")
def composite_eager(x_MN: Tensor, mean_N: Tensor, variance_N: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """Single torch ops in float32, rounded at the end: every step is a kernel that reads and writes the whole matrix."""
    return lambda: _composite(x_MN, mean_N, variance_N, w_N, b_N)


@variant(backend="torch")
def torch_eager(x_MN: Tensor, mean_N: Tensor, variance_N: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """torch.nn.functional.batch_norm, then relu in place: two passes over the matrix."""
    from torch.nn import functional

    return lambda: functional.batch_norm(x_MN, mean_N, variance_N.abs(), w_N, b_N, eps=EPS).relu_()


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(x_MN: Tensor, mean_N: Tensor, variance_N: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """torch.compile of the composite: inductor makes one kernel of it, with the root once an element."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(_composite, x_MN, mean_N, variance_N, w_N, b_N)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_fused(x_MN: Tensor, mean_N: Tensor, variance_N: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """Triton, a program a few rows of the same channels: factor and summand are made once for all of them."""
    from kernelviz.ops.norm_activation import triton as kernels

    return kernels.bind_batchnorm_relu(x_MN, mean_N, variance_N, w_N, b_N, eps=EPS)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_columns(x_MN: Tensor, mean_N: Tensor, variance_N: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """CUDA C++, a thread keeps the factors of 16 bytes of channels in registers and walks down rows, four loads in flight."""
    from kernelviz.ops.norm_activation import cuda as kernels

    return kernels.bind_columns(x_MN, mean_N, variance_N, w_N, b_N, eps=EPS)


OP = Op(
    name="batchnorm_relu",
    family="normalisation",
    summary="relu of batch normalisation at inference: running statistics, weight and bias of each channel",
    formula="y = max((x − mean) / √(|variance| + 10⁻⁵) · w + b, 0)",
    axes=AXES,
    dtypes=("bf16", "fp16", "fp32"),
    inputs=(
        TensorSpec(name="x_MN", axes=("m", "n")),
        TensorSpec(name="mean_N", axes=("n",), dtype="fp32"),
        TensorSpec(name="variance_N", axes=("n",), dtype="fp32"),
        TensorSpec(name="w_N", axes=("n",), dtype="fp32"),
        TensorSpec(name="b_N", axes=("n",), dtype="fp32"),
    ),
    outputs=(TensorSpec(name="y_MN", axes=("m", "n")),),
    cost=cost,
    reference=reference,
    bound=bound,
    rule=(
        "|error| ≤ 8 ((|x| + |mean|) |a| + |b|) 2⁻²⁴ + 2 u |z|, a = w / √(|variance| + 10⁻⁵), z before relu: in fp32, "
        "at most two roundings to the output's format"
    ),
    baseline="torch_eager",
    first=("torch_eager", "torch_compile", "triton_fused", "cuda_columns"),
    variants=(composite_eager, torch_eager, torch_compile, triton_fused, cuda_columns),
    presets=(
        Preset(
            name="resnet-50",
            caption="ResNet-50 at batch 256, NHWC: the positions of each stage and its channels",
            sizes={"m": "802816,200704,50176,12544", "n": "64,256,512,2048"},
        ),
        *presets(),
    ),
    slab="m",
)
