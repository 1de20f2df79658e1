"""Layer normalisation of rows, with weight and bias: mean and variance between one read and one write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.model_sizes import AXES, presets
from kernelviz.ops.catalog.op import Backward, Launch, Op, Sizes, Staged, Tensors, TensorSpec, variant
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.normalisation.reference import of_db, of_dw, of_dx, standard_score

if TYPE_CHECKING:
    from torch import Tensor

EPS = 1e-5
"""GPT-2's `layer_norm_epsilon`, and torch's default."""


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Seven operations an element (add; subtract, square, add; product, product, add); rows, weight and bias read once.

    >>> cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=14336, read_bytes=16384, written_bytes=8192)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=7 * m * n, read_bytes=(m * n + 2 * n) * itemsize_bytes, written_bytes=m * n * itemsize_bytes)


def reference(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Tensors:
    """(x - mean) / sqrt(var + eps) * w + b along each row, in the dtype of the inputs (float64 in the gate)."""
    away_MN = x_MN - x_MN.mean(-1, keepdim=True)
    return (away_MN * (away_MN.square().mean(-1, keepdim=True) + EPS).rsqrt() * w_N + b_N,)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """|w| times what x̂ errs by (`reference.standard_score`), the last product and sum in fp32, one rounding.

    The second sum of the rule, 2 (|x̂ w| + |b|) 2^-24, pays for x̂ w + b where it is written as x (r w) + (b - μ r w).
    """
    x_MN, w_N, b_N = inputs
    rows = standard_score(x_MN, EPS)
    last_MN = 2 * FP32_ROUNDOFF * ((rows.hat_MN * w_N).abs() + b_N.abs())
    return (rows.error_MN * w_N.abs() + last_MN + stored(outputs[0], problem.dtype),)


def backward_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Twelve operations an element: rmsnorm's nine, x - μ, and the sums of g and dy.

    Rows, weight and dy read once, dx, dw and db written once; the bias is not read. Nor are the mean and the scale of a row,
    which the forward pass saves, counted.

    >>> backward_cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=24576, read_bytes=20480, written_bytes=16384)
    """
    m, n = sizes["m"], sizes["n"]
    read, written = (2 * m * n + n) * itemsize_bytes, (m * n + 2 * n) * itemsize_bytes
    return Cost(work_flop=12 * m * n, read_bytes=read, written_bytes=written)


def backward_reference(x_MN: Tensor, w_N: Tensor, b_N: Tensor, dy_MN: Tensor) -> Tensors:
    """dx = r (g - mean(g) - x̂ mean(g x̂)), dw = Σ dy x̂ and db = Σ dy, with r = 1 / sqrt(var + eps), g = dy w."""
    away_MN = x_MN - x_MN.mean(-1, keepdim=True)
    r_M1 = (away_MN.square().mean(-1, keepdim=True) + EPS).rsqrt()
    hat_MN, g_MN = away_MN * r_M1, dy_MN * w_N
    level_M1 = g_MN.mean(-1, keepdim=True)
    dx_MN = r_M1 * (g_MN - level_M1 - hat_MN * (g_MN * hat_MN).mean(-1, keepdim=True))
    return dx_MN, (dy_MN * hat_MN).sum(0), dy_MN.sum(0)


def backward_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """See `reference.of_dx`, `of_dw` and `of_db`."""
    x_MN, w_N, _, dy_MN = inputs
    rows = standard_score(x_MN, EPS)
    return (
        of_dx(rows, dy_MN * w_N, outputs[0], problem.dtype, centred=True),
        of_dw(rows, dy_MN, outputs[1], problem.dtype),
        of_db(dy_MN, outputs[2], problem.dtype),
    )


def _composite(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Tensor:
    wide_MN = x_MN.float()
    away_MN = wide_MN - wide_MN.mean(-1, keepdim=True)
    scale_M1 = (away_MN.pow(2).mean(-1, keepdim=True) + EPS).rsqrt()
    return (away_MN * scale_M1 * w_N.float() + b_N.float()).to(x_MN.dtype)


def _fused(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Tensor:
    from torch.nn import functional

    return functional.layer_norm(x_MN, tuple(w_N.shape), w_N, b_N, EPS)


def _composite_backward(x_MN: Tensor, w_N: Tensor, b_N: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.kernels.autograd import backward_of

    return backward_of(_composite, (x_MN, w_N, b_N), (dy_MN,), (0, 1, 2))


@variant(backend="torch", backward=_composite_backward)
def composite_eager(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """Single torch ops in float32, rounded at the end: every step is a kernel that reads and writes the whole matrix."""
    return lambda: _composite(x_MN, w_N, b_N)


def _fused_in_fp32(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Tensor:
    return _fused(x_MN.float(), w_N.float(), b_N.float()).to(x_MN.dtype)


def _eager_backward(x_MN: Tensor, w_N: Tensor, b_N: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.kernels.autograd import backward_of

    # On a CPU torch adds up db in the format of dy: 16 bits are too few for that.
    function = _fused_in_fp32 if x_MN.device.type == "cpu" else _fused
    return backward_of(function, (x_MN, w_N, b_N), (dy_MN,), (0, 1, 2))


@variant(backend="torch", backward=_eager_backward)
def torch_eager(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """Fused eager: torch.nn.functional.layer_norm, one kernel on a GPU."""
    return lambda: _fused(x_MN, w_N, b_N)


def _compiled_backward(x_MN: Tensor, w_N: Tensor, b_N: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.kernels.inductor import compiled_backward

    return compiled_backward(_composite, (x_MN, w_N, b_N), (dy_MN,), (0, 1, 2))


@variant(backend="inductor", needs=("inductor",), late=True, backward=_compiled_backward)
def torch_compile(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """torch.compile of the composite: inductor fuses its steps into one kernel."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(_composite, x_MN, w_N, b_N)


def _liger_backward(x_MN: Tensor, w_N: Tensor, b_N: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.normalisation import liger

    return liger.bind_layernorm_backward(x_MN, w_N, b_N, dy_MN, eps=EPS)


@variant(backend="library", needs=("liger", "triton", "cuda"), sources=("liger.py",), backward=_liger_backward)
def liger(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """Liger Kernel's LayerNorm: Triton, one program a row of at most 65536 elements."""
    from kernelviz.ops.normalisation import liger

    return liger.bind_layernorm(x_MN, w_N, b_N, eps=EPS)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_two_passes(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """Triton, one program a row, read twice: the second time a row of 16 KiB comes from L1, and needs no registers till then."""
    from kernelviz.ops.normalisation import triton as kernels

    return kernels.bind_two_passes(kernels.Tensors(x_MN, w_N, b_N=b_N), eps=EPS)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_block_per_row(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """Triton, one program a row; a row of up to 64 KiB is read once and kept in registers."""
    from kernelviz.ops.normalisation import triton as kernels

    return kernels.bind_block_per_row(kernels.Tensors(x_MN, w_N, b_N=b_N), eps=EPS)


def _triton_backward(x_MN: Tensor, w_N: Tensor, b_N: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.normalisation import triton_backward as kernels

    return kernels.bind(kernels.Gradients(x_MN, w_N, dy_MN, b_N=b_N), eps=EPS)


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    sources=("triton.py", "triton_backward.py"),
    backward=_triton_backward,
)
def triton_persistent(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """Triton, a few programs per SM walk the rows: weight and bias stay in registers, the next row loads ahead."""
    from kernelviz.ops.normalisation import triton as kernels

    return kernels.bind_persistent(kernels.Tensors(x_MN, w_N, b_N=b_N), eps=EPS)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_registers(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """CUDA C++, a block a row of up to 64 KiB in registers, 16 bytes a load wherever it starts; longer ones are read twice."""
    from kernelviz.ops.normalisation import cuda as kernels

    return kernels.bind_rows(kernels.Given(x_MN, w_N, EPS, b_N=b_N))


def _cuda_backward(x_MN: Tensor, w_N: Tensor, b_N: Tensor, dy_MN: Tensor) -> Staged:
    from kernelviz.ops.normalisation import cuda_backward as kernels
    from kernelviz.ops.normalisation.cuda import Given

    return kernels.bind(kernels.Gradients(Given(x_MN, w_N, EPS, b_N=b_N), dy_MN))


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
    sources=("cuda.cu", "cuda.py", "cuda_backward.cu", "cuda_backward.py"),
    backward=_cuda_backward,
)
def cuda_cluster(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """CUDA C++, a row of more than 16 KiB in the registers of a cluster of blocks: read once, whatever its length."""
    from kernelviz.ops.normalisation import cuda as kernels

    return kernels.bind_cluster(kernels.Given(x_MN, w_N, EPS, b_N=b_N))


@variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), sources=("cuda_async.cu", "cuda.cu", "cuda.py"))
def cuda_async(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """CUDA C++, blocks that stay: each thread asks for its next words by cp.async as soon as it has written the last out."""
    from kernelviz.ops.normalisation import cuda as kernels

    return kernels.bind_async(kernels.Given(x_MN, w_N, EPS, b_N=b_N))


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
    sources=("cuda_columns.cu", "cuda_columns.py", "cuda_few_rows.cu", "cuda_async.cu", "cuda.cu", "cuda.py"),
)
def cuda_columns(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
    """CUDA C++, clusters that stay on their columns: weight and bias stay in registers, rows stream by, one exchange behind."""
    from kernelviz.ops.normalisation import cuda as kernels
    from kernelviz.ops.normalisation import cuda_columns as columns

    return columns.bind_columns(kernels.Given(x_MN, w_N, EPS, b_N=b_N))


_INPUTS = (
    TensorSpec(name="x_MN", axes=("m", "n")),
    TensorSpec(name="w_N", axes=("n",)),
    TensorSpec(name="b_N", axes=("n",)),
)

OP = Op(
    name="layernorm",
    family="normalisation",
    summary="Layer normalisation of each row, with weight and bias",
    formula="y = (x − mean x) / √(var x + 10⁻⁵) · w + b",
    axes=AXES,
    dtypes=("bf16", "fp16", "fp32"),
    inputs=_INPUTS,
    outputs=(TensorSpec(name="y_MN", axes=("m", "n")),),
    cost=cost,
    reference=reference,
    bound=bound,
    rule=(
        "|error| ≤ |w| (s (r mean|x| + |x̂| (1 + (mean(x²) + μ²) / v)) + 4 r (|x| + |μ|) 2⁻²⁴) + 2 (|x̂ w| + |b|) 2⁻²⁴ + u |y|, "
        "s = (8 + √N / 2) 2⁻²⁴, v = var + 10⁻⁵, r = 1 / √v: statistics in fp32, one rounding to the output's format"
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
    presets=presets("gpt-2", "bert-base", "llama-3-8b", "llama-3-70b"),
    slab="m",
    backward=Backward(
        inputs=(*_INPUTS, TensorSpec(name="dy_MN", axes=("m", "n"))),
        outputs=(
            TensorSpec(name="dx_MN", axes=("m", "n")),
            TensorSpec(name="dw_N", axes=("n",)),
            TensorSpec(name="db_N", axes=("n",)),
        ),
        cost=backward_cost,
        reference=backward_reference,
        bound=backward_bound,
        rule=(
            "dx: u r (|g| + 4 √Σg² / N + 4 |x̂| √Σ(g x̂)² / N) + r (e |c| + |x̂| mean(|g| e)) + r (ρ + (16 + √N) 2⁻²⁴) "
            "(|g| + mean|g| + |x̂| mean|g x̂|) + u |dx|, g = dy w, c = mean(g x̂), e and ρ the errors of x̂ and r; "
            "dw: 4 u √Σ(dy x̂)² + Σ|dy| e + (8 + √M) 2⁻²⁴ Σ|dy x̂| + u |dw|; db: (8 + √M) 2⁻²⁴ Σ|dy| + u |db|"
        ),
    ),
)
