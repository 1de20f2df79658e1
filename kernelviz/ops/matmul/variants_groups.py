"""The variants of `grouped_matmul` in torch and Triton, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant
from kernelviz.ops.matmul.tiles import admits_descriptors, admits_pointers

if TYPE_CHECKING:
    from torch import Tensor

# `band`: rows of tiles that are traversed column by column. The defaults fit shared memory of every GPU from Ampere on (96 KiB).
_PERSISTENT = {
    "tile_m": (128, 64, 256, 32, 16),
    "tile_n": (128, 256, 64),
    "tile_k_bytes": (128, 64, 256),
    "warps": (8, 4),
    "stages": (3, 4, 5, 2),
    "band": (8, 4, 2, 16),
}
_DESCRIPTORS = {
    "tile_m": (128, 256, 64),
    "tile_n": (256, 128),
    "tile_k": (64, 128),
    "stages": (3, 4, 5, 6),
    "warps": (8, 4),
    "band": (8, 4, 2, 16),
    "parts": (1, 2),
}


@variant(backend="torch")
def torch_eager(x_TK: Tensor, w_GNK: Tensor, offsets_G: Tensor) -> Launch:
    """torch.mm for each group that has rows; the sizes of the groups are known before the call."""
    from kernelviz.ops.matmul import groups_torch as launches

    return launches.bind_each_group(x_TK, w_GNK, offsets_G)


@variant(backend="torch")
def torch_padded(x_TK: Tensor, w_GNK: Tensor, offsets_G: Tensor) -> Launch:
    """torch.bmm after every group was padded to the rows of the largest one, which is known before the call."""
    from kernelviz.ops.matmul import groups_torch as launches

    return launches.bind_padded(x_TK, w_GNK, offsets_G)


@variant(backend="torch", needs=("cuda", "sm_90"), dtypes=("bf16",))
def torch_grouped_mm(x_TK: Tensor, w_GNK: Tensor, offsets_G: Tensor) -> Launch:
    """torch._grouped_mm: a grouped kernel of CUTLASS, which reads the offsets on the device."""
    from kernelviz.ops.matmul import groups_torch as launches

    return launches.bind_grouped_mm(x_TK, w_GNK, offsets_G)


@variant(backend="triton", needs=("triton", "cuda"), techniques=("cp_async", "mma_sync", "wgmma", "tcgen05"))
def triton_tiles(x_TK: Tensor, w_GNK: Tensor, offsets_G: Tensor) -> Launch:
    """Triton, one tile of the product per program, which finds its group from the offsets on the device."""
    from kernelviz.ops.matmul import triton_groups as kernels

    return kernels.bind_tiles(x_TK, w_GNK, offsets_G)


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    techniques=("cp_async", "mma_sync", "wgmma", "tcgen05"),
    space=_PERSISTENT,
    admits=admits_pointers,
)
def triton_persistent(
    x_TK: Tensor,
    w_GNK: Tensor,
    offsets_G: Tensor,
    *,
    tile_m: int = 128,
    tile_n: int = 128,
    tile_k_bytes: int = 128,
    warps: int = 8,
    stages: int = 3,
    band: int = 8,
) -> Launch:
    """Triton, one program per SM computes tile after tile, in an order in which L2 serves the rows and the weight of a group."""
    from kernelviz.ops.matmul import triton_groups as kernels

    return kernels.bind_persistent(
        x_TK,
        w_GNK,
        offsets_G,
        tile_m=tile_m,
        tile_n=tile_n,
        tile_k_bytes=tile_k_bytes,
        warps=warps,
        stages=stages,
        band=band,
    )


@variant(
    backend="triton",
    needs=("triton", "cuda", "sm_90"),
    targets=("sm_90",),
    techniques=("tma", "wgmma"),
    space=_DESCRIPTORS,
    admits=admits_descriptors,
)
def triton_descriptors(
    x_TK: Tensor,
    w_GNK: Tensor,
    offsets_G: Tensor,
    *,
    tile_m: int = 128,
    tile_n: int = 256,
    tile_k: int = 64,
    stages: int = 3,
    warps: int = 8,
    band: int = 8,
    parts: int = 1,
) -> Launch:
    """Triton, persistent, with tensor descriptors made on the device: TMA loads all tiles and stores those that are full."""
    from kernelviz.ops.matmul import triton_groups_descriptors as kernels

    return kernels.bind_descriptors(
        x_TK,
        w_GNK,
        offsets_G,
        tile_m=tile_m,
        tile_n=tile_n,
        tile_k=tile_k,
        stages=stages,
        warps=warps,
        band=band,
        parts=parts,
    )


GROUP_VARIANTS = (
    torch_eager,
    torch_padded,
    torch_grouped_mm,
    triton_tiles,
    triton_persistent,
    triton_descriptors,
)
