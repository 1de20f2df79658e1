"""What `reshape_elementwise` computes, in float64, what of a result is compared with it, and how much it may differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


def reference(x_MN: Tensor) -> Tensors:
    """max(xᵀ, 0), and a 1 for a contiguous result."""
    return x_MN.t().relu(), x_MN.new_ones(1)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Zero, because the output is an input or 0."""
    return tuple(t.new_zeros(()).expand_as(t) for t in outputs)


def compared(inputs: Tensors, outputs: Tensors) -> Tensors:
    """The result, and whether it is contiguous: a view with exchanged strides would hold the right numbers at no cost."""
    (y_NM,) = outputs
    return y_NM, y_NM.new_full((1,), float(y_NM.is_contiguous()))
