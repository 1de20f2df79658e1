"""The variants of `topk`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="torch")
def sort_eager(x_MN: Tensor, k: int) -> Launch:
    """Tensor.sort of whole rows, of which only the first k elements are used."""

    def launch() -> tuple[Tensor, ...]:
        values_MN, indices_MN = x_MN.sort(dim=-1, descending=True)
        return values_MN[:, :k].contiguous(), indices_MN[:, :k].contiguous()

    return launch


@variant(backend="torch")
def torch_eager(x_MN: Tensor, k: int) -> Launch:
    """torch.topk: on a GPU a radix select of one or several blocks per row, then a sort of the k."""
    return lambda: tuple(x_MN.topk(k))


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(x_MN: Tensor, k: int) -> Launch:
    """torch.compile of topk: inductor has no kernel of its own for it and calls torch's."""
    from kernelviz.ops.kernels.inductor import compiled

    def topk(x_MN: Tensor) -> tuple[Tensor, ...]:
        return tuple(x_MN.topk(k))

    return compiled(topk, x_MN)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_bitonic(x_MN: Tensor, k: int) -> Launch:
    """Triton, a bitonic network: several short rows per program, or one, of 4096 elements at a time, merged into the k so far."""
    from kernelviz.ops.topk import triton as kernels

    return kernels.bind_bitonic(x_MN, k)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_radix_select(x_MN: Tensor, k: int) -> Launch:
    """CUDA C++, one block per row: counts keys 8 bits at a time and follows the digit of the k-th; reads the row 3–5 times."""
    from kernelviz.ops.topk import cuda as kernels

    return kernels.bind_radix_select(x_MN, k)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_threshold(x_MN: Tensor, k: int) -> Launch:
    """CUDA C++, one read: elements not above the k-th largest so far are dropped; several blocks per row if rows are few."""
    from kernelviz.ops.topk import cuda as kernels

    return kernels.bind_threshold(x_MN, k)
