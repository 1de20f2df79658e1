"""The variants of `empty_launch`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="torch")
def torch_eager(x_K: Tensor) -> Launch:
    """fill_ of one element, k times: torch's own kernel, launched through its dispatcher."""
    import torch

    done_K = torch.empty_like(x_K)
    parts = [done_K[i : i + 1] for i in range(done_K.numel())]

    def launch() -> Tensor:
        for part in parts:
            part.fill_(1.0)
        return done_K

    return launch


@variant(backend="triton", needs=("triton", "cuda"))
def triton_launches(x_K: Tensor) -> Launch:
    """Triton, one program of one warp, k times: its launcher looks the kernel up by its arguments each time."""
    from kernelviz.ops.empty_launch import triton as kernels

    return kernels.bind_launches(x_K)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_launches(x_K: Tensor) -> Launch:
    """CUDA C++, one thread, k times, through cuda.core."""
    from kernelviz.ops.empty_launch import cuda as kernels

    return kernels.bind_launches(x_K)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_graph(x_K: Tensor) -> Launch:
    """The same k launches as one graph. It takes as long on the device; it saves the host's time for each call."""
    from kernelviz.ops.empty_launch import cuda as kernels

    return kernels.bind_graph(x_K)
