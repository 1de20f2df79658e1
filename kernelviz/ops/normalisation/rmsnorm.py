"""Root-mean-square normalisation of rows: memory-bound when fused, several times slower when composed of single ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.model_sizes import AXES, presets
from kernelviz.ops.catalog.op import Backward, Launch, Op, Sizes, Staged, Tensors, TensorSpec, variant
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, nearest_zero, stored
from kernelviz.ops.normalisation.reference import of_dw, of_dx, root_mean_square

if TYPE_CHECKING:
    from torch import Tensor

EPS = 1e-5
"""Llama 3's `rms_norm_eps`."""


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Four operations an element (square, add, two products); rows and weight read once, rows written once.

    >>> cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=8192, read_bytes=12288, written_bytes=8192)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=4 * m * n, read_bytes=(m * n + n) * itemsize_bytes, written_bytes=m * n * itemsize_bytes)


def reference(x_MN: Tensor, w_N: Tensor) -> Tensors:
    """x / sqrt(mean(x²) + eps) * w along each row, in the dtype of the inputs (float64 in the gate)."""
    return (x_MN * (x_MN.square().mean(-1, keepdim=True) + EPS).rsqrt() * w_N,)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """|y| (2 u + (8 + √N / 2) 2^-24): statistics in fp32, at most two roundings to the output's format.

    The squares are positive, so their sum in fp32 errs by √N 2^-24 of itself, and the root halves that. 8 · 2^-24 pay for
    the square, the mean, eps, the approximate reciprocal root (2 units) and the two products. Two roundings: many a model
    stores the normalised row before it applies the weight, which then multiplies what it errs by near zero, too.
    """
    statistics = (8 + problem.sizes["n"] ** 0.5 / 2) * FP32_ROUNDOFF
    near_zero_N = inputs[1].abs() * nearest_zero(problem.dtype)
    return (outputs[0].abs() * statistics + stored(outputs[0], problem.dtype, times=2) + near_zero_N,)


def backward_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Nine operations an element: dy w; its product with x̂, summed; x̂; x̂ c, a difference, a product; dy x̂, summed.

    Rows, weight and dy read once, dx and dw written once; the scale of a row that the forward pass saves is not counted.

    >>> backward_cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=18432, read_bytes=20480, written_bytes=12288)
    """
    m, n = sizes["m"], sizes["n"]
    read, written = (2 * m * n + n) * itemsize_bytes, (m * n + n) * itemsize_bytes
    return Cost(work_flop=9 * m * n, read_bytes=read, written_bytes=written)


def backward_reference(x_MN: Tensor, w_N: Tensor, dy_MN: Tensor) -> Tensors:
    """dx = r (g - x̂ mean(g x̂)) and dw = Σ dy x̂, with r = 1 / sqrt(mean(x²) + eps), x̂ = x r, g = dy w."""
    r_M1 = (x_MN.square().mean(-1, keepdim=True) + EPS).rsqrt()
    hat_MN, g_MN = x_MN * r_M1, dy_MN * w_N
    dx_MN = r_M1 * (g_MN - hat_MN * (g_MN * hat_MN).mean(-1, keepdim=True))
    return dx_MN, (dy_MN * hat_MN).sum(0)


def backward_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """See `reference.of_dx` and `of_dw`."""
    x_MN, w_N, dy_MN = inputs
    rows = root_mean_square(x_MN, EPS)
    return (
        of_dx(rows, dy_MN * w_N, outputs[0], problem.dtype, centred=False),
        of_dw(rows, dy_MN, outputs[1], problem.dtype),
    )


def _composite(x_MN: Tensor, w_N: Tensor) -> Tensor:
    wide_MN = x_MN.float()
    scale_M1 = (wide_MN.pow(2).mean(-1, keepdim=True) + EPS).rsqrt()
    return (wide_MN * scale_M1 * w_N.float()).to(x_MN.dtype)


def _fused(x_MN: Tensor, w_N: Tensor) -> Tensor:
    from torch.nn import functional

    return functional.rms_norm(x_MN, tuple(w_N.shape), w_N, EPS)


def _composite_backward(x_MN: Tensor, w_N: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.kernels.autograd import backward_of

    return backward_of(_composite, (x_MN, w_N), (dy_MN,), (0, 1))


@variant(backend="torch", backward=_composite_backward)
def composite_eager(x_MN: Tensor, w_N: Tensor) -> Launch:
    """Single torch ops in float32, rounded at the end: every step is a kernel that reads and writes the whole matrix."""
    return lambda: _composite(x_MN, w_N)


def _eager_backward(x_MN: Tensor, w_N: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.kernels.autograd import backward_of

    return backward_of(_fused, (x_MN, w_N), (dy_MN,), (0, 1))


@variant(backend="torch", backward=_eager_backward)
def torch_eager(x_MN: Tensor, w_N: Tensor) -> Launch:
    """Fused eager: torch.nn.functional.rms_norm, one kernel on a GPU."""
    return lambda: _fused(x_MN, w_N)


def _compiled_backward(x_MN: Tensor, w_N: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.kernels.inductor import compiled_backward

    return compiled_backward(_composite, (x_MN, w_N), (dy_MN,), (0, 1))


@variant(backend="inductor", needs=("inductor",), late=True, backward=_compiled_backward)
def torch_compile(x_MN: Tensor, w_N: Tensor) -> Launch:
    """torch.compile of the composite: inductor fuses its steps into one kernel."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(_composite, x_MN, w_N)


def _liger_backward(x_MN: Tensor, w_N: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.normalisation import liger

    return liger.bind_rmsnorm_backward(x_MN, w_N, dy_MN, eps=EPS)


@variant(backend="library", needs=("liger", "triton", "cuda"), sources=("liger.py",), backward=_liger_backward)
def liger(x_MN: Tensor, w_N: Tensor) -> Launch:
    """Liger Kernel's RMSNorm in Llama's casting: Triton, one program a row of at most 65536 elements."""
    from kernelviz.ops.normalisation import liger

    return liger.bind_rmsnorm(x_MN, w_N, eps=EPS)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_two_passes(x_MN: Tensor, w_N: Tensor) -> Launch:
    """Triton, one program a row, read twice: the second time a row of 16 KiB comes from L1, and needs no registers till then."""
    from kernelviz.ops.normalisation import triton as kernels

    return kernels.bind_two_passes(kernels.Tensors(x_MN, w_N), eps=EPS)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_block_per_row(x_MN: Tensor, w_N: Tensor) -> Launch:
    """Triton, one program a row; a row of up to 64 KiB is read once and kept in registers."""
    from kernelviz.ops.normalisation import triton as kernels

    return kernels.bind_block_per_row(kernels.Tensors(x_MN, w_N), eps=EPS)


def _triton_backward(x_MN: Tensor, w_N: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.normalisation import triton_backward as kernels

    return kernels.bind(kernels.Gradients(x_MN, w_N, dy_MN), eps=EPS)


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    sources=("triton.py", "triton_backward.py"),
    backward=_triton_backward,
)
def triton_persistent(x_MN: Tensor, w_N: Tensor) -> Launch:
    """Triton, a few programs per SM walk the rows: the weight stays in registers, the next row loads ahead."""
    from kernelviz.ops.normalisation import triton as kernels

    return kernels.bind_persistent(kernels.Tensors(x_MN, w_N), eps=EPS)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_registers(x_MN: Tensor, w_N: Tensor) -> Launch:
    """CUDA C++, a block a row of up to 64 KiB in registers, 16 bytes a load wherever it starts; longer ones are read twice."""
    from kernelviz.ops.normalisation import cuda as kernels

    return kernels.bind_rows(kernels.Given(x_MN, w_N, EPS))


def _cuda_backward(x_MN: Tensor, w_N: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.normalisation import cuda_backward as kernels
    from kernelviz.ops.normalisation.cuda import Given

    return kernels.bind(kernels.Gradients(Given(x_MN, w_N, EPS), dy_MN))


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
    sources=("cuda.cu", "cuda.py", "cuda_backward.cu", "cuda_backward.py"),
    backward=_cuda_backward,
)
def cuda_cluster(x_MN: Tensor, w_N: Tensor) -> Launch:
    """CUDA C++, a row of more than 16 KiB in the registers of a cluster of blocks: read once, whatever its length."""
    from kernelviz.ops.normalisation import cuda as kernels

    return kernels.bind_cluster(kernels.Given(x_MN, w_N, EPS))


@variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), sources=("cuda_async.cu", "cuda.cu", "cuda.py"))
def cuda_async(x_MN: Tensor, w_N: Tensor) -> Launch:
    """CUDA C++, blocks that stay: each thread asks for its next words by cp.async as soon as it has written the last out."""
    from kernelviz.ops.normalisation import cuda as kernels

    return kernels.bind_async(kernels.Given(x_MN, w_N, EPS))


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
    sources=("cuda_columns.cu", "cuda_columns.py", "cuda_few_rows.cu", "cuda_async.cu", "cuda.cu", "cuda.py"),
)
def cuda_columns(x_MN: Tensor, w_N: Tensor) -> Launch:
    """CUDA C++, clusters that stay on their columns: the weight stays in registers, rows stream by, one exchange behind."""
    from kernelviz.ops.normalisation import cuda as kernels
    from kernelviz.ops.normalisation import cuda_columns as columns

    return columns.bind_columns(kernels.Given(x_MN, w_N, EPS))


_INPUTS = (TensorSpec(name="x_MN", axes=("m", "n")), TensorSpec(name="w_N", axes=("n",)))

OP = Op(
    name="rmsnorm",
    family="normalisation",
    summary="Root-mean-square normalisation of each row, times a weight",
    formula="y = x / √(mean(x²) + 10⁻⁵) · w",
    axes=AXES,
    dtypes=("bf16", "fp16", "fp32"),
    inputs=_INPUTS,
    outputs=(TensorSpec(name="y_MN", axes=("m", "n")),),
    cost=cost,
    reference=reference,
    bound=bound,
    rule="|error| ≤ |y| (2 u + (8 + √N / 2) 2⁻²⁴): statistics in fp32, at most two roundings to the output's format",
    baseline="torch_eager",
    first=(
        "composite_eager",
        "torch_eager",
        "torch_compile",
        "liger",
        "triton_block_per_row",
        "cuda_registers",
        "cuda_async",
    ),
    variants=(
        composite_eager,
        torch_eager,
        torch_compile,
        liger,
        triton_two_passes,
        triton_block_per_row,
        triton_persistent,
        cuda_registers,
        cuda_cluster,
        cuda_async,
        cuda_columns,
    ),
    presets=presets("llama-3-8b", "llama-3-70b", "qwen2.5-7b", "deepseek-v3"),
    slab="m",
    backward=Backward(
        inputs=(*_INPUTS, TensorSpec(name="dy_MN", axes=("m", "n"))),
        outputs=(TensorSpec(name="dx_MN", axes=("m", "n")), TensorSpec(name="dw_N", axes=("n",))),
        cost=backward_cost,
        reference=backward_reference,
        bound=backward_bound,
        rule=(
            "dx: u r (|g| + 4 |x̂| √Σ(g x̂)² / N) + (24 + 1.5 √N) 2⁻²⁴ r (|g| + |x̂| mean|g x̂|) + u |dx|, g = dy w; "
            "dw: 4 u √Σ(dy x̂)² + (16 + √N / 2 + √M) 2⁻²⁴ Σ|dy x̂| + u |dw|: sums in fp32, g and x̂ may be rounded"
        ),
    ),
)
