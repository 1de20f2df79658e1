"""What the chains compute, in float64, and how much a result may differ from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


def chain(x: Tensor, s_K: Tensor, b_K: Tensor) -> Tensor:
    """relu(x s + b) with each s and b in turn (rows or scalars), every step in three operations."""
    for s, b in zip(s_K, b_K, strict=True):
        x = (x * s + b).relu()
    return x


def reference(x: Tensor, s_K: Tensor, b_K: Tensor) -> Tensors:
    """The chain in the dtype of its inputs (float64 in the gate)."""
    return (chain(x, s_K, b_K),)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Two roundings to the output's format a step, of the product and of the sum, propagated through the later steps.

    An error e before a step is |s| e after its product; relu makes no error larger. The rounded value has an error itself, so the
    roundings are of |value| + e. A chain in fp32 that is rounded once at its end errs far less in 16-bit formats.
    """
    x, s_K, b_K = inputs
    error = x.new_zeros(()).expand_as(x)
    for s, b in zip(s_K, b_K, strict=True):
        product, error = x * s, s.abs() * error
        error = error + stored(product.abs() + error, problem.dtype)
        total = product + b
        error = error + stored(total.abs() + error, problem.dtype)
        x = total.relu()
    return (error,)
