"""Root-mean-square normalisation of rows: memory-bound when fused, several times slower when composed of single ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.op import Axis, Launch, Op, Preset, Sizes, Tensors, TensorSpec, variant
from kernelviz.ops.rounding import FP32_ROUNDOFF, stored

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
    stores the normalised row before it applies the weight.
    """
    statistics = (8 + problem.sizes["n"] ** 0.5 / 2) * FP32_ROUNDOFF
    return (outputs[0].abs() * statistics + stored(outputs[0], problem.dtype, times=2),)


@variant(backend="torch")
def composite_eager(x_MN: Tensor, w_N: Tensor) -> Launch:
    """Single torch ops in float32, rounded at the end: every step is a kernel that reads and writes the whole matrix."""

    def launch() -> Tensor:
        wide_MN = x_MN.float()
        scale_M1 = (wide_MN.pow(2).mean(-1, keepdim=True) + EPS).rsqrt()
        return (wide_MN * scale_M1 * w_N.float()).to(x_MN.dtype)

    return launch


@variant(backend="torch")
def torch_eager(x_MN: Tensor, w_N: Tensor) -> Launch:
    """Fused eager: torch.nn.functional.rms_norm, one kernel on a GPU."""
    from torch.nn import functional

    shape = tuple(w_N.shape)
    return lambda: functional.rms_norm(x_MN, shape, w_N, EPS)


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(x_MN: Tensor, w_N: Tensor) -> Launch:
    """torch.compile of the composite: inductor fuses its steps into one kernel."""
    from kernelviz.ops.inductor import compiled

    def composite(x_MN: Tensor, w_N: Tensor) -> Tensor:
        wide_MN = x_MN.float()
        scale_M1 = (wide_MN.pow(2).mean(-1, keepdim=True) + EPS).rsqrt()
        return (wide_MN * scale_M1 * w_N.float()).to(x_MN.dtype)

    return compiled(composite, x_MN, w_N)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_block_per_row(x_MN: Tensor, w_N: Tensor) -> Launch:
    """Triton, one program a row; a row of up to 64 KiB is read once and kept in registers."""
    from kernelviz.ops.rmsnorm import triton as kernels

    return kernels.bind_block_per_row(x_MN, w_N, eps=EPS)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_persistent(x_MN: Tensor, w_N: Tensor) -> Launch:
    """Triton, a few programs per SM walk the rows: the weight stays in registers, the next row loads ahead."""
    from kernelviz.ops.rmsnorm import triton as kernels

    return kernels.bind_persistent(x_MN, w_N, eps=EPS)


def _preset(name: str, caption: str, hidden: int) -> Preset:
    return Preset(name=name, caption=caption, sizes={"m": "1,16,64,512,4096,8192", "n": str(hidden)})


OPS = (
    Op(
        name="rmsnorm",
        family="normalisation",
        summary="Root-mean-square normalisation of each row, times a weight",
        formula="y = x / √(mean(x²) + 10⁻⁵) · w",
        axes=(
            Axis(name="m", caption="rows", default="2^27/n", cpu_default="2^20/n"),
            Axis(name="n", caption="row length", default="2^10..2^17", cpu_default="2^8,2^10,2^12"),
        ),
        dtypes=("bf16", "fp16", "fp32"),
        inputs=(TensorSpec(name="x_MN", axes=("m", "n")), TensorSpec(name="w_N", axes=("n",))),
        outputs=(TensorSpec(name="y_MN", axes=("m", "n")),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule="|error| ≤ |y| (2 u + (8 + √N / 2) 2⁻²⁴): statistics in fp32, at most two roundings to the output's format",
        baseline="torch_eager",
        first=("composite_eager", "torch_eager", "torch_compile"),
        variants=(composite_eager, torch_eager, torch_compile, triton_block_per_row, triton_persistent),
        presets=(
            _preset("llama-3-8b", "Llama 3 8B, hidden size 4096", 4096),
            _preset("llama-3-70b", "Llama 3 70B, hidden size 8192", 8192),
            _preset("qwen2.5-7b", "Qwen2.5 7B, hidden size 3584", 3584),
            _preset("deepseek-v3", "DeepSeek-V3, hidden size 7168", 7168),
        ),
        slab="m",
    ),
)
