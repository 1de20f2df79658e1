"""CUDA C++ kernels of `row_sum` and `argmax`, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.op import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
LONGEST_ROW_OF_A_WARP_BYTES = 4 * 1024
"""For sums; rows of 16 KiB: 4510 GB/s by blocks of 128 threads against 4356 by warps."""
LONGEST_ROW_OF_A_WARP_ARGMAX_BYTES = 16 * 1024
"""For argmax; rows of 16 KiB: 4272 GB/s by warps against 3934 by blocks of 128 threads."""
SHORTEST_PART_BYTES = 8 * 1024
"""Of a row that several blocks share: 4 words of 16 bytes for each of 128 threads."""


def bind_row_per_thread(x_MN: Tensor, argmax: bool) -> Launch:
    """A thread a row of a contiguous matrix (M, N); this and the others raise BadField for what is not contiguous."""
    m = x_MN.shape[0]
    return _bind("row_per_thread", x_MN, argmax, blocks=-(-m // 128), threads=128)


def bind_row_per_warp(x_MN: Tensor, argmax: bool) -> Launch:
    """A warp a row, eight rows a block."""
    return _bind("row_per_warp", x_MN, argmax, blocks=-(-x_MN.shape[0] // 8), threads=256)


def bind_row_per_block(x_MN: Tensor, argmax: bool, *, threads: int = 0) -> Launch:
    """A block a row; by default of as many threads (128 to 512) as have eight 16-byte words of the row each."""
    threads = threads or threads_for(x_MN.shape[1] * x_MN.element_size())
    return _bind("row_per_block", x_MN, argmax, blocks=x_MN.shape[0], threads=threads)


def bind_split_row(x_MN: Tensor, argmax: bool, *, parts: int = 0, threads: int = 0) -> Launch:
    """Several blocks a row; by default as many as keep every SM busy."""
    import torch

    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    itemsize = x_MN.element_size()
    parts = parts or parts_for(m, n * itemsize, multiprocessors(x_MN.device))
    # Whole words, so that all parts of an aligned row are aligned.
    part = -(-n // (8 * parts)) * 8
    parts = -(-n // part)
    threads = threads or threads_for(part * itemsize)
    kernel, out_M = _kernel("row_split", x_MN, argmax, threads)
    values = torch.empty(m * parts, dtype=torch.float32, device=x_MN.device)
    places = torch.empty(m * parts, dtype=torch.int32, device=x_MN.device)
    tickets = torch.zeros(m, dtype=torch.int32, device=x_MN.device)
    sizes = (ctypes.c_int(n), ctypes.c_int(parts), ctypes.c_int(part))

    def launch() -> Tensor:
        # Addresses are asked for here, so that the launch keeps what it alone owns.
        pointers = (t.data_ptr() for t in (x_MN, values, places, tickets, out_M))
        nvrtc.launch(kernel, m * parts, threads, *pointers, *sizes)
        return out_M

    return launch


def bind_adaptive(x_MN: Tensor, argmax: bool) -> Launch:
    """A warp a row, a block a row or several blocks a row, by the rows' number and length."""
    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    row_bytes = n * x_MN.element_size()
    count = multiprocessors(x_MN.device)
    # Half of the 64 warps that an SM holds keep its share of the memory busy, at four words a thread.
    longest = LONGEST_ROW_OF_A_WARP_ARGMAX_BYTES if argmax else LONGEST_ROW_OF_A_WARP_BYTES
    if row_bytes <= longest and m >= 32 * count:
        return bind_row_per_warp(x_MN, argmax)
    return bind_split_row(x_MN, argmax) if parts_for(m, row_bytes, count) > 1 else bind_row_per_block(x_MN, argmax)


def threads_for(piece_bytes: int) -> int:
    """128 to 512 threads, each with eight words of 16 bytes.

    >>> [threads_for(b) for b in (100, 16384, 32768, 2**20)]
    [128, 128, 256, 512]
    """
    return max(128, min(512, 1 << (max(1, piece_bytes // 128) - 1).bit_length()))


def parts_for(m: int, row_bytes: int, count: int) -> int:
    """Parts of a row, on a GPU of `count` SMs: four blocks an SM in all, at least 8 KiB a part.

    >>> parts_for(1, 2**21, 132), parts_for(64, 2**21, 132), parts_for(2048, 2**18, 132)
    (256, 9, 1)
    """
    return max(1, min(-(-4 * count // m), -(-row_bytes // SHORTEST_PART_BYTES)))


def _kernel(name: str, x_MN: Tensor, argmax: bool, threads: int) -> tuple[object, Tensor]:
    import torch

    require_contiguous(x_MN=x_MN)
    if max(x_MN.shape) >= 2**31:
        raise BadField("size", max(x_MN.shape), "this kernel counts rows and places in a row in 32 bits")
    defines = {"ELEMENT": nvrtc.element_type(x_MN.dtype), "THREADS": str(threads)} | ({"ARGMAX": "1"} if argmax else {})
    out_M = torch.empty(x_MN.shape[0], dtype=torch.int64 if argmax else x_MN.dtype, device=x_MN.device)
    return nvrtc.kernel(SOURCE, name, defines), out_M


def _bind(name: str, x_MN: Tensor, argmax: bool, *, blocks: int, threads: int) -> Launch:
    kernel, out_M = _kernel(name, x_MN, argmax, threads)
    pointers = (x_MN.data_ptr(), out_M.data_ptr())
    sizes = (ctypes.c_int(x_MN.shape[0]), ctypes.c_int(x_MN.shape[1]))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, *pointers, *sizes)
        return out_M

    return launch
