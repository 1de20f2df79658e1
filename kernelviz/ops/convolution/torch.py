"""`conv2d` and `conv_bias_relu` by torch's libraries: cuDNN on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.convolution.geometry import geometry_of
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.torch_precision import in_precision

if TYPE_CHECKING:
    from torch import Tensor


def channels_last(x_NHWC: Tensor) -> Tensor:
    """The same memory as torch names it: (N, C, H, W) in the format channels_last."""
    return x_NHWC.permute(0, 3, 1, 2)


def nhwc(y_NCHW: Tensor) -> Tensor:
    """The reverse; copied where torch chose another format, as it may for one channel or one pixel."""
    return y_NCHW.permute(0, 2, 3, 1).contiguous()


def conv2d(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor | None, s: int) -> Tensor:
    """torch.nn.functional.conv2d of tensors in NHWC."""
    from torch.nn import functional

    x_NCHW, w_KCRR = channels_last(x_NHWC), channels_last(w_KRRC)
    return nhwc(functional.conv2d(x_NCHW, w_KCRR, b_K, stride=s, padding=w_KRRC.shape[1] // 2))


def conv_bias_relu(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor, s: int) -> Tensor:
    """The same with a bias, and relu after it."""
    return conv2d(x_NHWC, w_KRRC, b_K, s).relu()


def bind_searched(x_NHWC: Tensor, w_KRRC: Tensor, s: int) -> Launch:
    """cuDNN's convolution with the kernel that was fastest when it was bound.

    torch keeps one kernel for each problem in a process, whether it was found by a search or by cuDNN's heuristics. Its key has
    the flag for deterministic kernels, so the search is among these, and what `conv2d` runs is not changed by it.
    Raises BadField for tensors that are not contiguous.
    """
    import torch

    require_contiguous(x_NHWC=x_NHWC, w_KRRC=w_KRRC)
    x_NCHW, w_KCRR = channels_last(x_NHWC), channels_last(w_KRRC)
    pad = w_KRRC.shape[1] // 2

    def convolution(search: bool) -> Tensor:
        sides = [pad, pad], [s, s], [1, 1], 1
        return torch.cudnn_convolution(x_NCHW, w_KCRR, *sides, benchmark=search, deterministic=True, allow_tf32=True)

    with every_plan():
        convolution(True)
    return lambda: nhwc(convolution(False))


def bind_fused(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor, s: int) -> Launch:
    """cuDNN's convolution with bias and relu in its epilogue, with the kernel that was fastest when it was bound.

    Raises BadField for tensors that are not contiguous.
    """
    import torch

    require_contiguous(x_NHWC=x_NHWC, w_KRRC=w_KRRC, b_K=b_K)
    x_NCHW, w_KCRR = channels_last(x_NHWC), channels_last(w_KRRC)
    pad = w_KRRC.shape[1] // 2

    def convolution() -> Tensor:
        return torch.cudnn_convolution_relu(x_NCHW, w_KCRR, b_K, [s, s], [pad, pad], [1, 1], 1)

    with every_plan():
        convolution()
    return lambda: nhwc(convolution())


@contextmanager
def every_plan() -> Iterator[None]:
    """torch's search among all of cuDNN's kernels (by default, among the ten that cuDNN names first)."""
    import torch

    settings = torch.backends.cudnn
    before = settings.benchmark, settings.benchmark_limit
    settings.benchmark, settings.benchmark_limit = True, 0
    try:
        yield
    finally:
        settings.benchmark, settings.benchmark_limit = before


def bind_im2col(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor | None, s: int) -> Launch:
    """The window of each position as a row of a matrix in memory, by a kernel of its own, then one product by cuBLAS.

    With a bias, cuBLAS adds it, and relu is a third kernel. Raises BadField for tensors that are not contiguous.
    """
    import torch

    from kernelviz.ops.convolution import cuda

    require_contiguous(x_NHWC=x_NHWC, w_KRRC=w_KRRC, **({} if b_K is None else {"b_K": b_K}))
    g = geometry_of(x_NHWC, w_KRRC, s)
    gather, windows_MT = cuda.bind_windows(x_NHWC, g)
    w_TK = w_KRRC.view(g.k, g.terms).T
    y_NPQK = torch.empty((g.n, g.p, g.q, g.k), dtype=x_NHWC.dtype, device=x_NHWC.device)
    y_MK = y_NPQK.view(g.pixels, g.k)

    def launch() -> Tensor:
        gather()
        if b_K is None:
            torch.mm(windows_MT, w_TK, out=y_MK)
        else:
            torch.addmm(b_K, windows_MT, w_TK, out=y_MK)
            y_MK.relu_()
        return y_NPQK

    return in_precision(launch, x_NHWC, None)
