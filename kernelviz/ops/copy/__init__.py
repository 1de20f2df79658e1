"""Copy: no arithmetic at all, so what any memory-bound op with one read a write can reach at best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.op import Axis, Launch, Op, Preset, Sizes, Tensors, TensorSpec, variant
from kernelviz.ops.copy.strided import STRIDED_COPY

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Every element read once and written once; no arithmetic.

    >>> cost({"n": 1024}, 4)
    Cost(work_flop=0, read_bytes=4096, written_bytes=4096)
    """
    n = sizes["n"]
    return Cost(work_flop=0, read_bytes=n * itemsize_bytes, written_bytes=n * itemsize_bytes)


def reference(x_N: Tensor) -> Tensors:
    """The input, element for element."""
    return (x_N.clone(),)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Zero: nothing is rounded, so nothing may differ."""
    return (outputs[0].new_zeros(()).expand_as(outputs[0]),)


@variant(backend="torch")
def torch_eager(x_N: Tensor) -> Launch:
    """Tensor.copy_ into a buffer that is there already: on a GPU the driver's own device-to-device copy."""
    import torch

    out_N = torch.empty_like(x_N)
    return lambda: out_N.copy_(x_N)


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(x_N: Tensor) -> Launch:
    """torch.compile of clone, on the elements' bits: on a GPU one Triton kernel made by inductor, on a CPU vectorised C++."""
    import torch

    from kernelviz.ops.kernels.inductor import compiled

    # As integers: inductor's kernels widen 16-bit floats to fp32 and round them back, which rewrites the bits of a NaN.
    # Not as x + 0, which turns -0.0 into 0.0.
    bits = torch.int32 if x_N.element_size() == 4 else torch.int16

    def clone(x_N: Tensor) -> Tensor:
        return x_N.clone()

    run = compiled(clone, x_N.view(bits))
    dtype = x_N.dtype

    def launch() -> Tensor:
        result = run()
        assert not isinstance(result, tuple)
        return result.view(dtype)  # the same memory: no kernel

    return launch


@variant(backend="triton", needs=("triton", "cuda"))
def triton_block(x_N: Tensor) -> Launch:
    """Triton, 1024 elements a program whatever the size."""
    from kernelviz.ops.copy import triton as kernels

    return kernels.bind_block(x_N)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_persistent(x_N: Tensor) -> Launch:
    """Triton, as many programs as the GPU holds at once, each striding through the vector in blocks of 16 KiB."""
    from kernelviz.ops.copy import triton as kernels

    return kernels.bind_persistent(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_scalar(x_N: Tensor) -> Launch:
    """CUDA C++, one element a thread: every load and store moves 4 bytes (2 in half precision)."""
    from kernelviz.ops.copy import cuda as kernels

    return kernels.bind_scalar(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_vec16(x_N: Tensor) -> Launch:
    """CUDA C++, 16 bytes a thread: a quarter of the instructions for the same traffic."""
    from kernelviz.ops.copy import cuda as kernels

    return kernels.bind_vec16(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_vec16_unrolled(x_N: Tensor) -> Launch:
    """CUDA C++, four 16-byte loads of a thread in flight before its stores, streaming: ahead at 2^20, behind at 2^28."""
    from kernelviz.ops.copy import cuda as kernels

    return kernels.bind_unrolled(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_adaptive(x_N: Tensor) -> Launch:
    """CUDA C++, one to four words a thread by size, streaming loads only as long as the L2 can keep what is written."""
    from kernelviz.ops.copy import cuda as kernels

    return kernels.bind_adaptive(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"))
def cuda_bulk(x_N: Tensor) -> Launch:
    """CUDA C++ for Hopper, bulk copies by the SM's copy engine (TMA): one thread moves 2 KiB, no register sees a number."""
    from kernelviz.ops.copy import cuda as kernels

    return kernels.bind_bulk(x_N)


OPS = (
    Op(
        name="copy",
        family="elementwise",
        summary="Copy of a vector: the reference line of every memory-bound op",
        formula="y = x",
        axes=(Axis(name="n", caption="elements", default="2^12..2^28", cpu_default="2^14,2^16,2^18,2^20,2^22"),),
        dtypes=("fp32", "fp16", "bf16"),
        inputs=(TensorSpec(name="x_N", axes=("n",)),),
        outputs=(TensorSpec(name="y_N", axes=("n",)),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule="exact: y = x, no rounding",
        baseline="torch_eager",
        first=(
            "torch_eager",
            "torch_compile",
            "triton_block",
            "triton_persistent",
            "cuda_scalar",
            "cuda_vec16",
            "cuda_vec16_unrolled",
            "cuda_bulk",
            "cuda_adaptive",
        ),
        variants=(
            torch_eager,
            torch_compile,
            triton_block,
            triton_persistent,
            cuda_scalar,
            cuda_vec16,
            cuda_vec16_unrolled,
            cuda_bulk,
            cuda_adaptive,
        ),
        presets=(
            Preset(name="small", caption="Small enough for the L2 of any GPU", sizes={"n": "2^10..2^20"}),
            Preset(name="large", caption="Far larger than any L2: 256 MiB to 4 GiB in fp32", sizes={"n": "2^26..2^30"}),
        ),
        slab="n",
    ),
    STRIDED_COPY,
)
