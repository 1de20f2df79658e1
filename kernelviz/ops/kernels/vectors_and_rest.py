"""The launch of kernels with arithmetic over a contiguous vector that is any number of elements long."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from kernelviz.ops.kernels.flat_launch import FlatLaunch
from kernelviz.ops.kernels.vec16 import VEC16_BYTES

if TYPE_CHECKING:
    from torch import Tensor

THREADS = 128
"""Of a block; the kernels of activation and gated have the same number."""


def vectors_and_rest(x_N: Tensor) -> FlatLaunch:
    """A thread for each whole 16-byte vector of x, and for each element after the last."""
    count = sum(divmod(x_N.numel(), VEC16_BYTES // x_N.element_size()))
    return FlatLaunch(-(-count // THREADS), THREADS, ctypes.c_longlong(x_N.numel()), {})
