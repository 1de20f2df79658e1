"""The transposition of A by 16-byte vectors, then the product of the copy by cuBLAS: two kernels that are near their roofs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.sequence import in_sequence
from kernelviz.ops.matmul.torch import bind_mm
from kernelviz.ops.transpose.cuda import bind_vec16

if TYPE_CHECKING:
    from torch import Tensor


def bind_transposition_then_product(a_KM: Tensor, b_KN: Tensor, compute: str | None) -> Launch:
    """Raises BadField for tensors that are not contiguous, and for tf32 on a CPU."""
    require_contiguous(a_KM=a_KM, b_KN=b_KN)
    return in_sequence(bind_vec16(a_KM), lambda a_MK: bind_mm(a_MK, b_KN, compute))
