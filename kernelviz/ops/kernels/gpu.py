"""What kernels ask of the GPU that their tensors lie on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def multiprocessors(device: torch.device) -> int:
    """SMs of a GPU; 1 in Triton's interpreter, which runs the programs one after the other on the CPU."""
    import torch

    return int(torch.cuda.get_device_properties(device).multi_processor_count) if device.type == "cuda" else 1
