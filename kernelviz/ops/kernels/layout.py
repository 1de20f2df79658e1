"""Checks of the layout of inputs, for kernels that index memory themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField

if TYPE_CHECKING:
    from torch import Tensor


def require_contiguous(**tensors: Tensor) -> None:
    """Raises BadField naming the first tensor that is not contiguous: the kernel would read other elements."""
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            layout = f"shape {tuple(tensor.shape)} with strides {tensor.stride()}"
            raise BadField(f"input {name}", layout, "this kernel needs a contiguous tensor; call .contiguous() first")
