"""A matrix of one row or one column, whose elements stay in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.activation import cuda as activation
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.copy.known_size import bind_known_size
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor


def bind_one_row(x_MN: Tensor, *, relu: bool = False) -> Launch | None:
    """The kernel of a copy of this size, or that of relu with `relu`; None for several rows and columns.

    Raises BadField for a matrix that is not contiguous.
    """
    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    if min(m, n) > 1:
        return None
    x_N = x_MN.view(-1)
    elementwise = activation.bind_fast(x_N, "relu") if relu else bind_known_size(x_N)

    def launch() -> Tensor:
        y_N = elementwise()
        assert not isinstance(y_N, tuple)
        return y_N.view(n, m)  # the same memory: no kernel

    return launch
