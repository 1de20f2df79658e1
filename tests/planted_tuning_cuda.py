"""A variant of `add` for a GPU: 48 configurations, of which eight ask for more shared memory than a block may have, and two are
wrong. Given to a worker as a plug-in."""

import ctypes
from pathlib import Path

from kernelviz.ops import Launch, variant
from kernelviz.ops.kernels import nvrtc

SOURCE = Path(__file__).with_name("planted_tuning.cu")


@variant(
    op="add",
    backend="cuda",
    needs=("nvrtc", "cuda"),
    dtypes=("fp32",),
    space={"threads": (256, 1024), "parts": (1, 2, 4, 8), "shared_kib": (4, 16, 32, 64, 128, 256)},
)
def through_shared(x_N, y_N, *, threads: int = 256, parts: int = 1, shared_kib: int = 4) -> Launch:
    """The sum through shared memory; the more of it a block asks for, the fewer are resident."""
    import torch

    forgets = int(parts == 8 and shared_kib == 32)
    shared_bytes = 1024 * shared_kib
    defines = {"PARTS": str(parts), "FORGETS": str(forgets)}
    kernel = nvrtc.kernel(SOURCE, "tiles_through_shared", defines, shared_bytes=shared_bytes)
    out_N = torch.empty_like(x_N)
    n = x_N.numel()
    blocks = -(-n // (threads * parts))
    arguments = (x_N.data_ptr(), y_N.data_ptr(), out_N.data_ptr(), ctypes.c_longlong(n))

    def launch():
        nvrtc.launch(kernel, blocks, threads, *arguments, shared_bytes=shared_bytes)
        return out_N

    return launch
