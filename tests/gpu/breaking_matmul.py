"""A variant of `matmul` with configurations that fail in each way that a kernel can fail, for a tuning on a GPU.

python tests/gpu/follow_tuning.py -o OUT --with tests/gpu/breaking_matmul.py --variant breaking_tiles --configurations 20
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops import Launch, variant

if TYPE_CHECKING:
    from torch import Tensor

RIGHT, REFUSES, TOO_MUCH_SHARED_MEMORY, DEVICE_ASSERT, ABORTS, WRONG, OUT_OF_MEMORY = range(7)
"""The values of `how`."""


@variant(
    op="matmul",
    backend="triton",
    needs=("triton", "cuda"),
    space={"tile_m": (128, 64), "tile_n": (128, 64), "how": (RIGHT, *range(1, 7))},
)
def breaking_tiles(a_MK: Tensor, b_KN: Tensor, *, tile_m: int = 128, tile_n: int = 128, how: int = RIGHT) -> Launch:
    """The kernel of triton_tuned. With `how` from 1 to 6 it refuses, needs too much shared memory, breaks the CUDA context, ends
    the process, gives zeros, or needs more memory than a GPU has."""
    import os

    import torch

    from kernelviz.ops.matmul import triton_persistent as kernels

    if how == REFUSES:
        raise BadField("how", how, "planted: this configuration refuses every problem")
    if how == ABORTS:
        os.abort()
    if how == OUT_OF_MEMORY:
        torch.empty(2**43, dtype=torch.uint8, device=a_MK.device)
    wide = how == TOO_MUCH_SHARED_MEMORY
    launch = kernels.bind_tuned(
        a_MK,
        b_KN,
        compute=None,
        tile_m=256 if wide else tile_m,
        tile_n=256 if wide else tile_n,
        tile_k_bytes=256 if wide else 128,
        warps=8,
        stages=5 if wide else 3,
        group=8,
    )
    if how == DEVICE_ASSERT:
        one, behind = torch.zeros(1, device=a_MK.device), torch.full((1,), 7, device=a_MK.device)
        return lambda: (one[behind], launch())[1]
    if how == WRONG:
        return lambda: a_MK.new_zeros(a_MK.shape[0], b_KN.shape[1])
    return launch
