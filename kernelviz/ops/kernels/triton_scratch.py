"""Launches of Triton kernels that need memory of the GPU beside their arguments, such as tensor descriptors made on the device.

Triton (3.6 and 3.7) asks the allocator of `triton.set_allocator` for that memory at each launch. The allocator is a context
variable (`contextvars`), so it is set here in a context of the launch's own: nothing changes for other code of the process.
"""

from __future__ import annotations

import contextvars
from typing import Any

import torch
import triton


class ScratchContext:
    """A context in which kernels are launched, and the memory that they get there.

    The memory of each size is allocated at the first launch and used again at every later one. So a launch allocates nothing, a
    captured CUDA graph stays valid while this object lives, and launches of one object must not overlap.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._buffers: dict[int, torch.Tensor] = {}
        self._context = contextvars.copy_context()
        self._context.run(triton.set_allocator, self._allocate)

    def launch(self, kernel: Any, *arguments: Any, **options: Any) -> None:
        """Call a kernel with a grid (``kernel[grid]``) in this context."""
        self._context.run(kernel, *arguments, **options)

    def _allocate(self, size_bytes: int, alignment_bytes: int, stream: int | None) -> torch.Tensor:
        # torch aligns to 512 bytes, and a tensor map needs 64 (CUDA Driver API, cuTensorMapEncodeTiled).
        if size_bytes not in self._buffers:
            self._buffers[size_bytes] = torch.empty(size_bytes, dtype=torch.uint8, device=self._device)
        return self._buffers[size_bytes]
