"""Cumulative sum of a vector: each output needs all inputs before it, and yet one read and one write must do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.op import Axis, Launch, Op, Preset, Sizes, Tensors, TensorSpec, variant
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """One addition an element; read once and written once.

    >>> cost({"n": 1024}, 4)
    Cost(work_flop=1024, read_bytes=4096, written_bytes=4096)
    """
    n = sizes["n"]
    return Cost(work_flop=n, read_bytes=n * itemsize_bytes, written_bytes=n * itemsize_bytes)


def reference(x_N: Tensor) -> Tensors:
    """y_k = x₁ + … + x_k, in the dtype of the input (float64 in the gate)."""
    return (x_N.cumsum(0),)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """1.01 u |y_k| + √k (2 ‖x₁…x_k‖ + max |y₁…y_k|) 2^-24: any order of additions in fp32, one rounding to the output's format.

    One accumulator errs by at most 2^-24 |y_j| with each addition, in no particular direction: together by about
    2^-24 √(Σ y_j²) / √3 ≤ √k max |y_j| 2^-24 / √3. Scans made of tiles add sums of tiles, which are differences of two y_j,
    and fewer of them. ‖x‖ pays for short prefixes, whose errors do not average yet.
    """
    import torch

    x_N, y_N = inputs[0], outputs[0]
    count_N = torch.arange(1, problem.sizes["n"] + 1, dtype=torch.float64, device=x_N.device)
    spread_N = 2 * x_N.square().cumsum(0).sqrt_() + y_N.abs().cummax(0).values
    return (stored(y_N, problem.dtype) + count_N.sqrt_() * spread_N * FP32_ROUNDOFF,)


@variant(backend="torch")
def torch_eager(x_N: Tensor) -> Launch:
    """torch.cumsum, on a GPU CUB's scan, one pass with look-back; half precision with dtype=float32, and then rounded."""
    import torch

    if x_N.dtype == torch.float32:
        return lambda: torch.cumsum(x_N, 0)
    return lambda: torch.cumsum(x_N, 0, dtype=torch.float32).to(x_N.dtype)


@variant(backend="torch", needs=("cuda",), dtypes=("fp16", "bf16"))
def torch_as_stored(x_N: Tensor) -> Launch:
    """torch.cumsum of half precision as it is: on a GPU each sum is rounded to that format, so the gate calls it wrong."""
    import torch

    return lambda: torch.cumsum(x_N, 0)


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(x_N: Tensor) -> Launch:
    """torch.compile of cumsum: on a GPU inductor makes a Triton scan with look-back, a tile at a time."""
    from kernelviz.ops.kernels.inductor import compiled

    def cumsum(x_N: Tensor) -> Tensor:
        return x_N.cumsum(0)

    return compiled(cumsum, x_N)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_three_kernels(x_N: Tensor) -> Launch:
    """Triton, sums of tiles, then what lies before each, then scans of tiles: the vector is read twice."""
    from kernelviz.ops.cumsum import triton as kernels

    return kernels.bind_three_kernels(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_three_kernels(x_N: Tensor) -> Launch:
    """CUDA C++, the same three kernels with 16-byte loads: 3 N e bytes instead of 2 N e, so two thirds of a copy at best."""
    from kernelviz.ops.cumsum import cuda as kernels

    return kernels.bind_three_kernels(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_look_back(x_N: Tensor) -> Launch:
    """CUDA C++, one pass: a tile says its sum at once and adds up what the tiles before it have said."""
    from kernelviz.ops.cumsum import cuda as kernels

    return kernels.bind_look_back(x_N)


OPS = (
    Op(
        name="cumsum",
        family="reduction",
        summary="Cumulative sum of a vector",
        formula="y_k = x₁ + … + x_k",
        axes=(Axis(name="n", caption="elements", default="2^12..2^28", cpu_default="2^14,2^16,2^18,2^20,2^22"),),
        dtypes=("fp32", "fp16", "bf16"),
        inputs=(TensorSpec(name="x_N", axes=("n",)),),
        outputs=(TensorSpec(name="y_N", axes=("n",)),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule=(
            "|error| ≤ 1.01 u |y_k| + √k (2 ‖x₁…x_k‖ + max |y₁…y_k|) 2⁻²⁴: added in fp32 in any order, rounded once to the "
            "output's format"
        ),
        baseline="torch_eager",
        first=(
            "torch_eager",
            "torch_compile",
            "cuda_three_kernels",
            "cuda_look_back",
        ),
        variants=(
            torch_eager,
            replace(torch_as_stored, only_when_named=True),
            torch_compile,
            triton_three_kernels,
            cuda_three_kernels,
            cuda_look_back,
        ),
        presets=(
            Preset(name="small", caption="Small enough for the L2 of any GPU", sizes={"n": "2^10..2^20"}),
            Preset(name="large", caption="Far larger than any L2: 256 MiB to 4 GiB in fp32", sizes={"n": "2^26..2^30"}),
        ),
    ),
)
