"""The CUDA C++ variants of `linear_cross_entropy` on Hopper's tensor cores, in ladder order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.variant import Configuration, Launch, Staged, variant
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES
from kernelviz.ops.linear_cross_entropy.variants_backward import wgmma_backward
from kernelviz.ops.linear_cross_entropy.wgmma import Options

if TYPE_CHECKING:
    from torch import Tensor

_NEEDS: dict[str, Any] = {"backend": "cuda", "needs": ("nvrtc", "cuda", "sm_90a"), "dtypes": ("bf16", "fp16")}
FIRST = Options()
CLUSTER = replace(FIRST, cluster=2)
_SPACE = {"columns": (256, 128), "stages": (3, 4, 5, 6), "group": (16, 4, 8, 32, 64)}
_SPACE_OF_CLUSTERS = {"stages": (3, 4), "cluster": (2, 4), "group": (16, 4, 8, 32)}


def _bind(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, options: Options) -> Launch:
    from kernelviz.ops.linear_cross_entropy import wgmma

    return wgmma.bind_loss(x_MH, w_VH, labels_M, options)


def _options(*, columns: int = 256, stages: int, cluster: int = 1, group: int) -> Options:
    return Options(columns=columns, stages=stages, cluster=cluster, group=group)


def _admits(configuration: Configuration, problem: Problem) -> str | None:
    """Why a configuration is not measured: its shared memory, or a cluster whose last block has no rows."""
    options = _options(**configuration)
    if options.shared_bytes > MOST_SHARED_BYTES:
        return f"needs {options.shared_bytes:,} bytes of shared memory"
    if (options.cluster - 1) * options.rows >= problem.sizes["m"] and options.cluster > 1:
        return f"a cluster of {options.cluster} blocks has more rows than there are"
    return None


@variant(
    **_NEEDS,
    techniques=("tma", "wgmma", "warp_specialised"),
    space=_SPACE,
    admits=_admits,
    backward=wgmma_backward,
)
def cuda_wgmma(
    x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, *, columns: int = 256, stages: int = 3, group: int = 16
) -> Launch:
    """CUDA C++, wgmma and TMA, persistent: a warpgroup copies, two multiply tiles of 128×256 and reduce the sums in registers."""
    return _bind(x_MH, w_VH, labels_M, _options(columns=columns, stages=stages, group=group))


@variant(
    **_NEEDS,
    techniques=("tma", "wgmma", "warp_specialised", "multicast"),
    space=_SPACE_OF_CLUSTERS,
    admits=_admits,
)
def cuda_wgmma_cluster(
    x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, *, stages: int = 3, cluster: int = 2, group: int = 16
) -> Launch:
    """CUDA C++, wgmma: blocks of a cluster copy parts of their tile of w for each other (multicast), and wait for each other."""
    return _bind(x_MH, w_VH, labels_M, _options(stages=stages, cluster=cluster, group=group))


def padded_backward(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Launch:
    """As the wgmma kernel's, for any h: x and w are copied to padded rows, and both gradients back without the padding."""
    from kernelviz.ops.kernels.torch_precision import in_precision
    from kernelviz.ops.linear_cross_entropy import wgmma_padded

    passes = wgmma_padded.bind_backward(x_MH, w_VH, labels_M, dloss_M)
    return Staged(passes.forward, in_precision(passes.call, x_MH, None))


@variant(
    **_NEEDS,
    techniques=("tma", "wgmma", "warp_specialised", "multicast"),
    backward=padded_backward,
)
def cuda_wgmma_padded(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++, wgmma for any h: where it is no multiple of 8, copies in the launch pad x and w, and their time counts."""
    from kernelviz.ops.linear_cross_entropy import wgmma_padded

    return wgmma_padded.bind_loss(x_MH, w_VH, labels_M, CLUSTER)


WGMMA_VARIANTS = (cuda_wgmma, cuda_wgmma_cluster, cuda_wgmma_padded)
