"""The wgmma kernel of `conv2d` and `conv_bias_relu` for any number of channels and filters: what TMA cannot address is copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.convolution import wgmma
from kernelviz.ops.convolution.geometry import geometry_of, require_pixels
from kernelviz.ops.kernels.im2col_map import require_filter
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.row_padding import padded, row_copy

if TYPE_CHECKING:
    from torch import Tensor


def bind(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor | None, s: int) -> Launch:
    """x ∗ w, or with a bias max(x ∗ w + b, 0), of contiguous tensors of bf16 or fp16.

    Channels and filters are padded to multiples of 8 with zeros in memory of their own, and the result is copied without the
    padding; all copies are a part of the launch. Where both are multiples of 8, nothing is copied.
    Raises BadField for tensors that are not contiguous, and for a side of the filter, a stride or a number of pixels that TMA or
    the kernel cannot address.
    """
    require_contiguous(x_NHWC=x_NHWC, w_KRRC=w_KRRC, **({} if b_K is None else {"b_K": b_K}))
    g = geometry_of(x_NHWC, w_KRRC, s)
    require_filter(g.r, s)
    require_pixels(g)
    c, k = padded(g.c), padded(g.k)
    if (c, k) == (g.c, g.k):
        return wgmma.bind_by_size(x_NHWC, w_KRRC, b_K, s, resident=True, parts=True)
    x_padded = x_NHWC if c == g.c else x_NHWC.new_empty((g.n, g.h, g.w, c))
    # Filters after the last one are zeros that no copy overwrites.
    w_padded = w_KRRC.new_zeros((k, g.r, g.r, c))
    inputs = [(w_KRRC, w_padded), *([(x_NHWC, x_padded)] if c != g.c else [])]
    copy_inputs = row_copy(g.c, c, sum(t.numel() for t, _ in inputs) // g.c, *(t for t, _ in inputs))
    copy_bias, b_padded = _bias(b_K, k)
    launch_padded = wgmma.bind_by_size(x_padded, w_padded, b_padded, s, resident=True, parts=True)
    convolve = cast("Callable[[], Tensor]", launch_padded)  # it has one result
    y_NPQK = x_NHWC.new_empty((g.n, g.p, g.q, g.k))
    copy_result = row_copy(k, g.k, g.pixels) if k != g.k else None

    def launch() -> Tensor:
        copy_inputs(*inputs)
        copy_bias()
        y_padded = convolve()
        if copy_result is None:
            return y_padded
        copy_result((y_padded, y_NPQK))
        return y_NPQK

    return launch


def _bias(b_K: Tensor | None, k: int) -> tuple[Callable[[], None], Tensor | None]:
    """A launch that copies the bias to one of `k` filters, and that one; nothing is launched where there is nothing to pad."""
    if b_K is None or b_K.numel() == k:
        return lambda: None, b_K
    b_padded = b_K.new_empty(k)
    copy = row_copy(b_K.numel(), k, 1, b_K)
    return lambda: copy((b_K, b_padded)), b_padded
