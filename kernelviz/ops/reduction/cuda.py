"""CUDA C++ kernels of `sum` and `mean`, bound to tensors. `divisor` is 1 for the sum, the count for the mean."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
MOST_ATOMICS = 2**24
"""Elements that are added one by one to a single number: with more of them a sum of ones in fp32 no longer grows. An atomic takes
1.8 ns on an H200, so they take 30 ms."""
TWO_PASS_BLOCKS = 1024
PERSISTENT_THREADS = 512
PERSISTENT_BLOCKS_A_MULTIPROCESSOR = 2
"""1024 threads an SM with 64 bytes each in flight: 4593 GB/s; 2048 threads: 4455."""


def bind_atomic_per_element(x_N: Tensor, divisor: int) -> Launch:
    """One atomic an element. Errors: BadField for more than 2^24 elements, which would occupy the GPU for too long."""
    if x_N.numel() > MOST_ATOMICS:
        raise BadField(
            "size n", x_N.numel(), "one atomic an element is for at most 2^24 elements; choose cuda_atomic_per_warp"
        )
    return _bind_atomic("sum_atomic_per_element", x_N, divisor, threads=256)


def bind_atomic_per_warp(x_N: Tensor, divisor: int) -> Launch:
    """One atomic a warp, of one element per thread."""
    return _bind_atomic("sum_atomic_per_warp", x_N, divisor, threads=256)


def bind_atomic_per_block(x_N: Tensor, divisor: int) -> Launch:
    """One atomic a block of 1024 threads, of one element per thread."""
    return _bind_atomic("sum_atomic_per_block", x_N, divisor, threads=1024)


def _bind_atomic(name: str, x_N: Tensor, divisor: int, *, threads: int) -> Launch:
    import torch

    require_contiguous(x_N=x_N)
    total = torch.empty(1, dtype=torch.float32, device=x_N.device)
    out_1 = torch.empty(1, dtype=x_N.dtype, device=x_N.device)
    defines = {"ELEMENT": nvrtc.element_type(x_N.dtype)}
    kernel, finish = nvrtc.kernel(SOURCE, name, defines), nvrtc.kernel(SOURCE, "sum_finish", defines)
    blocks = -(-x_N.numel() // threads)
    count, over = ctypes.c_longlong(x_N.numel()), ctypes.c_float(divisor)

    def launch() -> Tensor:
        total.zero_()
        nvrtc.launch(kernel, blocks, threads, x_N.data_ptr(), total.data_ptr(), count)
        nvrtc.launch(finish, 1, 32, total.data_ptr(), out_1.data_ptr(), over)
        return out_1

    return launch


def bind_two_pass(x_N: Tensor, divisor: int) -> Launch:
    """The sums of blocks, then their sum."""
    import torch

    require_contiguous(x_N=x_N)
    blocks = min(TWO_PASS_BLOCKS, -(-x_N.numel() // 512))
    partials = torch.empty(blocks, dtype=torch.float32, device=x_N.device)
    out_1 = torch.empty(1, dtype=x_N.dtype, device=x_N.device)
    defines = {"ELEMENT": nvrtc.element_type(x_N.dtype)}
    first, second = (nvrtc.kernel(SOURCE, name, defines) for name in ("sum_partials", "sum_of_partials"))
    count, parts, over = ctypes.c_longlong(x_N.numel()), ctypes.c_int(blocks), ctypes.c_float(divisor)

    def launch() -> Tensor:
        nvrtc.launch(first, blocks, 512, x_N.data_ptr(), partials.data_ptr(), count)
        nvrtc.launch(second, 1, 1024, partials.data_ptr(), out_1.data_ptr(), parts, over)
        return out_1

    return launch


def bind_persistent(x_N: Tensor, divisor: int) -> Launch:
    """A fixed grid, or as many blocks as give each thread one 16-byte vector of a shorter input."""
    import torch

    require_contiguous(x_N=x_N)
    vectors = -(-x_N.numel() * x_N.element_size() // 16)
    resident = multiprocessors(x_N.device) * PERSISTENT_BLOCKS_A_MULTIPROCESSOR
    blocks = max(1, min(resident, -(-vectors // PERSISTENT_THREADS)))
    partials = torch.empty(blocks, dtype=torch.float32, device=x_N.device)
    ticket = torch.zeros(1, dtype=torch.int32, device=x_N.device)
    out_1 = torch.empty(1, dtype=x_N.dtype, device=x_N.device)
    kernel = nvrtc.kernel(SOURCE, "sum_persistent", {"ELEMENT": nvrtc.element_type(x_N.dtype)})
    arguments = (ctypes.c_longlong(x_N.numel()), ctypes.c_float(divisor))

    def launch() -> Tensor:
        # Addresses are taken here, so that the launch keeps alive the tensors that only it owns.
        pointers = (x_N.data_ptr(), partials.data_ptr(), ticket.data_ptr(), out_1.data_ptr())
        nvrtc.launch(kernel, blocks, PERSISTENT_THREADS, *pointers, *arguments)
        return out_1

    return launch
