"""The variants of `softmax`, in ladder order, and how each binds the backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Staged, variant

if TYPE_CHECKING:
    from torch import Tensor


def composed(x_MN: Tensor) -> Tensor:
    """The steps of the formula as single torch ops, in float32."""
    wide_MN = x_MN.float()
    # Detached: the gradient through the maximum is 0 except for rounding errors.
    e_MN = (wide_MN - wide_MN.detach().amax(-1, keepdim=True)).exp()
    return (e_MN / e_MN.sum(-1, keepdim=True)).to(x_MN.dtype)


def fused(x_MN: Tensor) -> Tensor:
    """torch.softmax."""
    return x_MN.softmax(-1)


def composite_backward(x_MN: Tensor, dy_MN: Tensor) -> Launch:
    """The backward pass of the single ops: autograd runs that of each."""
    from kernelviz.ops.kernels.autograd import backward_of

    return backward_of(composed, (x_MN,), (dy_MN,), (0,))


def eager_backward(x_MN: Tensor, dy_MN: Tensor) -> Launch:
    """The backward pass of torch.softmax: one kernel, which reads the y that softmax saves."""
    from kernelviz.ops.kernels.autograd import backward_of

    return backward_of(fused, (x_MN,), (dy_MN,), (0,))


def compile_backward(x_MN: Tensor, dy_MN: Tensor) -> Launch:
    """The backward pass, compiled by inductor."""
    from kernelviz.ops.kernels.inductor import compiled_backward

    return compiled_backward(fused, (x_MN,), (dy_MN,), (0,))


def liger_backward(x_MN: Tensor, dy_MN: Tensor) -> Launch:
    """Liger's kernel of the backward pass."""
    from kernelviz.ops.softmax import liger as kernels

    return kernels.bind_liger_backward(x_MN, dy_MN)


def triton_chunks_backward(x_MN: Tensor, dy_MN: Tensor) -> Launch:
    """The backward pass in chunks of a row, which is read twice."""
    from kernelviz.ops.softmax import triton_backward as kernels

    return kernels.bind_chunks(x_MN, dy_MN)


def triton_row_backward(x_MN: Tensor, dy_MN: Tensor) -> Launch:
    """The backward pass with one program per row."""
    from kernelviz.ops.softmax import triton_backward as kernels

    return kernels.bind_block_per_row(x_MN, dy_MN)


def triton_known_size_backward(x_MN: Tensor, dy_MN: Tensor) -> Staged:
    """The backward pass with a tile of rows per program, compiled for one size."""
    from kernelviz.ops.softmax import triton_known_size as kernels

    return kernels.bind_known_size_backward(x_MN, dy_MN)


def cuda_row_backward(x_MN: Tensor, dy_MN: Tensor) -> Launch:
    """The backward pass with one block per row."""
    from kernelviz.ops.softmax import cuda as kernels

    return kernels.bind_row_backward(x_MN, dy_MN)


def cuda_cluster_backward(x_MN: Tensor, dy_MN: Tensor) -> Launch:
    """The backward pass with one cluster a row."""
    from kernelviz.ops.softmax import cuda as kernels

    return kernels.bind_cluster_backward(x_MN, dy_MN)


def cuda_slab_backward(x_MN: Tensor, dy_MN: Tensor) -> Staged:
    """The backward pass with short rows as pieces of shared memory."""
    from kernelviz.ops.softmax import cuda_slab as kernels

    return kernels.bind_slab_backward(x_MN, dy_MN)


def cuda_slab_stages_backward(x_MN: Tensor, dy_MN: Tensor) -> Staged:
    """The backward pass with several pieces of short rows in flight."""
    from kernelviz.ops.kernels.row_slabs import RING
    from kernelviz.ops.softmax import cuda_slab as kernels

    return kernels.bind_slab_backward(x_MN, dy_MN, ring=RING)


def cuda_split_backward(x_MN: Tensor, dy_MN: Tensor) -> Staged:
    """The backward pass with several blocks a row, in two launches."""
    from kernelviz.ops.softmax import cuda_split as kernels

    return kernels.bind_split_backward(x_MN, dy_MN)


@variant(backend="torch", backward=composite_backward)
def composite_eager(x_MN: Tensor) -> Launch:
    """Single torch ops in float32, rounded at the end: max, subtract, exp, sum and divide, each a pass over the whole matrix."""
    return lambda: composed(x_MN)


@variant(backend="torch", backward=eager_backward)
def torch_eager(x_MN: Tensor) -> Launch:
    """Fused eager: torch.softmax, one kernel on a GPU."""
    return lambda: x_MN.softmax(-1)


@variant(backend="inductor", needs=("inductor",), slow_compile=True, backward=compile_backward)
def torch_compile(x_MN: Tensor) -> Launch:
    """torch.compile of softmax: inductor fuses its steps into one kernel."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(fused, x_MN)


@variant(backend="library", needs=("liger", "triton", "cuda"), dtypes=("bf16", "fp32"), backward=liger_backward)
def liger(x_MN: Tensor) -> Launch:
    """Liger's Triton kernel: one program per row, its length padded to a power of two; rows of more than 65536 are refused."""
    from kernelviz.ops.softmax import liger as kernels

    return kernels.bind_liger(x_MN)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_three_pass(x_MN: Tensor) -> Launch:
    """Triton, the formula as written: a pass for the maximum, one for the sum, one that divides; only the first reads memory."""
    from kernelviz.ops.softmax import triton as kernels

    return kernels.bind_three_pass(x_MN)


@variant(backend="triton", needs=("triton", "cuda"), backward=triton_chunks_backward)
def triton_online(x_MN: Tensor) -> Launch:
    """Triton, maximum and sum in one pass over blocks of the row; a second pass, which reads from L2, divides."""
    from kernelviz.ops.softmax import triton as kernels

    return kernels.bind_online(x_MN)


@variant(backend="triton", needs=("triton", "cuda"), backward=triton_row_backward)
def triton_block_per_row(x_MN: Tensor) -> Launch:
    """Triton, one program per row; a row of up to 64 KiB is read once and kept in registers."""
    from kernelviz.ops.softmax import triton as kernels

    return kernels.bind_block_per_row(x_MN)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_persistent(x_MN: Tensor) -> Launch:
    """Triton, a few persistent programs per SM, each with several short rows at a time; the next rows are prefetched."""
    from kernelviz.ops.softmax import triton as kernels

    return kernels.bind_persistent(x_MN)


@variant(backend="triton", needs=("triton", "cuda"), backward=triton_known_size_backward)
def triton_known_size(x_MN: Tensor) -> Launch:
    """Triton, compiled for one size of the matrix: several short rows or one per program; those above 8192 as before."""
    from kernelviz.ops.softmax import triton_known_size as kernels

    return kernels.bind_known_size(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"), backward=cuda_row_backward)
def cuda_row(x_MN: Tensor) -> Launch:
    """CUDA C++, one block per row in registers, maximum and sum in one reduction; long rows are read twice, in chunks."""
    from kernelviz.ops.softmax import cuda as kernels

    return kernels.bind_row(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), backward=cuda_cluster_backward, techniques=("cluster",))
def cuda_cluster(x_MN: Tensor) -> Launch:
    """CUDA C++, long rows in registers and shared memory of one SM or a cluster, so that each is read only once."""
    from kernelviz.ops.softmax import cuda as kernels

    return kernels.bind_cluster(x_MN)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
)
def cuda_columns(x_MN: Tensor) -> Launch:
    """CUDA C++, persistent clusters: while a long row is written, the next one is summed and the one after it prefetched."""
    from kernelviz.ops.softmax import cuda as kernels

    return kernels.bind_columns(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"), backward=cuda_slab_backward)
def cuda_slab(x_MN: Tensor) -> Launch:
    """CUDA C++, many short rows as one piece through shared memory, a few threads each; longer ones as `cuda_row`."""
    from kernelviz.ops.softmax import cuda_slab as kernels

    return kernels.bind_slab(x_MN)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
    techniques=("bulk_copy",),
    backward=cuda_slab_stages_backward,
)
def cuda_slab_stages(x_MN: Tensor) -> Launch:
    """CUDA C++ for Hopper: `cuda_slab` with persistent blocks, slabs in flight by bulk copies; tiny rows in registers."""
    from kernelviz.ops.kernels.row_slabs import RING
    from kernelviz.ops.softmax import cuda_slab as kernels

    return kernels.bind_slab(x_MN, ring=RING)


@variant(backend="cuda", needs=("nvrtc", "cuda"), backward=cuda_split_backward)
def cuda_split(x_MN: Tensor) -> Launch:
    """CUDA C++, several blocks share each of a few long rows, in two launches; otherwise as `cuda_row`."""
    from kernelviz.ops.softmax import cuda_split as kernels

    return kernels.bind_split(x_MN)
