"""What `topk` must compute, and which values are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


def reference(x_MN: Tensor, k: int) -> Tensors:
    """The k largest of each row in descending order; again, as what the indices must point to; k different indices."""
    values_MK = x_MN.topk(k).values
    return values_MK, values_MK, values_MK.new_full(x_MN.shape[:1], k).long()


def compared(inputs: Tensors, outputs: Tensors) -> Tensors:
    """The values; the elements that the indices point to, NaN for one outside the row; how many of a row's indices differ."""
    x_MN, (values_MK, indices_MK) = inputs[0], outputs
    n = x_MN.shape[1]
    inside_MK = (indices_MK >= 0) & (indices_MK < n)
    pointed_MK = x_MN.gather(-1, indices_MK.clamp(0, n - 1)).where(inside_MK, float("nan"))
    ascending_MK = indices_MK.sort(-1).values
    different_M = 1 + (ascending_MK[:, 1:] != ascending_MK[:, :-1]).sum(-1)
    return values_MK, pointed_MK, different_M


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Zero, because nothing is rounded. Values are compared and not indices, because any of equal elements may be chosen."""
    return tuple(o.new_zeros(()).expand_as(o) for o in outputs)
