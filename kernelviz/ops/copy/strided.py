"""Strided copy: one element in every s, which is what reading a column of a row-major matrix is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.op import Axis, Launch, Op, Preset, Sizes, Tensors, TensorSpec, variant

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """The n elements that are taken, read and written; not those between them.

    >>> cost({"n": 1024, "s": 64}, 4)
    Cost(work_flop=0, read_bytes=4096, written_bytes=4096)
    """
    # What must be moved, not what is: a cache takes whole sectors of 32 bytes from memory, so from a stride of 32 bytes on (8
    # fp32 numbers) every 4 bytes read bring 28 others that nobody asked for. On an H200 2^24 of them take 134 us at a stride of 8
    # and 256 us at 16, both 4.5 TB/s if the latter moves 64 bytes an element: that is what its memory moves at the least.
    n = sizes["n"]
    return Cost(work_flop=0, read_bytes=n * itemsize_bytes, written_bytes=n * itemsize_bytes)


def reference(x_NS: Tensor) -> Tensors:
    """The first element of every row."""
    return (x_NS[:, 0].clone(),)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Zero: nothing is rounded, so nothing may differ."""
    return (outputs[0].new_zeros(()).expand_as(outputs[0]),)


@variant(backend="torch")
def torch_eager(x_NS: Tensor) -> Launch:
    """Tensor.copy_ of a strided view into a buffer that is there already."""
    import torch

    out_N = torch.empty(x_NS.shape[0], dtype=x_NS.dtype, device=x_NS.device)
    column_N = x_NS[:, 0]
    return lambda: out_N.copy_(column_N)


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(x_NS: Tensor) -> Launch:
    """torch.compile of the column's clone, on the elements' bits: on a GPU one Triton kernel, on a CPU vectorised C++."""
    import torch

    from kernelviz.ops.kernels.inductor import compiled

    # As integers, for the same reason as in `copy`: the bits of a NaN stay as they are.
    bits = torch.int32 if x_NS.element_size() == 4 else torch.int16

    def column(x_NS: Tensor) -> Tensor:
        return torch.clone(x_NS[:, 0], memory_format=torch.contiguous_format)

    run = compiled(column, x_NS.view(bits))
    dtype = x_NS.dtype

    def launch() -> Tensor:
        result = run()
        assert not isinstance(result, tuple)
        return result.view(dtype)  # the same memory: no kernel

    return launch


@variant(backend="triton", needs=("triton", "cuda"))
def triton_block(x_NS: Tensor) -> Launch:
    """Triton, 1024 elements a program whatever the stride."""
    from kernelviz.ops.copy import triton as kernels

    return kernels.bind_strided(x_NS)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_scalar(x_NS: Tensor) -> Launch:
    """CUDA C++, one element a thread: from 32 bytes of stride on, a warp's load takes 32 sectors of memory instead of 4."""
    from kernelviz.ops.copy import cuda as kernels

    return kernels.bind_strided_scalar(x_NS)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_vec16(x_NS: Tensor) -> Launch:
    """CUDA C++, the whole 16-byte word round each element, one of which is selected: the same sectors, in a worse order."""
    from kernelviz.ops.copy import cuda as kernels

    return kernels.bind_strided_vec16(x_NS)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_unrolled(x_NS: Tensor) -> Launch:
    """CUDA C++, four elements a thread, all loaded before the first is stored: it pays while several share a sector."""
    from kernelviz.ops.copy import cuda as kernels

    return kernels.bind_strided_unrolled(x_NS)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_adaptive(x_NS: Tensor) -> Launch:
    """CUDA C++ by stride: a plain copy at 1, whole words or four elements a thread up to 16 bytes, then two, from 64 on one."""
    from kernelviz.ops.copy import cuda as kernels

    return kernels.bind_strided_adaptive(x_NS)


STRIDED_COPY = Op(
    name="strided_copy",
    family="elementwise",
    summary="Copy of one element in every s: what a stride costs",
    formula="y[i] = x[i · s]",
    axes=(
        Axis(name="n", caption="elements copied", default="2^24", cpu_default="2^16"),
        Axis(name="s", caption="stride in elements", default="1,2,4,8,16,32,64", cpu_default="1,2,4,8,16,32,64"),
    ),
    dtypes=("fp32", "fp16", "bf16"),
    inputs=(TensorSpec(name="x_NS", axes=("n", "s")),),
    outputs=(TensorSpec(name="y_N", axes=("n",)),),
    cost=cost,
    reference=reference,
    bound=bound,
    rule="exact: y = x, no rounding",
    baseline="torch_eager",
    first=("torch_eager", "torch_compile", "triton_block", "cuda_scalar", "cuda_unrolled", "cuda_adaptive"),
    variants=(torch_eager, torch_compile, triton_block, cuda_scalar, cuda_vec16, cuda_unrolled, cuda_adaptive),
    presets=(
        Preset(
            name="strides",
            caption="2^24 elements, strides up to 64: what memory moves at the least shows as a knee",
            sizes={"n": "2^24", "s": "1,2,3,4,5,6,7,8,9,10,12,14,16,32,64"},
        ),
        Preset(name="large", caption="2^26 elements of 1 to 16 GiB in fp32", sizes={"n": "2^26", "s": "4,16,64"}),
    ),
    slab="n",
)
