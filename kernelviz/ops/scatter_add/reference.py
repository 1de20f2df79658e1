"""What `scatter_add` computes, in float64, and how much a result may differ from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


def reference(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Tensors:
    """x with each row of src added to the row that its id gives."""
    return (x_VD.index_add(0, ids_T, src_TD),)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """1.01 u |y| + 2 √K 2^-24 Σ|terms|: K terms an element (x and the rows with its id) summed in fp32, rounded once.

    K terms are rounded K - 1 times, each time by at most 2^-24 of a partial sum, so of Σ|terms|; the order is arbitrary, as that
    of atomic additions is. 2 √K is at least K - 1 up to K = 5; for more terms, roundings of either sign grow as √K. A sum
    in a 16-bit format, which is rounded to u of itself at each addition, is not allowed.
    """
    import torch

    x_VD, src_TD, ids_T = inputs
    terms_V = torch.bincount(ids_T, minlength=x_VD.shape[0]) + 1
    sizes_VD = x_VD.abs().index_add(0, ids_T, src_TD.abs())
    return (2 * FP32_ROUNDOFF * terms_V[:, None].sqrt() * sizes_VD + stored(outputs[0], problem.dtype),)
