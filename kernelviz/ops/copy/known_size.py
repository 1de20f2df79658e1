"""CUDA C++ kernel of `copy` of few elements, compiled for their number, bound to vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.copy.cuda import bind_adaptive
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.vec16 import VEC16_BYTES

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_known_size.cu"
MOST_BYTES = 2**19
"""Of a vector. A longer one takes several times as long as what is saved: the fetch of some instructions."""
WARP, BLOCK_THREADS, ONE_BLOCK_THREADS = 32, 128, 512
"""Threads of each of several blocks, and the most of one block, which need not read its number."""
NARROW_BYTES, HALVES_BYTES = 2**13, 2**18
"""Of a vector, above which threads have 16 bytes each, and others the elements behind, where a unit that leaves none has fewer
than 8 bytes, or 8."""


@dataclass(frozen=True, slots=True)
class KnownSize:
    """Blocks, their threads, and bytes of each thread but those that have one of the elements behind the last whole unit."""

    blocks: int
    threads: int
    unit_bytes: int

    def defines(self, n: int, itemsize_bytes: int) -> dict[str, str]:
        """What the kernel is compiled with for n elements."""
        shape = {"SIZE": n, "UNIT_BYTES": self.unit_bytes, "BLOCK_THREADS": self.threads}
        element = "unsigned" if itemsize_bytes == 4 else "unsigned short"
        return {"ELEMENT": element} | {name: str(value) for name, value in shape.items()}


def known_size(n: int, itemsize_bytes: int, address: int) -> KnownSize | None:
    """The launch for n elements from this address on; None for more than 512 KiB.

    >>> known_size(512, 4, 256), known_size(89540, 2, 256)
    (KnownSize(blocks=1, threads=128, unit_bytes=16), KnownSize(blocks=175, threads=128, unit_bytes=8))
    >>> known_size(1001, 4, 256), known_size(10001, 4, 256), known_size(2**20, 4, 256)
    (KnownSize(blocks=8, threads=128, unit_bytes=4), KnownSize(blocks=20, threads=128, unit_bytes=16), None)
    """
    if n * itemsize_bytes > MOST_BYTES:
        return None
    unit_bytes = math.gcd(VEC16_BYTES, n * itemsize_bytes, address)
    narrow = n * itemsize_bytes > (HALVES_BYTES if unit_bytes == VEC16_BYTES // 2 else NARROW_BYTES)
    if narrow and address % VEC16_BYTES == 0:
        unit_bytes = VEC16_BYTES
    whole, after = divmod(n * itemsize_bytes, unit_bytes)
    units = whole + after // itemsize_bytes
    threads = -(-units // WARP) * WARP if units <= ONE_BLOCK_THREADS else BLOCK_THREADS
    return KnownSize(-(-units // threads), threads, unit_bytes)


def bind_known_size(x_N: Tensor) -> Launch:
    """One launch without a size; more than 512 KiB as `bind_adaptive`. Raises BadField for a vector that is not contiguous."""
    import torch

    require_contiguous(x_N=x_N)
    n, itemsize_bytes = x_N.numel(), x_N.element_size()
    known = known_size(n, itemsize_bytes, x_N.data_ptr())
    if known is None:
        return bind_adaptive(x_N)
    out_N = torch.empty_like(x_N)
    kernel = nvrtc.kernel(SOURCE, "copy_known_size", known.defines(n, itemsize_bytes))
    pointers = (x_N.data_ptr(), out_N.data_ptr())

    def launch() -> Tensor:
        nvrtc.launch(kernel, known.blocks, known.threads, *pointers)
        return out_N

    return launch
