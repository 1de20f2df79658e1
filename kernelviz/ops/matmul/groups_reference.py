"""What `grouped_matmul` must compute, and how large its error may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.matmul import reference as of_matmul

if TYPE_CHECKING:
    from torch import Tensor


def row_ranges(offsets_G: Tensor) -> Iterator[tuple[int, int, int]]:
    """(group, first row, row after the last one) of each group that has rows."""
    first = 0
    for group, last in enumerate(offsets_G.tolist()):
        if last > first:
            yield group, first, last
        first = last


def reference(x_TK: Tensor, w_GNK: Tensor, offsets_G: Tensor) -> Tensors:
    """The product of each group's rows and its weight, in the dtype of the inputs (float64 in the gate)."""
    y_TN = x_TK.new_zeros((x_TK.shape[0], w_GNK.shape[1]))
    for group, first, last in row_ranges(offsets_G):
        y_TN[first:last] = x_TK[first:last] @ w_GNK[group].T
    return (y_TN,)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """The bound of `matmul` for each group: 1.01 u |y| + max(√K, min(K, 8)) 2^-24 Σ|x||w|."""
    import torch

    x_TK, w_GNK, offsets_G = inputs
    (y_TN,) = outputs
    allowed_TN = torch.zeros_like(y_TN)
    for group, first, last in row_ranges(offsets_G):
        factors, product = (x_TK[first:last], w_GNK[group].T), (y_TN[first:last],)
        (allowed_TN[first:last],) = of_matmul.bound(problem, factors, product)
    return (allowed_TN,)
