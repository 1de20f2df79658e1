"""Multiplication by a scalar: the op that a first extension or kernel of one's own is usually written for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.op import Axis, Launch, Op, Preset, Sizes, Tensors, TensorSpec, variant
from kernelviz.ops.catalog.rounding import stored

if TYPE_CHECKING:
    from torch import Tensor

SCALE = 0.7
"""The scalar, as a caller writes it. No power of two, whose products would be exact and so prove nothing."""
SCALE_FP32 = 11744051 * 2.0**-24
"""The fp32 number nearest to 0.7: what every variant multiplies by. torch multiplies fp32, fp16 and bf16 tensors in fp32 (its
`opmath_type`), with the scalar rounded to that; a kernel's or an extension's `float` argument is the same number."""


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """One product an element, read once and written once.

    >>> cost({"n": 1024}, 4)
    Cost(work_flop=1024, read_bytes=4096, written_bytes=4096)
    """
    n = sizes["n"]
    return Cost(work_flop=n, read_bytes=n * itemsize_bytes, written_bytes=n * itemsize_bytes)


def reference(x_N: Tensor) -> Tensors:
    """x times the fp32 number nearest to 0.7, in the dtype of the input (float64 in the gate)."""
    return (x_N * SCALE_FP32,)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """One rounding of the exact product to the output's format, in fp32 first where the format is narrower: 1.01 u |y|.

    The scalar's own rounding to fp32 is no error: it is the same in every variant, and the reference's scalar has it, too.
    """
    return (stored(outputs[0], problem.dtype),)


@variant(backend="torch")
def torch_eager(x_N: Tensor) -> Launch:
    """torch.mul by a Python float, into a buffer that is there already."""
    import torch

    out_N = torch.empty_like(x_N)
    return lambda: torch.mul(x_N, SCALE, out=out_N)


@variant(backend="cpp", needs=("cpu", "cxx"), late=True, sources=("extension.cpp", "extension.py"))
def cpp_extension(x_N: Tensor) -> Launch:
    """A C++ extension of torch, built with -O3: the body is torch's own product, so it can only save Python's dispatch."""
    from kernelviz.ops.scale import extension

    return extension.bind_custom_scale(x_N, SCALE)


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(x_N: Tensor) -> Launch:
    """torch.compile: on a GPU one Triton kernel made by inductor, on a CPU vectorised C++."""
    from kernelviz.ops.kernels.inductor import compiled

    def times(x_N: Tensor) -> Tensor:
        return x_N * SCALE

    return compiled(times, x_N)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_block(x_N: Tensor) -> Launch:
    """Triton, 1024 elements a program whatever the size."""
    from kernelviz.ops.scale import triton as kernels

    return kernels.bind_scale(x_N, SCALE, block=1024)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_scalar(x_N: Tensor) -> Launch:
    """CUDA C++, one element a thread: every load and store moves 4 bytes (2 in half precision)."""
    from kernelviz.ops.scale import cuda as kernels

    return kernels.bind_scalar(x_N, SCALE)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_vec16(x_N: Tensor) -> Launch:
    """CUDA C++, 16 bytes a thread: a quarter of the instructions for the same traffic."""
    from kernelviz.ops.scale import cuda as kernels

    return kernels.bind_vec16(x_N, SCALE)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_vec16_unrolled(x_N: Tensor) -> Launch:
    """CUDA C++, four 16-byte loads of a thread in flight before its stores, streaming: ahead at 2^20, behind at 2^28."""
    from kernelviz.ops.scale import cuda as kernels

    return kernels.bind_unrolled(x_N, SCALE)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_adaptive(x_N: Tensor) -> Launch:
    """CUDA C++, one to four words a thread by size, streaming loads only as long as the L2 can keep what is written."""
    from kernelviz.ops.scale import cuda as kernels

    return kernels.bind_adaptive(x_N, SCALE)


OPS = (
    Op(
        name="scale",
        family="elementwise",
        summary="Product of a vector and a scalar",
        formula="y = 0.7 · x",
        axes=(Axis(name="n", caption="elements", default="2^12..2^28", cpu_default="2^14,2^16,2^18,2^20,2^22"),),
        dtypes=("fp32", "fp16", "bf16"),
        inputs=(TensorSpec(name="x_N", axes=("n",)),),
        outputs=(TensorSpec(name="y_N", axes=("n",)),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule="|error| ≤ 1.01 u |x · s|, s = 0.7 in fp32: one rounding to the output's format",
        baseline="torch_eager",
        first=(
            "torch_eager",
            "cpp_extension",
            "torch_compile",
            "triton_block",
            "cuda_scalar",
            "cuda_vec16",
            "cuda_vec16_unrolled",
            "cuda_adaptive",
        ),
        variants=(
            torch_eager,
            cpp_extension,
            torch_compile,
            triton_block,
            cuda_scalar,
            cuda_vec16,
            cuda_vec16_unrolled,
            cuda_adaptive,
        ),
        presets=(
            Preset(
                name="published",
                caption="1024 × 1024, where a custom kernel was published as 1.7 times as fast: a time of launches",
                sizes={"n": "2^20"},
            ),
            Preset(name="large", caption="Far larger than any L2: 256 MiB to 4 GiB in fp32", sizes={"n": "2^26..2^30"}),
        ),
        slab="n",
    ),
)
