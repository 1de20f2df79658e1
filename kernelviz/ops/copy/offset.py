"""Vectors that begin some bytes after an aligned address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.kernels.vec16 import VEC16_BYTES, aligned

if TYPE_CHECKING:
    from torch import Tensor


def empty_at(x_N: Tensor, offset_bytes: int) -> Tensor:
    """An uninitialised vector like x that begins so many bytes after an address of torch's allocator, which is aligned."""
    import torch

    skipped = offset_bytes // x_N.element_size()
    return torch.empty(skipped + x_N.numel(), dtype=x_N.dtype, device=x_N.device)[skipped:]


def elements_before_16_bytes(x_N: Tensor) -> int:
    """Elements before the first address that is a multiple of 16 bytes."""
    return -x_N.data_ptr() % VEC16_BYTES // x_N.element_size()


def require_16_bytes(x_N: Tensor, offset_bytes: int) -> None:
    """Raises BadField for a vector that does not begin on 16 bytes."""
    if not aligned(x_N):
        raise BadField(
            "size o",
            offset_bytes,
            "this kernel's accesses of 16 bytes need vectors that begin on 16 bytes; cuda_vec16 copies the elements before them "
            "one by one",
        )
