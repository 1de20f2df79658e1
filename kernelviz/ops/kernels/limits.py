"""What a block may have, on the GPUs that kernels are written for and on the GPU of a tensor. Imports no torch at its top."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

MULTIPROCESSORS = 132
"""Of an H100 or H200. `admits` of a space knows no device."""
MOST_SHARED_BYTES = 232_448
"""Of a block on an H100, H200 or B200."""
LEAST_SHARED_BYTES = 99 * 1024
"""Of a block on every GPU from sm_80 on: that of sm_86, sm_89 and sm_120 (RTX 3090, 4090, 5090)."""
PTX_NAMES = {"__nv_bfloat16": "bf16", "__half": "f16"}
"""Names in PTX of C++ types of 16 bits."""


def limits(device: torch.device, without_gpu: int = LEAST_SHARED_BYTES) -> tuple[int, int]:
    """Multiprocessors, and bytes of shared memory that a block may have; without a GPU, those of an H200 and `without_gpu`."""
    if device.type != "cuda":
        return MULTIPROCESSORS, without_gpu
    import torch

    properties: Any = torch.cuda.get_device_properties(device)  # torch's own stub lacks one of the two
    return int(properties.multi_processor_count), int(properties.shared_memory_per_block_optin)
