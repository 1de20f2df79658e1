"""The variants of `conv2d` for Hopper's tensor cores alone, in Gluon and CUDA C++, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelviz.ops.catalog.variant import Launch, variant
from kernelviz.ops.convolution.wgmma_choice import SPACE, Options, admits

if TYPE_CHECKING:
    from torch import Tensor

WGMMA: dict[str, Any] = {
    "backend": "cuda",
    "needs": ("nvrtc", "cuda", "sm_90a"),
    "techniques": ("tma", "wgmma", "warp_specialised"),
}
FIRST = Options()
GLUON: dict[str, Any] = {
    "backend": "gluon",
    "needs": ("triton", "gluon", "cuda", "sm_90a"),
    "techniques": ("tma", "wgmma", "warp_specialised"),
}


@variant(**GLUON)
def gluon_boxes(x_NHWC: Tensor, w_KRRC: Tensor, *, s: int) -> Launch:
    """Gluon: tiles are boxes of images, which one warp loads by TMA with zeros as padding; two warpgroups multiply."""
    from kernelviz.ops.convolution import gluon as kernels

    return kernels.bind_boxes(x_NHWC, w_KRRC, None, s)


@variant(**WGMMA)
def cuda_wgmma(x_NHWC: Tensor, w_KRRC: Tensor, *, s: int) -> Launch:
    """CUDA C++: TMA copies windows (im2col), a warpgroup starts copies, two multiply by wgmma; 128 filters × 256 pixels."""
    from kernelviz.ops.convolution import wgmma as kernels

    return kernels.bind(x_NHWC, w_KRRC, None, s, FIRST)


@variant(**WGMMA)
def cuda_wgmma_by_size(x_NHWC: Tensor, w_KRRC: Tensor, *, s: int) -> Launch:
    """CUDA C++, wgmma: the tile by size, so that few filters fill it and the last round of tiles is nearly full."""
    from kernelviz.ops.convolution import wgmma as kernels

    return kernels.bind_by_size(x_NHWC, w_KRRC, None, s, resident=False)


@variant(**WGMMA)
def cuda_wgmma_resident(x_NHWC: Tensor, w_KRRC: Tensor, *, s: int) -> Launch:
    """CUDA C++, wgmma: filters that fit are copied once and stay in shared memory; only windows are copied for each tile."""
    from kernelviz.ops.convolution import wgmma as kernels

    return kernels.bind_by_size(x_NHWC, w_KRRC, None, s, resident=True)


@variant(**WGMMA, space=SPACE, admits=admits)
def cuda_wgmma_parts(
    x_NHWC: Tensor,
    w_KRRC: Tensor,
    *,
    s: int,
    filters: int = 0,
    pixels: int = 0,
    stages: int = 0,
    boxes: int = 0,
    parts: int = 0,
) -> Launch:
    """CUDA C++, wgmma: where there are too few tiles, several blocks share the terms of one, and the last adds up their sums."""
    from kernelviz.ops.convolution import wgmma as kernels

    if not filters:
        return kernels.bind_by_size(x_NHWC, w_KRRC, None, s, resident=True, parts=True)
    options = Options(filters=filters, pixels=pixels, stages=stages, boxes=boxes, parts=parts)
    return kernels.bind(x_NHWC, w_KRRC, None, s, options)


@variant(**WGMMA)
def cuda_wgmma_padded(x_NHWC: Tensor, w_KRRC: Tensor, *, s: int) -> Launch:
    """CUDA C++, wgmma for any c and k: what is no multiple of 8 is padded by copies in the launch, whose time counts."""
    from kernelviz.ops.convolution import wgmma_padded as kernels

    return kernels.bind(x_NHWC, w_KRRC, None, s)


WGMMA_VARIANTS = (
    gluon_boxes,
    cuda_wgmma,
    cuda_wgmma_by_size,
    cuda_wgmma_resident,
    cuda_wgmma_parts,
    cuda_wgmma_padded,
)
