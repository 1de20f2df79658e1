"""The variants of `transpose_matmul`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant
from kernelviz.ops.matmul.tiles import admits_descriptors
from kernelviz.ops.matmul.variants_triton import _DESCRIPTORS
from kernelviz.ops.matmul.wgmma_choice import SPACE, admits_layouts

if TYPE_CHECKING:
    from torch import Tensor


def product(a_KM: Tensor, b_KN: Tensor) -> Tensor:
    """aᵀ b, for the compiler."""
    return a_KM.t() @ b_KN


@variant(backend="torch")
def contiguous_then_matmul(a_KM: Tensor, b_KN: Tensor, *, compute: str | None = None) -> Launch:
    """a.t().contiguous(), then torch.mm: the transposition is a kernel of its own that reads and writes A once more."""
    import torch

    from kernelviz.ops.matmul.torch import bind_mm

    k, m = a_KM.shape
    a_MK = torch.empty((m, k), dtype=a_KM.dtype, device=a_KM.device)
    multiply = bind_mm(a_MK, b_KN, compute)

    def launch() -> Tensor:
        a_MK.copy_(a_KM.t())
        result = multiply()
        assert isinstance(result, torch.Tensor)
        return result

    return launch


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_transpose_then_matmul(a_KM: Tensor, b_KN: Tensor, *, compute: str | None = None) -> Launch:
    """The same with the transposition in CUDA C++ by 16-byte vectors, which takes a sixth of the time of torch's."""
    from kernelviz.ops.matmul import stepwise

    return stepwise.bind_transposition_then_product(a_KM, b_KN, compute)


@variant(backend="torch")
def torch_eager(a_KM: Tensor, b_KN: Tensor, *, compute: str | None = None) -> Launch:
    """torch.mm of the transposed view: cuBLAS reads A as it is stored, because the layout of a factor is one of its arguments."""
    from kernelviz.ops.matmul.torch import bind_mm

    return bind_mm(a_KM.t(), b_KN, compute)


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(a_KM: Tensor, b_KN: Tensor, *, compute: str | None = None) -> Launch:
    """torch.compile of both steps: inductor gives cuBLAS the transposed view, so nothing is copied."""
    from kernelviz.ops.kernels.inductor import compiled
    from kernelviz.ops.kernels.torch_precision import in_precision, precision

    # torch.compile compiles again where a setting has changed.
    with precision(a_KM, compute):
        run = compiled(product, a_KM, b_KN)
    return in_precision(run, a_KM, compute)


@variant(backend="triton", needs=("triton", "cuda"), techniques=("cp_async", "mma_sync", "wgmma"))
def triton_strided(a_KM: Tensor, b_KN: Tensor, *, compute: str | None = None) -> Launch:
    """Triton, the grouped tiles of matmul through pointers with strides: A is read along M, where it is contiguous."""
    from kernelviz.ops.kernels.layout import require_contiguous
    from kernelviz.ops.matmul import triton_strided as kernels

    require_contiguous(a_KM=a_KM, b_KN=b_KN)
    return kernels.bind_strided(a_KM.t(), b_KN, compute=compute)


@variant(
    backend="triton",
    needs=("triton", "cuda", "sm_90"),
    targets=("sm_90",),
    dtypes=("bf16", "fp16"),
    techniques=("tma", "wgmma"),
    space=_DESCRIPTORS,
    admits=admits_descriptors,
)
def triton_descriptors(
    a_KM: Tensor,
    b_KN: Tensor,
    *,
    tile_m: int = 128,
    tile_n: int = 256,
    tile_k: int = 64,
    stages: int = 3,
    warps: int = 8,
    group: int = 16,
    parts: int = 1,
    flatten: int = 1,
) -> Launch:
    """Triton, persistent, with tensor descriptors: TMA loads tiles of A as they are stored, and wgmma reads them transposed."""
    from kernelviz.ops.kernels.layout import require_contiguous
    from kernelviz.ops.matmul import triton_layouts as kernels

    require_contiguous(a_KM=a_KM, b_KN=b_KN)
    tile = kernels.Tile(
        tile_m=tile_m,
        tile_n=tile_n,
        tile_k=tile_k,
        stages=stages,
        warps=warps,
        group=group,
        parts=parts,
        flatten=bool(flatten),
    )
    return kernels.bind_layouts(a_KM, b_KN, tile, a_transposed=True, names=("m", "n", "n"))


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90a"),
    dtypes=("bf16", "fp16"),
    techniques=("tma", "wgmma", "warp_specialised", "multicast"),
    space=SPACE,
    admits=admits_layouts,
)
def cuda_wgmma(
    a_KM: Tensor,
    b_KN: Tensor,
    *,
    rows: int = 0,
    columns: int = 0,
    cluster: int = 0,
    stages: int = 0,
) -> Launch:
    """CUDA C++, wgmma with a tile by the size and A described as transposed: wgmma reads along M from shared memory."""
    from kernelviz.ops.matmul import wgmma_layouts

    return wgmma_layouts.bind_tn(a_KM, b_KN, (rows, columns, cluster, stages))


TRANSPOSED_VARIANTS = (
    contiguous_then_matmul,
    cuda_transpose_then_matmul,
    torch_eager,
    torch_compile,
    triton_strided,
    triton_descriptors,
    cuda_wgmma,
)
