"""Sums as CUDA graphs, as a guide to elementwise operators publishes them (source 1): captured once, then launched as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch

if TYPE_CHECKING:
    from torch import Tensor


def bind_sum(x_N: Tensor, y_N: Tensor) -> Launch:
    """x + y. The published call is a graph of one sum, which a loop launches a hundred times."""
    import torch

    return _bind(lambda: x_N + y_N, lambda out_N: torch.add(x_N, y_N, out=out_N), x_N)


def bind_half_sum(views: Callable[[], tuple[Tensor, Tensor]], x_N: Tensor) -> Launch:
    """The sum of two views, made anew in each call, in fp16; the result is fp32 and flat. `x_N` says where the views are."""

    def half_sum() -> Tensor:
        x_RC, y_RC = views()
        return x_RC.half().add_(y_RC.half()).view(-1)

    return _bind(lambda: half_sum().float(), lambda out_N: out_N.copy_(half_sum()), x_N)


def _bind(call: Callable[[], Tensor], into: Callable[[Tensor], object], x_N: Tensor) -> Launch:
    """Capture `call` as a graph. A launch launches the graph and returns the tensor that it writes.

    A stream that is being captured cannot take a graph, so there the launch runs the same kernels, `into` the same tensor. The
    device time of kernelviz is taken in such a capture, so it is that of the kernels. What a graph saves is time of the host; the
    figures that are timed by the host (one call, back to back) launch the graph. Without a GPU there are no graphs, so the call
    is the eager one.
    """
    import torch

    if not x_N.is_cuda:
        return call
    call()  # loads the kernels, which a capture cannot
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out_N = call()

    def launch() -> Tensor:
        if torch.cuda.is_current_stream_capturing():
            into(out_N)
        else:
            graph.replay()
        return out_N

    return launch
