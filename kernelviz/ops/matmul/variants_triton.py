"""The variants of `matmul` in Triton after the plain one, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant
from kernelviz.ops.matmul import tile_choice
from kernelviz.ops.matmul.tiles import admits_descriptors, admits_pointers, admits_warp_specialised

if TYPE_CHECKING:
    from torch import Tensor

# The defaults of the first two fit shared memory of every GPU from Ampere on (96 KiB), in every dtype.
_TUNED = {
    "tile_m": (128, 64, 256, 32, 16),
    "tile_n": (128, 256, 64, 32),
    "tile_k_bytes": (128, 64, 256),
    "warps": (8, 4),
    "stages": (3, 4, 5, 2),
    "group": (8, 4, 16),
}
_PERSISTENT = {**_TUNED, "flatten": (0, 1)}
_DESCRIPTORS = {
    "tile_m": (128, 256, 64),
    "tile_n": (256, 128, 64),
    "tile_k": (64, 128),
    "stages": (3, 4, 5, 6),
    "warps": (8, 4),
    "group": (16, 8, 4),
    "parts": (1, 2, 4),
    "flatten": (1, 0),
}
_WARP_SPECIALISED = {
    "tile_m": (128, 256),
    "tile_n": (256, 128),
    "tile_k": (64, 128, 32),
    "stages": (3, 4, 2, 5, 6),
    "group": (8, 4, 16),
}


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    techniques=("cp_async", "mma_sync", "wgmma", "tcgen05"),
    space=_TUNED,
    admits=admits_pointers,
)
def triton_tuned(
    a_MK: Tensor,
    b_KN: Tensor,
    *,
    compute: str | None = None,
    tile_m: int = 128,
    tile_n: int = 128,
    tile_k_bytes: int = 128,
    warps: int = 8,
    stages: int = 3,
    group: int = 8,
) -> Launch:
    """Triton, the kernel of triton_grouped, with tile, warps, stages and group to tune for the problem."""
    from kernelviz.ops.matmul import triton_persistent as kernels

    return kernels.bind_tuned(
        a_MK,
        b_KN,
        compute=compute,
        tile_m=tile_m,
        tile_n=tile_n,
        tile_k_bytes=tile_k_bytes,
        warps=warps,
        stages=stages,
        group=group,
    )


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    techniques=("cp_async", "mma_sync", "wgmma", "tcgen05"),
    space=_PERSISTENT,
    admits=admits_pointers,
)
def triton_persistent(
    a_MK: Tensor,
    b_KN: Tensor,
    *,
    compute: str | None = None,
    tile_m: int = 128,
    tile_n: int = 128,
    tile_k_bytes: int = 128,
    warps: int = 8,
    stages: int = 3,
    group: int = 8,
    flatten: int = 0,
) -> Launch:
    """Triton, one program per SM computes tile after tile; `flatten` loads the next tile while a product is stored."""
    from kernelviz.ops.matmul import triton_persistent as kernels

    return kernels.bind_persistent(
        a_MK,
        b_KN,
        compute=compute,
        tile_m=tile_m,
        tile_n=tile_n,
        tile_k_bytes=tile_k_bytes,
        warps=warps,
        stages=stages,
        group=group,
        flatten=flatten,
    )


def descriptors_backward(
    a_MK: Tensor,
    b_KN: Tensor,
    dc_MN: Tensor,
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
    """Two products whose transposed factors TMA loads as they are stored."""
    from kernelviz.ops.kernels.layout import require_contiguous
    from kernelviz.ops.matmul import triton_layouts as kernels
    from kernelviz.ops.matmul.variants_backward import both

    require_contiguous(a_MK=a_MK, b_KN=b_KN, dc_MN=dc_MN)
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
    da = kernels.bind_layouts(dc_MN, b_KN, tile, b_transposed=True, names=("n", "n", "k"))
    return both(da, kernels.bind_layouts(a_MK, dc_MN, tile, a_transposed=True, names=("k", "n", "n")))


@variant(
    backend="triton",
    needs=("triton", "cuda", "sm_90"),
    targets=("sm_90",),
    dtypes=("bf16", "fp16"),
    techniques=("tma", "wgmma"),
    space=_DESCRIPTORS,
    admits=admits_descriptors,
    backward=descriptors_backward,
)
def triton_descriptors(
    a_MK: Tensor,
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
    """Triton, persistent, with tensor descriptors made on the device: TMA loads and stores the tiles."""
    from kernelviz.ops.matmul import triton_descriptors as kernels

    return kernels.bind_descriptors(
        a_MK,
        b_KN,
        tile_m=tile_m,
        tile_n=tile_n,
        tile_k=tile_k,
        stages=stages,
        warps=warps,
        group=group,
        parts=parts,
        flatten=flatten,
    )


@variant(
    backend="triton",
    needs=("triton", "cuda", "sm_90"),
    targets=("sm_90",),
    dtypes=("bf16", "fp16"),
    techniques=("tma", "wgmma", "warp_specialised"),
    space=_WARP_SPECIALISED,
    admits=admits_warp_specialised,
)
def triton_warp_specialised(
    a_MK: Tensor,
    b_KN: Tensor,
    *,
    tile_m: int = 128,
    tile_n: int = 256,
    tile_k: int = 64,
    stages: int = 3,
    group: int = 8,
) -> Launch:
    """Triton, as triton_descriptors, with warp_specialize: some warps only load, two warpgroups only multiply."""
    from kernelviz.ops.matmul import triton_descriptors as kernels

    return kernels.bind_descriptors(
        a_MK,
        b_KN,
        tile_m=tile_m,
        tile_n=tile_n,
        tile_k=tile_k,
        stages=stages,
        group=group,
        warp_specialised=True,
    )


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    techniques=("mma_sync", "wgmma"),
    space=tile_choice.SPACE,
    admits=tile_choice.admits,
)
def triton_tile_by_size(
    a_MK: Tensor,
    b_KN: Tensor,
    *,
    compute: str | None = None,
    tile_m: int = 0,
    tile_n: int = 0,
    tile_k: int = 0,
    parts: int = 0,
    warps: int = 0,
    stages: int = 0,
) -> Launch:
    """Triton, tile and parts of K by size, so that small, flat and odd products use every SM; parts are added in order."""
    from kernelviz.ops.matmul import triton_tile_by_size as kernels

    chosen = (
        tile_choice.SizedTile(bm=tile_m, bn=tile_n, bk=tile_k, parts=parts, warps=warps, stages=stages)
        if tile_m
        else None
    )
    return kernels.bind_tile_by_size(a_MK, b_KN, compute=compute, tile=chosen)


TRITON_VARIANTS = (triton_tuned, triton_persistent, triton_descriptors, triton_warp_specialised, triton_tile_by_size)
