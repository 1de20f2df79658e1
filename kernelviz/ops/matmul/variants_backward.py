"""How variants of `matmul` bind its backward pass, dA = dC Bᵀ and dB = Aᵀ dC, and the variants that have this pass only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.catalog.variant import Launch, Staged, variant
from kernelviz.ops.matmul.wgmma_choice import SPACE, admits_layouts

if TYPE_CHECKING:
    from torch import Tensor


def product(a_MK: Tensor, b_KN: Tensor) -> Tensor:
    """a b, for autograd and the compiler."""
    return a_MK @ b_KN


def both(da: Launch, db: Launch) -> Launch:
    """One launch after the other, with both results."""
    import torch

    def launch() -> Tensors:
        da_MK, db_KN = da(), db()
        assert isinstance(da_MK, torch.Tensor)
        assert isinstance(db_KN, torch.Tensor)
        return da_MK, db_KN

    return launch


def eager_backward(a_MK: Tensor, b_KN: Tensor, dc_MN: Tensor, *, compute: str | None = None) -> Staged:
    """The backward pass of torch.mm by autograd: two products of cuBLAS with transposed views."""
    from kernelviz.ops.kernels.autograd import backward_of
    from kernelviz.ops.kernels.torch_precision import in_precision, precision

    with precision(a_MK, compute):
        passes = backward_of(product, (a_MK, b_KN), (dc_MN,), (0, 1))
    return Staged(passes.forward, in_precision(passes.call, a_MK, compute))


def grouped_backward(a_MK: Tensor, b_KN: Tensor, dc_MN: Tensor, *, compute: str | None = None) -> Launch:
    """Two products of the kernel with strides, which reads the transposed views where they are."""
    from kernelviz.ops.kernels.layout import require_contiguous
    from kernelviz.ops.matmul import triton_strided as kernels

    require_contiguous(a_MK=a_MK, b_KN=b_KN, dc_MN=dc_MN)
    return both(
        kernels.bind_strided(dc_MN, b_KN.t(), compute=compute), kernels.bind_strided(a_MK.t(), dc_MN, compute=compute)
    )


@variant(backend="inductor", needs=("inductor",), slow_compile=True, directions=("backward",))
def torch_compile(a_MK: Tensor, b_KN: Tensor, dc_MN: Tensor, *, compute: str | None = None) -> Launch:
    """torch.compile of the backward pass: inductor leaves both products to cuBLAS, and saves the work of autograd in Python."""
    from kernelviz.ops.kernels.inductor import compiled_backward
    from kernelviz.ops.kernels.torch_precision import in_precision, precision

    # torch.compile compiles again where a setting has changed.
    with precision(a_MK, compute):
        passes = compiled_backward(product, (a_MK, b_KN), (dc_MN,), (0, 1))

    def forward() -> None:
        with precision(a_MK, compute):
            passes.forward()

    return Staged(forward, in_precision(passes.call, a_MK, compute))


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90a"),
    dtypes=("bf16", "fp16"),
    directions=("backward",),
    techniques=("tma", "wgmma", "warp_specialised", "multicast"),
    space=SPACE,
    admits=admits_layouts,
)
def cuda_wgmma_layouts(
    a_MK: Tensor,
    b_KN: Tensor,
    dc_MN: Tensor,
    *,
    rows: int = 0,
    columns: int = 0,
    cluster: int = 0,
    stages: int = 0,
) -> Launch:
    """CUDA C++, two calls of a wgmma kernel with a tile by the size, which reads the transposed factors as they are stored."""
    from kernelviz.ops.kernels.layout import require_contiguous
    from kernelviz.ops.matmul import wgmma_layouts

    require_contiguous(a_MK=a_MK, b_KN=b_KN, dc_MN=dc_MN)
    tile = (rows, columns, cluster, stages)
    da = wgmma_layouts.bind_nt(dc_MN, b_KN, tile, names=("n", "k"))
    return both(da, wgmma_layouts.bind_tn(a_MK, dc_MN, tile, names=("k", "n")))
