"""CUDA C++ kernel of `histogram` for few bytes, bound to vectors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.histogram.cuda import BINS
from kernelviz.ops.histogram.cuda import bind_shared as bind_blocks
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "one_block.cu"
MOST_BYTES = 2**14
"""Up to which one block counts all: 16 loads for each of its threads, which take less time than another launch. An estimate."""
LEAST_THREADS, MOST_THREADS = 256, 1024


def one_block(n: int) -> tuple[int, int]:
    """Threads of the block that counts n bytes, and bytes of each: powers of 2.

    >>> one_block(1), one_block(257), one_block(1025), one_block(2**14)
    ((256, 1), (512, 1), (1024, 2), (1024, 16))
    """
    threads = max(LEAST_THREADS, min(MOST_THREADS, 1 << (n - 1).bit_length()))
    return threads, 1 << (-(-n // threads) - 1).bit_length()


def bind_shared(x_N: Tensor) -> Launch:
    """One block for up to 16 KiB, else eight an SM. Errors: BadField for a vector that is not contiguous."""
    import torch

    if x_N.numel() > MOST_BYTES:
        return bind_blocks(x_N)
    require_contiguous(x_N=x_N)
    threads, each = one_block(x_N.numel())
    out = torch.empty(BINS, dtype=torch.int64, device=x_N.device)
    kernel = nvrtc.kernel(SOURCE, "histogram_one_block", {"THREADS": str(threads), "EACH": str(each)})
    count = ctypes.c_uint(x_N.numel())

    def launch() -> Tensor:
        # The address is read here, so that the closure keeps the tensor alive that only it owns.
        nvrtc.launch(kernel, 1, threads, x_N.data_ptr(), out.data_ptr(), count)
        return out

    return launch
