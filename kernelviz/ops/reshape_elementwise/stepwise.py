"""The transposition, then relu of the transposed matrix: both as kernels that reach the bandwidth of the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.activation.cuda import bind_vec16 as bind_activation
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.sequence import in_sequence
from kernelviz.ops.transpose.cuda import bind_vec16

if TYPE_CHECKING:
    from torch import Tensor


def bind_transposition_then_relu(x_MN: Tensor) -> Launch:
    """Raises BadField for a matrix that is not contiguous."""
    return in_sequence(bind_vec16(x_MN), lambda x_NM: bind_activation(x_NM, "relu"))
