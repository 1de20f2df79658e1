"""Liger-Kernel's kernels of the gated activations, bound to tensors."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.liger_rows import require_rows

if TYPE_CHECKING:
    from torch import Tensor


def bind_forward(a_MN: Tensor, b_MN: Tensor, name: str) -> Launch:
    """`swiglu_forward` or `geglu_forward`. Raises BadField for tensors that are not contiguous or have rows over 65536."""
    forward = getattr(importlib.import_module(f"liger_kernel.ops.{name}"), f"{name}_forward")
    require_rows(a_MN=a_MN, b_MN=b_MN)

    def launch() -> Tensor:
        y_MN: Tensor = forward(a_MN, b_MN)[2]
        return y_MN

    return launch


def bind_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor, name: str) -> Launch:
    """`swiglu_backward` or `geglu_backward`, which write the gradients over a and b. Raises as `bind_forward`."""
    backward = getattr(importlib.import_module(f"liger_kernel.ops.{name}"), f"{name}_backward")
    require_rows(a_MN=a_MN, b_MN=b_MN, dy_MN=dy_MN)

    def launch() -> tuple[Tensor, ...]:
        da_MN, db_MN = backward(a_MN, b_MN, dy_MN)
        return da_MN, db_MN

    return launch
