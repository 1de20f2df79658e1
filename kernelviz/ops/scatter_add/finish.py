"""The CUDA C++ kernel that adds fp32 sums to a table of 16-bit numbers, bound to the table."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.vec16 import aligned

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "finish.cu"
THREADS, VECTOR = 256, 8
"""Of a block, and elements of a 16-byte vector of 16-bit numbers."""
FEW_ELEMENTS = 2**20
"""Of a table that is read while the sums are: an estimate. Of a larger one only what gets additions is read."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Elements of the table, and of a thread."""

    count: int
    each: int

    @property
    def blocks(self) -> int:
        """Blocks of THREADS: a thread for each vector and for each element behind the last one.

        >>> Finish(8 * 256, 8).blocks, Finish(8 * 256 + 1, 8).blocks, Finish(257, 1).blocks
        (1, 2, 2)
        """
        return -(-(self.count // self.each + self.count % self.each) // THREADS)

    @property
    def is_small(self) -> bool:
        """Whether 32 bits count the elements of all threads."""
        return self.blocks * THREADS * self.each < 2**32

    @property
    def argument(self) -> Any:
        """The elements of the table, as the kernel's INDEX."""
        return ctypes.c_uint(self.count) if self.is_small else ctypes.c_ulonglong(self.count)

    @property
    def defines(self) -> dict[str, str]:
        """What the kernel is compiled with, besides the type of an element."""
        index = "unsigned" if self.is_small else "unsigned long long"
        return {"EACH": str(self.each), "AT_ONCE": str(int(self.count <= FEW_ELEMENTS)), "INDEX": index}


def bind_finish(x_VD: Tensor) -> tuple[Tensor, Callable[[], None]]:
    """fp32 sums (V, D) that are zero, and a launch that adds them to the contiguous table x and leaves them zero."""
    import torch

    sum_VD = torch.zeros_like(x_VD, dtype=torch.float32)
    finish = Finish(x_VD.numel(), VECTOR if aligned(x_VD) else 1)
    kernel = nvrtc.kernel(SOURCE, "scatter_finish", {"ELEMENT": nvrtc.element_type(x_VD.dtype), **finish.defines})
    blocks, argument = finish.blocks, finish.argument

    def launch() -> None:
        nvrtc.launch(kernel, blocks, THREADS, x_VD.data_ptr(), sum_VD.data_ptr(), argument)

    return sum_VD, launch
