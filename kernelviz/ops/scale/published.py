"""The CUDA extension of `scale` as a tutorial publishes it (source 2): a call allocates its result and waits for the device."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "published.cu"
THREADS = 256
MOST_ELEMENTS = 2**31 - 1 - THREADS
"""The kernel numbers its threads in 32 bits, also those of the last block that have no element."""


def bind_published(x_N: Tensor, scale: float) -> Launch:
    """Launch of the published kernel. Raises BadField for a vector that is not contiguous or that 32 bits do not count.

    The published C++ function is called here from Python: its three steps (allocate, launch, synchronise) are the same. The
    third makes the call impossible to capture, so the device time is that of launches into the stream.
    """
    import torch

    require_contiguous(x_N=x_N)
    n = x_N.numel()
    if n > MOST_ELEMENTS:
        raise BadField("size n", n, f"this kernel counts in 32 bits; it takes at most {MOST_ELEMENTS} elements")
    kernel = nvrtc.kernel(SOURCE, "scale_published")
    blocks, arguments = -(-n // THREADS), (ctypes.c_float(scale), ctypes.c_int(n))

    def launch() -> Tensor:
        out_N = torch.empty_like(x_N)
        nvrtc.launch(kernel, blocks, THREADS, x_N.data_ptr(), out_N.data_ptr(), *arguments)
        if x_N.is_cuda:
            torch.cuda.synchronize(x_N.device)
        return out_N

    return launch
