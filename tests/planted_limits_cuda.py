"""Variants of `copy` that are right, and slow for a known reason. A plug-in of the worker, never imported by a test process."""

import ctypes
from pathlib import Path

from kernelviz.ops import Launch, variant
from kernelviz.ops.kernels import nvrtc

SOURCE = Path(__file__).with_name("planted_limits.cu")


@variant(op="copy", backend="cuda", needs=("nvrtc", "cuda"))
def strided(x_N) -> Launch:
    """Loads and stores 32 bytes apart."""
    return bind("copy_strided", x_N, -(-x_N.numel() // 256), 256)


@variant(op="copy", backend="cuda", needs=("nvrtc", "cuda"))
def low_occupancy(x_N) -> Launch:
    """Four warps an SM."""
    return bind("copy_low_occupancy", x_N, 4 * 132, 32)


def bind(name, x_N, blocks, threads):
    import torch

    out_N = torch.empty_like(x_N)
    kernel = nvrtc.kernel(SOURCE, name)
    count = ctypes.c_longlong(x_N.numel())

    def launch():
        nvrtc.launch(kernel, blocks, threads, x_N.data_ptr(), out_N.data_ptr(), count)
        return out_N

    return launch
