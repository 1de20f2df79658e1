"""Checks of the inputs of Liger Kernel's row kernels, in which one program holds a whole row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

LONGEST = 65_536
"""`calculate_settings` of liger-kernel 0.8.5 raises RuntimeError beyond."""


def require_rows(**tensors: Tensor) -> None:
    """Raises BadField for tensors that are not contiguous, and for rows of the first one that are longer than LONGEST."""
    require_contiguous(**tensors)
    row = next(iter(tensors.values())).shape[-1]
    if row > LONGEST:
        raise BadField(
            "size n", row, f"Liger Kernel takes rows of at most {LONGEST:,} elements; choose another variant"
        )
