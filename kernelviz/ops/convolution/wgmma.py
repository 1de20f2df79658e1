"""CUDA C++ kernel of `conv2d` and `conv_bias_relu` for Hopper's tensor cores (wgmma, im2col by TMA), bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.convolution.geometry import Geometry, geometry_of, require_pixels
from kernelviz.ops.convolution.wgmma_choice import (
    BOX,
    CONSUMERS,
    THREADS,
    Options,
    choose,
    choose_parts,
    tiles,
    with_resident_filters,
)
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.im2col_map import Taps, Windows, require_filter
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import limits
from kernelviz.ops.kernels.tensor_map import Boxes, require_pitch, tensor_maps

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "wgmma.cu"


def bind(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor | None, s: int, options: Options) -> Launch:
    """x ∗ w, or with a bias max(x ∗ w + b, 0), of contiguous tensors of bf16 or fp16.

    Raises BadField for tensors that are not contiguous, for channels or filters that are no multiples of 16 bytes, and for a side
    of the filter, a stride or a number of pixels that TMA or the kernel cannot address.
    """
    g = _checked(x_NHWC, w_KRRC, b_K, s)
    return _bind(x_NHWC, w_KRRC, b_K, g, options)


def bind_by_size(
    x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor | None, s: int, *, resident: bool, parts: bool = False
) -> Launch:
    """The same with a tile by size. `resident`: filters that fit stay in shared memory. `parts`: tiles may be divided.

    Errors: as `bind`.
    """
    g = _checked(x_NHWC, w_KRRC, b_K, s)
    options = (choose_parts if parts else choose)(g, limits(x_NHWC.device)[0])
    return _bind(x_NHWC, w_KRRC, b_K, g, with_resident_filters(g, options) if resident else options)


def _checked(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor | None, s: int) -> Geometry:
    require_contiguous(x_NHWC=x_NHWC, w_KRRC=w_KRRC, **({} if b_K is None else {"b_K": b_K}))
    g = geometry_of(x_NHWC, w_KRRC, s)
    require_pitch("c", g.c, x_NHWC.element_size())
    require_pitch("k", g.k, x_NHWC.element_size())
    require_filter(g.r, s)
    require_pixels(g)
    return g


def _bind(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor | None, g: Geometry, options: Options) -> Launch:
    import torch

    y_NPQK = torch.empty((g.n, g.p, g.q, g.k), dtype=x_NHWC.dtype, device=x_NHWC.device)
    kernel = nvrtc.kernel(
        SOURCE,
        "conv_wgmma",
        options.defines(nvrtc.element_type(x_NHWC.dtype), bias_relu=b_K is not None),
        shared_bytes=options.shared_bytes,
        specific=True,
    )
    windows, taps = Windows(x_NHWC, options.pixels, g.r, g.s), Taps(w_KRRC, options.filters)
    maps = tensor_maps([windows, taps, Boxes(y_NPQK.view(g.pixels, g.k), BOX)])
    count = tiles(g, options)
    split = options.parts > 1
    sums = options.filters * options.pixels * options.parts * count if split else 4
    sums_of_parts = torch.empty(sums, dtype=torch.float32, device=x_NHWC.device)
    arrived = torch.zeros(count * CONSUMERS if split else 1, dtype=torch.int32, device=x_NHWC.device)
    blocks = min(count * options.parts, nvrtc.resident(kernel, THREADS, shared_bytes=options.shared_bytes))
    memory = w_KRRC if b_K is None else b_K, sums_of_parts, arrived
    sizes = tuple(map(ctypes.c_int, (g.pixels, g.p, g.q, g.c, g.k, g.r, g.s)))

    def launch() -> Tensor:
        pointers = (t.data_ptr() for t in memory)
        nvrtc.launch(kernel, blocks, THREADS, maps, *pointers, *sizes, shared_bytes=options.shared_bytes)
        return y_NPQK

    return launch
