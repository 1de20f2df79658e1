"""`cuda_wgmma_stream_k` with parts of equal length, as a plug-in that has not run on a GPU yet.

    kernelviz run matmul --with tests/candidates/matmul_split_k.py --variants torch_eager,cuda_wgmma_stream_k,cuda_wgmma_split_k \
        --size m=512 --size n=4096 --size k=14336

With a multiple of as many sharers as there are tiles, tiles with the same columns of B are always at the same place of K, so B
is read from memory once. If it is faster, `divided` of kernelviz/ops/matmul/wgmma.py becomes this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

from kernelviz.ops import variant
from kernelviz.ops.matmul import wgmma
from kernelviz.ops.matmul.variants_wgmma import STREAM_K

if TYPE_CHECKING:
    from torch import Tensor

    from kernelviz.ops.catalog.variant import Launch

LEAST_SAVED_STEPS = 24
"""Steps of K that a division must save, because its sums take 10 to 15 us on an H200, as long as about so many."""


def in_equal_parts(tiles: int, depths: int, clusters: int) -> wgmma.Division:
    """Divides each tile of the last round into as many parts as there are clusters for, if that saves enough.

    >>> in_equal_parts(32, 224, 66), in_equal_parts(224, 64, 66), in_equal_parts(112, 64, 66).sharers
    (Division(whole=0, sharers=64), Division(whole=198, sharers=52), 0)
    """
    rest = tiles % clusters
    parts = min(clusters // rest, wgmma.MOST_PARTS) if rest else 1
    if depths - depths // parts < LEAST_SAVED_STEPS:
        return wgmma.Division(whole=tiles, sharers=0)
    return wgmma.Division(whole=tiles - rest, sharers=rest * parts)


@variant(op="matmul", backend="cuda", needs=("nvrtc", "cuda", "sm_90a"), dtypes=("bf16", "fp16"))
def cuda_wgmma_split_k(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, wgmma: each tile of a last round that is not full is divided into equal parts of K."""
    with patch.object(wgmma, "divided", in_equal_parts):
        return wgmma.bind(a_MK, b_KN, STREAM_K)
