"""The CUDA C++ variants of `matmul` on Hopper's tensor cores, in ladder order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.variant import Configuration, Launch, variant
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES, limits
from kernelviz.ops.matmul import wgmma_choice
from kernelviz.ops.matmul.wgmma import BOX, Options

if TYPE_CHECKING:
    from torch import Tensor

_NEEDS: dict[str, Any] = {"backend": "cuda", "needs": ("nvrtc", "cuda", "sm_90a"), "dtypes": ("bf16", "fp16")}
FIRST = Options()
TWO_WARPGROUPS = replace(FIRST, consumers=2, stages=4)
SPECIALISED = replace(TWO_WARPGROUPS, specialised=1)
WIDE = replace(SPECIALISED, columns=256)
PERSISTENT = replace(WIDE, persistent=1)
CLUSTER = replace(PERSISTENT, cluster=2)
TMA_STORE = replace(CLUSTER, c_boxes=2)
HILBERT = replace(TMA_STORE, hilbert=1)
SPLIT_K = replace(HILBERT, split_k=1)


def _bind(a_MK: Tensor, b_KN: Tensor, options: Options) -> Launch:
    from kernelviz.ops.matmul import wgmma

    return wgmma.bind(a_MK, b_KN, options)


@variant(**_NEEDS, techniques=("tma", "wgmma"))
def cuda_wgmma(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, wgmma and TMA: a warpgroup multiplies tiles of 64×128 that TMA copied to shared memory."""
    return _bind(a_MK, b_KN, FIRST)


@variant(**_NEEDS, techniques=("tma", "wgmma"))
def cuda_wgmma_two_warpgroups(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, wgmma: two warpgroups share tiles of 128×128, of which three are copied ahead."""
    return _bind(a_MK, b_KN, TWO_WARPGROUPS)


@variant(**_NEEDS, techniques=("tma", "wgmma", "warp_specialised"))
def cuda_wgmma_specialised(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, wgmma: a warpgroup of its own starts the copies, so that the others never wait for each other."""
    return _bind(a_MK, b_KN, SPECIALISED)


@variant(**_NEEDS, techniques=("tma", "wgmma", "warp_specialised"))
def cuda_wgmma_wide(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, wgmma: tiles of 128×256, the largest that two warpgroups hold in registers."""
    return _bind(a_MK, b_KN, WIDE)


@variant(**_NEEDS, techniques=("tma", "wgmma", "warp_specialised"))
def cuda_wgmma_persistent(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, wgmma: a block computes several tiles, and copies for the next one while it stores the last one."""
    return _bind(a_MK, b_KN, PERSISTENT)


@variant(**_NEEDS, techniques=("tma", "wgmma", "warp_specialised", "multicast"))
def cuda_wgmma_cluster(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, wgmma: each of the two blocks of a cluster copies half of their tile of B, for both (multicast)."""
    return _bind(a_MK, b_KN, CLUSTER)


@variant(**_NEEDS, techniques=("tma", "wgmma", "warp_specialised", "multicast"))
def cuda_wgmma_tma_store(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, wgmma: TMA stores the product through shared memory while the next tile begins."""
    return _bind(a_MK, b_KN, TMA_STORE)


def _admits(configuration: Configuration, problem: Problem) -> str | None:
    """Why a configuration is not measured: its tile cannot be divided so, or its shared memory."""
    options = _options(**configuration)
    if options.columns // BOX % options.cluster:
        return f"{options.columns // BOX} boxes of B cannot be divided among {options.cluster} blocks"
    if options.c_boxes > options.columns // BOX:
        return f"a tile has {options.columns // BOX} boxes of C"
    if options.shared_bytes > MOST_SHARED_BYTES:
        return f"needs {options.shared_bytes:,} bytes of shared memory"
    return None


def _options(*, columns: int, stages: int, cluster: int, c_boxes: int, group: int) -> Options:
    """`group` 0 is Hilbert's order."""
    return replace(
        HILBERT,
        columns=columns,
        stages=stages,
        cluster=cluster,
        c_boxes=c_boxes,
        hilbert=int(group == 0),
        group=group or 1,
    )


SPACE = {
    "columns": (256, 128),
    "stages": (4, 3, 5, 6),
    "cluster": (2, 1, 4),
    "c_boxes": (2, 4, 1),
    "group": (0, 4, 8, 16),
}


@variant(**_NEEDS, techniques=("tma", "wgmma", "warp_specialised", "multicast"), space=SPACE, admits=_admits)
def cuda_wgmma_hilbert(
    a_MK: Tensor,
    b_KN: Tensor,
    *,
    columns: int = 256,
    stages: int = 4,
    cluster: int = 2,
    c_boxes: int = 2,
    group: int = 0,
) -> Launch:
    """CUDA C++, wgmma: tiles along Hilbert's curve, so that those computed at once share rows and columns in L2."""
    options = _options(columns=columns, stages=stages, cluster=cluster, c_boxes=c_boxes, group=group)
    return _bind(a_MK, b_KN, options)


@variant(
    **_NEEDS,
    techniques=("tma", "wgmma", "warp_specialised", "multicast"),
    space=wgmma_choice.SPACE,
    admits=wgmma_choice.admits,
)
def cuda_wgmma_by_size(
    a_MK: Tensor, b_KN: Tensor, *, rows: int = 0, columns: int = 0, cluster: int = 0, stages: int = 0
) -> Launch:
    """CUDA C++, wgmma: tile and cluster by the size; a last round that is not full is divided along K (split-K)."""
    (m, k), n = a_MK.shape, b_KN.shape[1]
    if rows and columns and cluster and stages:
        return _bind(a_MK, b_KN, wgmma_choice.options(rows, columns, cluster, stages))
    return _bind(a_MK, b_KN, wgmma_choice.choose(m, n, k, limits(a_MK.device)[0]))


WGMMA_VARIANTS = (
    cuda_wgmma,
    cuda_wgmma_two_warpgroups,
    cuda_wgmma_specialised,
    cuda_wgmma_wide,
    cuda_wgmma_persistent,
    cuda_wgmma_cluster,
    cuda_wgmma_tma_store,
    cuda_wgmma_hilbert,
    cuda_wgmma_by_size,
)
