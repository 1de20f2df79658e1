"""The CUDA C++ kernel of `empty_launch`, launched one by one or as a graph."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"


def bind_launches(x_K: Tensor) -> Launch:
    """One launch an element."""
    launches, done_K = _launches(x_K)

    def launch() -> Tensor:
        launches()
        return done_K

    return launch


def bind_graph(x_K: Tensor) -> Launch:
    """The launches are captured once; a call launches the graph.

    While a stream is captured it cannot take a graph: the graph that is being made is given the k launches themselves.
    """
    import torch

    launches, done_K = _launches(x_K)
    if x_K.device.type != "cuda":
        return bind_launches(x_K)
    launches()  # loads the kernel, which a capture cannot
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launches()

    def launch() -> Tensor:
        if torch.cuda.is_current_stream_capturing():
            launches()
        else:
            graph.replay()
        return done_K

    return launch


def _launches(x_K: Tensor) -> tuple[Callable[[], None], Tensor]:
    import torch

    require_contiguous(x_K=x_K)
    done_K = torch.empty_like(x_K)
    kernel = nvrtc.kernel(SOURCE, "mark")
    pointer, numbers = done_K.data_ptr(), [ctypes.c_longlong(i) for i in range(x_K.numel())]

    def launches() -> None:
        for i in numbers:
            nvrtc.launch(kernel, 1, 1, pointer, i)

    return launches, done_K
