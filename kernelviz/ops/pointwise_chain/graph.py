"""A chain of eager calls recorded once and replayed as one CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.op import Launch

if TYPE_CHECKING:
    from torch import Tensor


def bind_graph(run: Callable[[], Tensor], device_type: str) -> Launch:
    """A launch that replays `run`'s kernels; without a GPU `run` itself.

    A graph cannot be launched into a stream that is being captured. There the launch runs `run`, whose kernels become nodes of
    the graph that is captured: the very nodes that its own graph holds.
    """
    if device_type != "cuda":
        return run
    import torch

    # The first call may load kernels and create handles, which a capture cannot.
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = run()

    def launch() -> Tensor:
        if torch.cuda.is_current_stream_capturing():
            return run()
        graph.replay()
        return out

    return launch
