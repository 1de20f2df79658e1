"""The variants of `scatter_add` in the order of the ladder: torch, a compiler, atomic additions, sums over sorted ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant

if TYPE_CHECKING:
    from torch import Tensor

IN_PLACE = ("x_VD",)
NARROW = ("bf16", "fp16")


@variant(backend="torch", mutates=IN_PLACE)
def torch_eager(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """index_add_, an atomic addition per element on a GPU; 16-bit sums are widened to fp32 for it and rounded at the end."""
    if x_VD.element_size() == 4:
        return lambda: x_VD.index_add_(0, ids_T, src_TD)
    return lambda: x_VD.copy_(x_VD.float().index_add_(0, ids_T, src_TD.float()))


@variant(backend="torch", needs=("cuda",), mutates=IN_PLACE, dtypes=NARROW, only_when_named=True)
def torch_index_add_16bit(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """index_add_ on 16-bit tensors, as it is often written and called the same sum, but it rounds at every addition."""
    return lambda: x_VD.index_add_(0, ids_T, src_TD)


@variant(backend="torch", needs=("cuda",), mutates=IN_PLACE, dtypes=("fp32",))
def torch_index_put(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """index_put_ with accumulate: it sorts the ids and adds up each run of equal ids (16-bit numbers not in fp32)."""
    return lambda: x_VD.index_put_((ids_T,), src_TD, accumulate=True)


def _index_add(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Tensor:
    return x_VD.float().index_add(0, ids_T, src_TD.float()).to(x_VD.dtype)


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """torch.compile of index_add in float32, out of place: one kernel copies the sums, one adds atomically."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(_index_add, x_VD, src_TD, ids_T)


@variant(backend="triton", needs=("triton", "cuda"), mutates=IN_PLACE)
def triton_atomics(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """Triton, fp32 atomic additions, tiles of rows per program; 16-bit sums need an fp32 copy first and a rounding after."""
    from kernelviz.ops.scatter_add import triton as kernels

    return kernels.bind_atomics(x_VD, src_TD, ids_T)


@variant(backend="triton", needs=("triton", "cuda"), mutates=IN_PLACE)
def triton_segments(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """torch.sort of the ids within the call, then Triton: one program per sum adds up its rows, without atomics."""
    from kernelviz.ops.scatter_add import triton as kernels

    return kernels.bind_segments(x_VD, src_TD, ids_T)


@variant(backend="cuda", needs=("nvrtc", "cuda"), mutates=IN_PLACE)
def cuda_atomics(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """CUDA C++, one fp32 atomic addition per element; to 16-bit numbers the sums are added in a second launch."""
    from kernelviz.ops.scatter_add import cuda as kernels

    return kernels.bind_atomics(x_VD, src_TD, ids_T)


@variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), mutates=IN_PLACE)
def cuda_atomics_vec16(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """CUDA C++, four fp32 additions an atomic instruction (red.v4.f32, sm_90), or two: a quarter of the requests to L2."""
    from kernelviz.ops.scatter_add import cuda as kernels

    return kernels.bind_atomics_vec16(x_VD, src_TD, ids_T)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
    mutates=IN_PLACE,
    dtypes=NARROW,
    only_when_named=True,
)
def cuda_atomics_16bit(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """CUDA C++, eight 16-bit additions an atomic instruction; claimed to save the fp32 copy, but rounds at every addition."""
    from kernelviz.ops.scatter_add import cuda as kernels

    return kernels.bind_atomics_16bit(x_VD, src_TD, ids_T)


@variant(backend="cuda", needs=("nvrtc", "cuda"), mutates=IN_PLACE)
def cuda_segments(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """CUDA C++, a counting sort of the ids, then each sum adds up its rows in registers: one read and one write, no atomics."""
    from kernelviz.ops.scatter_add import cuda as kernels

    return kernels.bind_segments(x_VD, src_TD, ids_T)


@variant(backend="cuda", needs=("nvrtc", "cuda"), mutates=IN_PLACE)
def cuda_shared(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """CUDA C++, a table of all sums in each block's shared memory, if it fits: memory gets an addition a block and sum."""
    from kernelviz.ops.scatter_add import shared as kernels

    return kernels.bind_shared(x_VD, src_TD, ids_T)


@variant(backend="cuda", needs=("nvrtc", "cuda"), mutates=IN_PLACE)
def cuda_few_rows(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """CUDA C++, up to 1,024 rows in one launch: the block of an id's first row adds up all rows of that id, without a sort."""
    from kernelviz.ops.scatter_add import few_rows as kernels

    return kernels.bind_few_rows(x_VD, src_TD, ids_T)


VARIANTS = (
    torch_eager,
    torch_index_add_16bit,
    torch_index_put,
    torch_compile,
    triton_atomics,
    triton_segments,
    cuda_atomics,
    cuda_atomics_vec16,
    cuda_atomics_16bit,
    cuda_segments,
    cuda_shared,
    cuda_few_rows,
)
