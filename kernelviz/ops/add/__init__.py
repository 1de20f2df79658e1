"""Elementwise addition: the plainest memory-bound op, two reads and one write an element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.op import Axis, Launch, Op, Sizes, Tensors, TensorSpec, variant
from kernelviz.ops.rounding import stored

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """N additions; x and y read, the sum written.

    >>> cost({"n": 1024}, 4)
    Cost(work_flop=1024, read_bytes=8192, written_bytes=4096)
    """
    n = sizes["n"]
    return Cost(work_flop=n, read_bytes=2 * n * itemsize_bytes, written_bytes=n * itemsize_bytes)


def reference(x_N: Tensor, y_N: Tensor) -> Tensors:
    """The sum, in the dtype of the inputs (float64 in the gate)."""
    return (x_N + y_N,)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """One rounding of the exact sum to the output's format, in fp32 first where the format is narrower: 1.01 u |sum|."""
    return (stored(outputs[0], problem.dtype),)


@variant(backend="torch")
def torch_eager(x_N: Tensor, y_N: Tensor) -> Launch:
    """torch.add into a buffer that is there already."""
    import torch

    out_N = torch.empty_like(x_N)
    return lambda: torch.add(x_N, y_N, out=out_N)


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(x_N: Tensor, y_N: Tensor) -> Launch:
    """torch.compile: on a GPU one Triton kernel made by inductor, on a CPU vectorised C++."""
    from kernelviz.ops.inductor import compiled

    def plus(x_N: Tensor, y_N: Tensor) -> Tensor:
        return x_N + y_N

    return compiled(plus, x_N, y_N)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_block(x_N: Tensor, y_N: Tensor) -> Launch:
    """Triton, 1024 elements a program whatever the size."""
    from kernelviz.ops.add import triton as kernels

    return kernels.bind_add(x_N, y_N, block=1024)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_adaptive(x_N: Tensor, y_N: Tensor) -> Launch:
    """Triton, 256, 512 or 1024 elements a program by size, so that small problems still fill the GPU."""
    from kernelviz.ops.add import triton as kernels

    return kernels.bind_add(x_N, y_N, block=kernels.adaptive_block(x_N.numel()))


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_scalar(x_N: Tensor, y_N: Tensor) -> Launch:
    """CUDA C++, one element a thread: every load and store moves 4 bytes (2 in half precision)."""
    from kernelviz.ops.add import cuda as kernels

    return kernels.bind_scalar(x_N, y_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_vec16(x_N: Tensor, y_N: Tensor) -> Launch:
    """CUDA C++, 16 bytes a load and store: a quarter of the instructions for the same traffic."""
    from kernelviz.ops.add import cuda as kernels

    return kernels.bind_vec16(x_N, y_N)


OPS = (
    Op(
        name="add",
        family="elementwise",
        summary="Elementwise sum of two vectors",
        formula="z = x + y",
        axes=(Axis(name="n", caption="elements", default="2^12..2^28", cpu_default="2^14,2^16,2^18,2^20,2^22"),),
        dtypes=("fp32", "fp16", "bf16"),
        inputs=(TensorSpec(name="x_N", axes=("n",)), TensorSpec(name="y_N", axes=("n",))),
        outputs=(TensorSpec(name="z_N", axes=("n",)),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule="|error| ≤ 1.01 u |x + y|: one rounding to the output's format",
        baseline="torch_eager",
        first=("torch_eager", "torch_compile", "triton_block", "triton_adaptive", "cuda_scalar", "cuda_vec16"),
        variants=(torch_eager, torch_compile, triton_block, triton_adaptive, cuda_scalar, cuda_vec16),
        slab="n",
    ),
)
