"""What `row_sum` and `argmax` compute, in float64, what of a result is compared with it, and how much it may differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


def row_sum_reference(x_MN: Tensor) -> Tensors:
    """Σ x along each row, in the dtype of the input (float64 in the gate)."""
    return (x_MN.sum(-1),)


def row_sum_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """1.01 u |y| + √N (2 ‖x‖ + |y|) 2^-24, ‖x‖ of the row: any order of additions in fp32, one rounding to the output's format.

    The addition that gives the partial sum s_k errs by at most 2^-24 |s_k| in a random direction, so all additions together by
    about 2^-24 √(Σ s_k²) / √3. The numbers are in random order, so s_k is k y / N plus a fluctuation of √k ‖x‖ / √N. The worst
    order of additions, a single accumulator, gives √N (‖x‖ / √2 + |y| / √3) 2^-24 / √3. The bound is 3 to 5 times that.
    """
    x_MN, y_M = inputs[0], outputs[0]
    drift_M = problem.sizes["n"] ** 0.5 * (2 * x_MN.norm(dim=-1) + y_M.abs()) * FP32_ROUNDOFF
    return (stored(y_M, problem.dtype) + drift_M,)


def argmax_reference(x_MN: Tensor) -> Tensors:
    """The largest element of each row, to which the index must point."""
    return (x_MN.amax(-1),)


def argmax_compared(inputs: Tensors, outputs: Tensors) -> Tensors:
    """The elements that the indices point to; NaN for an index outside the row."""
    x_MN, index_M = inputs[0], outputs[0]
    inside_M = (index_M >= 0) & (index_M < x_MN.shape[1])
    largest_M = x_MN.gather(-1, index_M.clamp(0, x_MN.shape[1] - 1)[:, None])[:, 0]
    return (largest_M.where(inside_M, float("nan")),)


def argmax_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Zero, because nothing is rounded: the index must point to an element that equals the largest."""
    return (outputs[0].new_zeros(()).expand_as(outputs[0]),)
