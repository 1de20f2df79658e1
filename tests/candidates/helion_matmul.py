"""Kernel of `matmul` in Helion, bound to tensors. Helion generates a Triton kernel of it for the sizes and the configuration."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import helion
import helion.language as hl
import torch

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.tensor_map import require_pitch
from kernelviz.ops.kernels.triton_scratch import ScratchContext

if TYPE_CHECKING:
    from torch import Tensor


def product(a_MK: Tensor, b_KN: Tensor, c_MN: Tensor) -> Tensor:
    """The kernel as Helion reads it: a loop over tiles of C, which run in parallel, and one over tiles of K inside."""
    m, k = a_MK.size()
    n = b_KN.size(1)
    for tile_m, tile_n in hl.tile([m, n]):
        sums = hl.zeros([tile_m, tile_n], dtype=torch.float32)
        for tile_k in hl.tile(k):
            sums = torch.addmm(sums, a_MK[tile_m, tile_k], b_KN[tile_k, tile_n])
        c_MN[tile_m, tile_n] = sums.to(c_MN.dtype)
    return c_MN


def bind(
    a_MK: Tensor,
    b_KN: Tensor,
    *,
    tile_m: int,
    tile_n: int,
    tile_k: int,
    stages: int,
    warps: int,
    group: int,
    descriptors: bool,
    flatten: bool = False,
) -> Launch:
    """The product of contiguous matrices (M, K) and (K, N) of bf16 or fp16.

    The configuration is fixed, so Helion does not tune. With `descriptors`, the kernel is persistent and TMA copies the tiles.
    With `flatten`, Triton makes one loop of those over tiles of C and of K: loads of the next tile overlap the end of a tile.
    Errors: BadField for matrices that are not contiguous, or, with `descriptors`, whose rows are no multiples of 16 bytes.
    """
    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    if descriptors:
        require_pitch("k", a_MK.shape[1], a_MK.element_size())
        require_pitch("n", b_KN.shape[1], b_KN.element_size())
    c_MN = torch.empty((a_MK.shape[0], b_KN.shape[1]), dtype=a_MK.dtype, device=a_MK.device)
    bound = _kernel((tile_m, tile_n, tile_k), stages, warps, group, descriptors, flatten).bind((a_MK, b_KN, c_MN))
    # Helion sets Triton's allocator for tensor descriptors unless there is one: here it sees that of this launch alone.
    scratch = ScratchContext(a_MK.device)

    def launch() -> Tensor:
        scratch.launch(bound, a_MK, b_KN, c_MN)
        return c_MN

    return launch


@functools.cache
def _kernel(tile: tuple[int, int, int], stages: int, warps: int, group: int, descriptors: bool, flatten: bool) -> Any:
    """The kernel in one configuration. It remembers what it generated for each shape, so that binding it again is quick."""
    config = helion.Config(
        block_sizes=list(tile),
        l2_groupings=[group],
        num_warps=warps,
        num_stages=stages,
        indexing="tensor_descriptor" if descriptors else "pointer",
        pid_type="persistent_interleaved" if descriptors else "flat",
        **({"range_flattens": [True, None]} if flatten else {}),
    )
    return helion.kernel(product, config=config, static_shapes=True)
