"""Properties of the GPU that a kernel's tensors are on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def multiprocessors(device: torch.device) -> int:
    """Number of SMs of a GPU; 1 on a CPU, where Triton's interpreter runs programs one after the other."""
    import torch

    return int(torch.cuda.get_device_properties(device).multi_processor_count) if device.type == "cuda" else 1
