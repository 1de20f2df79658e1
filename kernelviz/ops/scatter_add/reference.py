"""What `scatter_add` computes, in float64, and how much a result may differ from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


MOST_TABLES, ROWS_OF_TABLE = 256, 16
"""Sums of which the reference is made, and rows of src that each of their rows gets on average, at least."""


def reference(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Tensors:
    """x with each row of src added to the row that its id gives."""
    return (_added(x_VD, src_TD, ids_T),)


def tables(rows: int, ids: int) -> int:
    """Into how many sums the reference adds, so that fewer additions of float64 wait for each other: a GPU adds to one address
    one after the other.

    >>> tables(64, 65536), tables(8192, 65536), tables(5, 1048577)
    (64, 1, 256)
    """
    return max(1, min(MOST_TABLES, ids // (ROWS_OF_TABLE * rows)))


def _added(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Tensor:
    import torch

    (v, d), count = x_VD.shape, tables(x_VD.shape[0], len(ids_T))
    table_T = torch.arange(len(ids_T), device=ids_T.device) % count
    sums = torch.zeros(count * v, d, dtype=x_VD.dtype, device=x_VD.device)
    sums.index_add_(0, ids_T + v * table_T, src_TD)
    return x_VD + sums.view(count, v, d).sum(dim=0)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """1.01 u |y| + 2 √K 2^-24 Σ|terms|: K terms an element (x and the rows with its id) summed in fp32, rounded once.

    K terms are rounded K - 1 times, each time by at most 2^-24 of a partial sum, so of Σ|terms|; the order is arbitrary, as that
    of atomic additions is. 2 √K is at least K - 1 up to K = 5; for more terms, roundings of either sign grow as √K. A sum
    in a 16-bit format, which is rounded to u of itself at each addition, is not allowed.
    """
    import torch

    x_VD, src_TD, ids_T = inputs
    terms_V = torch.bincount(ids_T, minlength=x_VD.shape[0]) + 1
    sizes_VD = _added(x_VD.abs(), src_TD.abs(), ids_T)
    return (2 * FP32_ROUNDOFF * terms_V[:, None].sqrt() * sizes_VD + stored(outputs[0], problem.dtype),)
