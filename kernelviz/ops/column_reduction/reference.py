"""What `column_sum` computes, in float64, and how much a result may differ from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


def reference(x_MN: Tensor) -> Tensors:
    """Σ x along each column, in the dtype of the input (float64 in the gate)."""
    return (x_MN.sum(0),)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """1.01 u |y| + √M (2 ‖x‖ + |y|) 2^-24, ‖x‖ of the column: added in fp32 in any order, rounded once to the output's format.

    It is the bound of `row_sum`, with M terms in each sum: `row_reduction/reference.py` says where it comes from.
    """
    x_MN, y_N = inputs[0], outputs[0]
    drift_N = problem.sizes["m"] ** 0.5 * (2 * x_MN.norm(dim=0) + y_N.abs()) * FP32_ROUNDOFF
    return (stored(y_N, problem.dtype) + drift_N,)
