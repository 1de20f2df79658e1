"""The CUDA C++ variants of `grouped_matmul` on Hopper's tensor cores, in ladder order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.variant import Configuration, Launch, variant
from kernelviz.ops.kernels.groups import most_rows
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES
from kernelviz.ops.matmul.groups_wgmma import BOX, ROWS, Options

if TYPE_CHECKING:
    from torch import Tensor

_NEEDS: dict[str, Any] = {"backend": "cuda", "needs": ("nvrtc", "cuda", "sm_90a")}
_SPACE = {
    "columns": (256, 128),
    "stages": (4, 3, 5, 6),
    "c_boxes": (2, 1, 4),
    "band": (8, 1, 2, 4, 16, 32),
    "fetch_bytes": (256, 128),
}
_SPACE_OF_HALVES = {key: values for key, values in _SPACE.items() if key != "columns"}
FIRST = Options()
TMA_STORE = replace(FIRST, c_boxes=2)
HALVES = replace(TMA_STORE, halves=1)
CLUSTER = replace(HALVES, cluster=2)


def _bind(x_TK: Tensor, w_GNK: Tensor, offsets_G: Tensor, options: Options) -> Launch:
    from kernelviz.ops.matmul import groups_wgmma

    return groups_wgmma.bind(x_TK, w_GNK, offsets_G, options)


def _admits(configuration: Configuration, problem: Problem) -> str | None:
    """Why a configuration is not measured: its shared memory, more boxes than a tile has, or a band like a smaller one."""
    options = replace(TMA_STORE, **configuration)
    if options.c_boxes > options.columns // BOX:
        return f"a tile has {options.columns // BOX} boxes of y"
    if options.shared_bytes > MOST_SHARED_BYTES:
        return f"needs {options.shared_bytes:,} bytes of shared memory"
    row_tiles = -(-most_rows(problem.sizes) // ROWS)
    same = next(band for band in _SPACE["band"] if min(band, row_tiles) == min(options.band, row_tiles))
    if same != options.band:
        return f"no group has more than {row_tiles} rows of tiles, so a band of {same} is the same"
    return None


@variant(**_NEEDS, techniques=("tma", "wgmma", "warp_specialised"))
def cuda_wgmma(x_TK: Tensor, w_GNK: Tensor, offsets_G: Tensor) -> Launch:
    """CUDA C++, wgmma and TMA, persistent: tiles of 128×256 of one group; a warpgroup copies, two multiply and store."""
    return _bind(x_TK, w_GNK, offsets_G, FIRST)


@variant(**_NEEDS, techniques=("tma", "wgmma", "warp_specialised"), space=_SPACE, admits=_admits)
def cuda_wgmma_tma_store(
    x_TK: Tensor,
    w_GNK: Tensor,
    offsets_G: Tensor,
    *,
    columns: int = 256,
    stages: int = 4,
    c_boxes: int = 2,
    band: int = 8,
    fetch_bytes: int = 256,
) -> Launch:
    """CUDA C++, wgmma: TMA stores the tiles that are full, stores of 16 bytes the rows of the last tile of a group."""
    chosen = {"columns": columns, "stages": stages, "c_boxes": c_boxes, "band": band, "fetch_bytes": fetch_bytes}
    return _bind(x_TK, w_GNK, offsets_G, replace(TMA_STORE, **chosen))


@variant(**_NEEDS, techniques=("tma", "wgmma", "warp_specialised"), space=_SPACE_OF_HALVES, admits=_admits)
def cuda_wgmma_halves(
    x_TK: Tensor,
    w_GNK: Tensor,
    offsets_G: Tensor,
    *,
    stages: int = 4,
    c_boxes: int = 2,
    band: int = 8,
    fetch_bytes: int = 256,
) -> Launch:
    """CUDA C++, wgmma: tiles of a last round that has work for at most half of the blocks are cut into halves of 128 columns."""
    options = replace(HALVES, stages=stages, c_boxes=c_boxes, band=band, fetch_bytes=fetch_bytes)
    return _bind(x_TK, w_GNK, offsets_G, options)


@variant(**_NEEDS, techniques=("tma", "wgmma", "warp_specialised", "multicast"), space=_SPACE_OF_HALVES, admits=_admits)
def cuda_wgmma_cluster(
    x_TK: Tensor,
    w_GNK: Tensor,
    offsets_G: Tensor,
    *,
    stages: int = 4,
    c_boxes: int = 2,
    band: int = 8,
    fetch_bytes: int = 256,
) -> Launch:
    """CUDA C++, wgmma: each of the two blocks of a cluster copies half of their rows of x, for both (multicast)."""
    options = replace(CLUSTER, stages=stages, c_boxes=c_boxes, band=band, fetch_bytes=fetch_bytes)
    return _bind(x_TK, w_GNK, offsets_G, options)


GROUP_WGMMA_VARIANTS = (cuda_wgmma, cuda_wgmma_tma_store, cuda_wgmma_halves, cuda_wgmma_cluster)
