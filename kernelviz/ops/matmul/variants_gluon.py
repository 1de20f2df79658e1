"""The variants of `matmul` in Gluon."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant
from kernelviz.ops.matmul.tiles import admits_gluon

if TYPE_CHECKING:
    from torch import Tensor

_SPACE = {
    "tile_m": (128, 256),
    "tile_n": (256, 128, 64),
    "tile_k": (64, 128, 32),
    "stages": (4, 3, 5, 6, 8, 2),
    "group": (16, 8, 4),
    "parts": (4, 2, 1),
    "buffers": (2, 1),
    "lead": (0, 1, 2),
}


@variant(
    backend="gluon",
    needs=("triton", "gluon", "cuda", "sm_90a"),
    dtypes=("bf16", "fp16"),
    techniques=("tma", "wgmma", "warp_specialised"),
    space=_SPACE,
    admits=admits_gluon,
)
def gluon_warp_specialised(
    a_MK: Tensor,
    b_KN: Tensor,
    *,
    tile_m: int = 128,
    tile_n: int = 256,
    tile_k: int = 64,
    stages: int = 4,
    group: int = 16,
    parts: int = 4,
    buffers: int = 2,
    lead: int = 0,
) -> Launch:
    """Gluon, persistent: one warp loads by TMA into a ring of mbarriers, two warpgroups multiply half a tile each."""
    from kernelviz.ops.matmul import gluon as kernels

    return kernels.bind_warp_specialised(
        a_MK,
        b_KN,
        tile_m=tile_m,
        tile_n=tile_n,
        tile_k=tile_k,
        stages=stages,
        group=group,
        parts=parts,
        buffers=buffers,
        lead=lead,
    )


GLUON_VARIANTS = (gluon_warp_specialised,)
