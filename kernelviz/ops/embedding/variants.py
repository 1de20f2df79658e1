"""The variants of `embedding`, `index_select` and `gather`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Variant, variant

if TYPE_CHECKING:
    from torch import Tensor


def _eager_embedding(x_VD: Tensor, ids_T: Tensor) -> Tensor:
    from torch.nn import functional

    return functional.embedding(ids_T, x_VD)


def _eager_index_select(x_VD: Tensor, ids_T: Tensor) -> Tensor:
    return x_VD.index_select(0, ids_T)


def _eager_gather(x_VD: Tensor, ids_T: Tensor) -> Tensor:
    return x_VD.gather(0, ids_T[:, None].expand(-1, x_VD.shape[1]))


def embedding_variants() -> tuple[Variant, ...]:
    @variant(backend="torch")
    def torch_eager(x_VD: Tensor, ids_T: Tensor) -> Launch:
        """torch.nn.functional.embedding, which is index_select inside."""
        return lambda: _eager_embedding(x_VD, ids_T)

    @variant(backend="inductor", needs=("inductor",), slow_compile=True)
    def torch_compile(x_VD: Tensor, ids_T: Tensor) -> Launch:
        """torch.compile of embedding: one Triton kernel that looks up the row again for each element, and checks its id."""
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(_eager_embedding, x_VD, ids_T)

    return torch_eager, torch_compile


def index_select_variants() -> tuple[Variant, ...]:
    @variant(backend="torch")
    def torch_eager(x_VD: Tensor, ids_T: Tensor) -> Launch:
        """torch.index_select along the rows, into a tensor that was allocated before."""
        import torch

        out_TD = torch.empty((ids_T.shape[0], x_VD.shape[1]), dtype=x_VD.dtype, device=x_VD.device)
        return lambda: torch.index_select(x_VD, 0, ids_T, out=out_TD)

    @variant(backend="inductor", needs=("inductor",), slow_compile=True)
    def torch_compile(x_VD: Tensor, ids_T: Tensor) -> Launch:
        """torch.compile of index_select: one Triton kernel that looks up the row again for each element, and checks its id."""
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(_eager_index_select, x_VD, ids_T)

    return torch_eager, torch_compile


def gather_variants() -> tuple[Variant, ...]:
    @variant(backend="torch")
    def torch_eager(x_VD: Tensor, ids_T: Tensor) -> Launch:
        """torch.gather with the ids expanded along the row: an index is looked up for every element."""
        import torch

        ids_TD = ids_T[:, None].expand(-1, x_VD.shape[1])
        out_TD = torch.empty(ids_TD.shape, dtype=x_VD.dtype, device=x_VD.device)
        return lambda: torch.gather(x_VD, 0, ids_TD, out=out_TD)

    @variant(backend="inductor", needs=("inductor",), slow_compile=True)
    def torch_compile(x_VD: Tensor, ids_T: Tensor) -> Launch:
        """torch.compile of gather: inductor sees through the expanded index, and makes the kernel of index_select."""
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(_eager_gather, x_VD, ids_T)

    return torch_eager, torch_compile


@variant(backend="triton", needs=("triton", "cuda"))
def triton_row(x_VD: Tensor, ids_T: Tensor) -> Launch:
    """Triton, one program per row: its id is read once."""
    from kernelviz.ops.embedding import triton as kernels

    return kernels.bind_row(x_VD, ids_T)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_tile(x_VD: Tensor, ids_T: Tensor) -> Launch:
    """Triton, tiles of 16 KiB (1 KiB for small outputs): several short rows, or a piece of a long row, per program."""
    from kernelviz.ops.embedding import triton as kernels

    return kernels.bind_tile(x_VD, ids_T)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_row(x_VD: Tensor, ids_T: Tensor) -> Launch:
    """CUDA C++, one block per row, one element per thread and step."""
    from kernelviz.ops.embedding import cuda as kernels

    return kernels.bind_row(x_VD, ids_T, vectors=False)


@variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",))
def cuda_row_vec16(x_VD: Tensor, ids_T: Tensor) -> Launch:
    """CUDA C++, one block per row in 16-byte vectors: short rows leave most of a block's threads idle."""
    from kernelviz.ops.embedding import cuda as kernels

    return kernels.bind_row(x_VD, ids_T)


@variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",))
def cuda_vec16_unrolled(x_VD: Tensor, ids_T: Tensor) -> Launch:
    """CUDA C++, pieces of one or several rows a block, by kernels that are compiled for the length of a row."""
    from kernelviz.ops.embedding import short_rows as kernels

    return kernels.bind_short_rows(x_VD, ids_T)


@variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",))
def cuda_slices(x_VD: Tensor, ids_T: Tensor) -> Launch:
    """CUDA C++, the same 2 to 16 KiB of all rows at about the same time: rows named twice come from the L2; any alignment."""
    from kernelviz.ops.embedding import slices as kernels

    return kernels.bind_slices(x_VD, ids_T)


OWN_KERNELS = (triton_row, triton_tile, cuda_row, cuda_row_vec16, cuda_vec16_unrolled, cuda_slices)
