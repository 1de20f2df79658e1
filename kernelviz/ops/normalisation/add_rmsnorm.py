"""Residual sum and normalisation in one: what lies between two layers of a decoder; apart they move half as much again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.model_sizes import AXES, presets
from kernelviz.ops.catalog.op import Backward, Launch, Op, Sizes, Staged, Tensors, TensorSpec, variant
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, nearest_zero, stored
from kernelviz.ops.normalisation.reference import Normalised, of_dw, of_dx, root_mean_square

if TYPE_CHECKING:
    from torch import Tensor

EPS = 1e-5
"""Llama 3's `rms_norm_eps`."""


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Five operations an element: the sum and rmsnorm's four; x, r and the weight read once, s and y written once.

    >>> cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=10240, read_bytes=20480, written_bytes=16384)
    """
    m, n = sizes["m"], sizes["n"]
    read = (2 * m * n + n) * itemsize_bytes
    return Cost(work_flop=5 * m * n, read_bytes=read, written_bytes=2 * m * n * itemsize_bytes)


def reference(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> Tensors:
    """s = x + r and s / sqrt(mean(s²) + eps) * w along each row, in the dtype of the inputs (float64 in the gate)."""
    s_MN = x_MN + r_MN
    return s_MN, s_MN * (s_MN.square().mean(-1, keepdim=True) + EPS).rsqrt() * w_N


def _rows(s_MN: Tensor, dtype: str) -> Normalised:
    """The normalised sum, which may be made of the stored one: u of each element, and of the scale 4 u / √N at most.

    The scale follows the mean of the N rounding errors, weighted by s²; it errs by at most u, where one element is all.
    """
    exact = root_mean_square(s_MN, EPS)
    u = 1.01 * dtype_named(dtype).unit_roundoff
    coarse = u * min(1.0, 4 / s_MN.shape[-1] ** 0.5)
    error_MN = exact.error_MN + exact.hat_MN.abs() * (u + coarse)
    return Normalised(exact.hat_MN, exact.scale_M1, exact.scale_error + coarse, error_MN)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """s: one rounding. y: as rmsnorm's, and what it errs by because s may be rounded before it is normalised (`_rows`)."""
    s_MN, y_MN = outputs
    error_MN = (_rows(s_MN, problem.dtype).error_MN + nearest_zero(problem.dtype)) * inputs[2].abs()
    return stored(s_MN, problem.dtype), error_MN + stored(y_MN, problem.dtype, times=2)


def backward_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """rmsnorm's nine operations an element and the sum with ds; s, ds, dy and the weight read once, dx and dw written once.

    s is what the forward pass saves instead of x and r; dx is the gradient of both. The row's scale is not counted.

    >>> backward_cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=20480, read_bytes=28672, written_bytes=12288)
    """
    m, n = sizes["m"], sizes["n"]
    read, written = (3 * m * n + n) * itemsize_bytes, (m * n + n) * itemsize_bytes
    return Cost(work_flop=10 * m * n, read_bytes=read, written_bytes=written)


def backward_reference(x_MN: Tensor, r_MN: Tensor, w_N: Tensor, ds_MN: Tensor, dy_MN: Tensor) -> Tensors:
    """dx = ds + a (g - ŝ mean(g ŝ)), which is the gradient of r, too, and dw = Σ dy ŝ, a = 1 / sqrt(mean(s²) + eps)."""
    s_MN = x_MN + r_MN
    a_M1 = (s_MN.square().mean(-1, keepdim=True) + EPS).rsqrt()
    hat_MN, g_MN = s_MN * a_M1, dy_MN * w_N
    dx_MN = ds_MN + a_M1 * (g_MN - hat_MN * (g_MN * hat_MN).mean(-1, keepdim=True))
    return dx_MN, (dy_MN * hat_MN).sum(0)


def backward_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """See `reference.of_dx` and `of_dw`; the gradient that comes through y may be stored before ds is added, and be two
    terms, which are added to ds one after the other: 2^-24 (|ds| + |dx|).
    """
    x_MN, r_MN, w_N, ds_MN, dy_MN = inputs
    rows = _rows(x_MN + r_MN, problem.dtype)
    through_y_MN = outputs[0] - ds_MN
    error_MN = of_dx(rows, dy_MN * w_N, through_y_MN, problem.dtype, centred=False)
    error_MN = error_MN + FP32_ROUNDOFF * (ds_MN.abs() + outputs[0].abs())
    return error_MN + stored(outputs[0], problem.dtype), of_dw(rows, dy_MN, outputs[1], problem.dtype)


def _composite(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> tuple[Tensor, Tensor]:
    s_MN = x_MN + r_MN
    wide_MN = s_MN.float()
    scale_M1 = (wide_MN.pow(2).mean(-1, keepdim=True) + EPS).rsqrt()
    return s_MN, (wide_MN * scale_M1 * w_N.float()).to(x_MN.dtype)


def _fused(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> tuple[Tensor, Tensor]:
    from torch.nn import functional

    s_MN = x_MN + r_MN
    return s_MN, functional.rms_norm(s_MN, tuple(w_N.shape), w_N, EPS)


def _composite_backward(x_MN: Tensor, r_MN: Tensor, w_N: Tensor, ds_MN: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.kernels.autograd import backward_of

    return backward_of(_composite, (x_MN, r_MN, w_N), (ds_MN, dy_MN), (0, 2))


@variant(backend="torch", backward=_composite_backward)
def composite_eager(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> Launch:
    """Single torch ops in float32, rounded at the end: every step is a kernel that reads and writes the whole matrix."""
    return lambda: _composite(x_MN, r_MN, w_N)


def _eager_backward(x_MN: Tensor, r_MN: Tensor, w_N: Tensor, ds_MN: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.kernels.autograd import backward_of

    return backward_of(_fused, (x_MN, r_MN, w_N), (ds_MN, dy_MN), (0, 2))


@variant(backend="torch", backward=_eager_backward)
def torch_eager(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> Launch:
    """Plain torch: the sum, then torch.nn.functional.rms_norm; s is written and read again."""
    return lambda: _fused(x_MN, r_MN, w_N)


def _compiled_backward(x_MN: Tensor, r_MN: Tensor, w_N: Tensor, ds_MN: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.kernels.inductor import compiled_backward

    return compiled_backward(_composite, (x_MN, r_MN, w_N), (ds_MN, dy_MN), (0, 2))


@variant(backend="inductor", needs=("inductor",), late=True, backward=_compiled_backward)
def torch_compile(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> Launch:
    """torch.compile of the composite: inductor fuses the sum and the normalisation into one kernel."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(_composite, x_MN, r_MN, w_N)


def _liger_backward(x_MN: Tensor, r_MN: Tensor, w_N: Tensor, ds_MN: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.normalisation import liger

    return liger.bind_add_rmsnorm_backward(x_MN, r_MN, w_N, ds_MN, dy_MN, eps=EPS)


@variant(backend="library", needs=("liger", "triton", "cuda"), sources=("liger.py",), backward=_liger_backward)
def liger(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> Launch:
    """Liger Kernel's fused_add_rms_norm in Llama's casting: Triton, one program a row of at most 65536 elements."""
    from kernelviz.ops.normalisation import liger

    return liger.bind_add_rmsnorm(x_MN, r_MN, w_N, eps=EPS)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_two_passes(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> Launch:
    """Triton, one program a row, read twice: the second time a row of 16 KiB comes from L1, and needs no registers till then."""
    from kernelviz.ops.normalisation import triton as kernels

    return kernels.bind_two_passes(kernels.Tensors(x_MN, w_N, r_MN=r_MN), eps=EPS)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_block_per_row(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> Launch:
    """Triton, one program a row; a row of up to 64 KiB is read once and kept in registers."""
    from kernelviz.ops.normalisation import triton as kernels

    return kernels.bind_block_per_row(kernels.Tensors(x_MN, w_N, r_MN=r_MN), eps=EPS)


def _triton_backward(x_MN: Tensor, r_MN: Tensor, w_N: Tensor, ds_MN: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.normalisation import triton_backward as kernels

    return kernels.bind(kernels.Gradients(x_MN, w_N, dy_MN, r_MN=r_MN, ds_MN=ds_MN), eps=EPS)


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    sources=("triton.py", "triton_backward.py"),
    backward=_triton_backward,
)
def triton_persistent(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> Launch:
    """Triton, a few programs per SM walk the rows: the weight stays in registers, the next row loads ahead."""
    from kernelviz.ops.normalisation import triton as kernels

    return kernels.bind_persistent(kernels.Tensors(x_MN, w_N, r_MN=r_MN), eps=EPS)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_registers(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> Launch:
    """CUDA C++, a block a row of up to 64 KiB in registers, 16 bytes a load wherever it starts; longer ones are read twice."""
    from kernelviz.ops.normalisation import cuda as kernels

    return kernels.bind_rows(kernels.Given(x_MN, w_N, EPS, r_MN=r_MN))


def _cuda_backward(x_MN: Tensor, r_MN: Tensor, w_N: Tensor, ds_MN: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.normalisation import cuda_backward as kernels
    from kernelviz.ops.normalisation.cuda import Given

    return kernels.bind(kernels.Gradients(Given(x_MN, w_N, EPS, r_MN=r_MN), dy_MN, ds_MN))


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
    sources=("cuda.cu", "cuda.py", "cuda_backward.cu", "cuda_backward.py"),
    backward=_cuda_backward,
)
def cuda_cluster(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> Launch:
    """CUDA C++, a row of more than 16 KiB in the registers of a cluster of blocks: read once, whatever its length."""
    from kernelviz.ops.normalisation import cuda as kernels

    return kernels.bind_cluster(kernels.Given(x_MN, w_N, EPS, r_MN=r_MN))


@variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), sources=("cuda_async.cu", "cuda.cu", "cuda.py"))
def cuda_async(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> Launch:
    """CUDA C++, blocks that stay: each thread asks for its next words by cp.async as soon as it has written the last out."""
    from kernelviz.ops.normalisation import cuda as kernels

    return kernels.bind_async(kernels.Given(x_MN, w_N, EPS, r_MN=r_MN))


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
    sources=("cuda_columns.cu", "cuda_columns.py", "cuda_few_rows.cu", "cuda_async.cu", "cuda.cu", "cuda.py"),
)
def cuda_columns(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> Launch:
    """CUDA C++, clusters that stay on their columns: the weight stays in registers, rows stream by, one exchange behind."""
    from kernelviz.ops.normalisation import cuda as kernels
    from kernelviz.ops.normalisation import cuda_columns as columns

    return columns.bind_columns(kernels.Given(x_MN, w_N, EPS, r_MN=r_MN))


_INPUTS = (
    TensorSpec(name="x_MN", axes=("m", "n")),
    TensorSpec(name="r_MN", axes=("m", "n")),
    TensorSpec(name="w_N", axes=("n",)),
)

OP = Op(
    name="add_rmsnorm",
    family="normalisation",
    summary="Sum with the residual, stored, and its root-mean-square normalisation, times a weight",
    formula="s = x + r, y = s / √(mean(s²) + 10⁻⁵) · w",
    axes=AXES,
    dtypes=("bf16", "fp16", "fp32"),
    inputs=_INPUTS,
    outputs=(TensorSpec(name="s_MN", axes=("m", "n")), TensorSpec(name="y_MN", axes=("m", "n"))),
    cost=cost,
    reference=reference,
    bound=bound,
    rule=(
        "s: u |s|; y: |y| (3 u + min(1, 4 / √N) u + (8 + √N / 2) 2⁻²⁴): statistics in fp32; rounded may be s, the normalised "
        "row, and y"
    ),
    baseline="torch_eager",
    first=("torch_eager", "torch_compile", "liger", "triton_block_per_row", "cuda_registers", "cuda_async"),
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
        inputs=(*_INPUTS, TensorSpec(name="ds_MN", axes=("m", "n")), TensorSpec(name="dy_MN", axes=("m", "n"))),
        outputs=(TensorSpec(name="dx_MN", axes=("m", "n")), TensorSpec(name="dw_N", axes=("n",))),
        cost=backward_cost,
        reference=backward_reference,
        bound=backward_bound,
        rule=(
            "dx: u a (|g| + 4 |ŝ| √Σ(g ŝ)² / N) + a (e |c| + |ŝ| mean(|g| e)) + a (ρ + (16 + √N) 2⁻²⁴) (|g| + |ŝ| mean|g ŝ|) "
            "+ 2⁻²⁴ (|ds| + |dx|) + u (|dx - ds| + |dx|), g = dy w, c = mean(g ŝ), e and ρ the errors of ŝ and a, with s rounded"
            "; dw: 4 u √Σ(dy ŝ)² + Σ|dy| e + (8 + √M) 2⁻²⁴ Σ|dy ŝ| + u |dw|"
        ),
    ),
)
