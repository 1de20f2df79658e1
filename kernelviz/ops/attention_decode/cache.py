"""What kernels get: queries and a contiguous or a paged cache, with sizes that were checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelviz.ops.attention_decode.sizes import PAGE
from kernelviz.ops.kernels.attention_heads import group_of, require_head_dimension
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Cache:
    """Queries (B, Hq, D), keys and values of a cache, a block table if it is paged, and the tokens of a sequence."""

    q_BHD: Tensor
    keys: Tensor
    values: Tensor
    table_BN: Tensor | None
    length: int

    @property
    def b(self) -> int:
        return self.q_BHD.shape[0]

    @property
    def hq(self) -> int:
        return self.q_BHD.shape[1]

    @property
    def d(self) -> int:
        return self.q_BHD.shape[2]

    @property
    def hk(self) -> int:
        return self.keys.shape[2]

    @property
    def group(self) -> int:
        """Query heads of a key/value head."""
        return group_of(self.hq, self.hk)

    @property
    def paged(self) -> bool:
        return self.table_BN is not None

    @property
    def page(self) -> int:
        """Tokens of a page."""
        return PAGE

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """q, keys, values, and the block table; of a contiguous cache, q in its place, which no kernel reads there."""
        return self.q_BHD, self.keys, self.values, self.q_BHD if self.table_BN is None else self.table_BN


def cache_of(inputs: tuple[Tensor, ...], length: int, *, paged: bool) -> Cache:
    """From the inputs of `attention_decode` or, if `paged`, of `paged_attention_decode`, and the tokens of a sequence.

    Errors: BadField for tensors that are not contiguous, and sizes that the kernels written here do not take.
    """
    return _paged(*inputs, length=length) if paged else _contiguous(*inputs)


def _contiguous(q_BHD: Tensor, k_BLHD: Tensor, v_BLHD: Tensor) -> Cache:
    require_contiguous(q_BHD=q_BHD, k_BLHD=k_BLHD, v_BLHD=v_BLHD)
    return _checked(Cache(q_BHD, k_BLHD, v_BLHD, None, k_BLHD.shape[1]))


def _paged(q_BHD: Tensor, k_pages_NPHD: Tensor, v_pages_NPHD: Tensor, table_BN: Tensor, *, length: int) -> Cache:
    require_contiguous(q_BHD=q_BHD, k_pages_NPHD=k_pages_NPHD, v_pages_NPHD=v_pages_NPHD, table_BN=table_BN)
    return _checked(Cache(q_BHD, k_pages_NPHD, v_pages_NPHD, table_BN, length))


def _checked(cache: Cache) -> Cache:
    require_head_dimension(cache.d)
    group_of(cache.hq, cache.hk)
    return cache
