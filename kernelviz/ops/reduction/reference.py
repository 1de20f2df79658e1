"""What `sum` and `mean` compute, in float64, and how much a result may differ from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


def sum_reference(x_N: Tensor) -> Tensors:
    """Σ x, in the dtype of the input (float64 in the gate)."""
    return (x_N.sum(0, keepdim=True),)


def mean_reference(x_N: Tensor) -> Tensors:
    """Σ x / N, in the dtype of the input (float64 in the gate)."""
    return (x_N.mean(0, keepdim=True),)


def sum_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """1.01 u |y| + √N (2 ‖x‖ + |y|) 2^-24: any order of additions in fp32, one rounding to the output's format.

    The addition that gives the partial sum s_k errs by at most 2^-24 |s_k| in a random direction, so all additions together by
    about 2^-24 √(Σ s_k²) / √3. The numbers are in random order, so s_k is k y / N plus a fluctuation of √k ‖x‖ / √N. The worst
    order of additions, a single accumulator, gives √N (‖x‖ / √2 + |y| / √3) 2^-24 / √3. The bound is 3 to 5 times that.
    """
    x_N, y_1 = inputs[0], outputs[0]
    drift_1 = problem.sizes["n"] ** 0.5 * (2 * x_N.norm() + y_1.abs()) * FP32_ROUNDOFF
    return (stored(y_1, problem.dtype) + drift_1,)


def mean_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """The bound of the sum divided by N, and one division in fp32: 1.01 u |y| + (√N (2 ‖x‖ / N + |y|) + 2 |y|) 2^-24."""
    x_N, y_1 = inputs[0], outputs[0]
    n = problem.sizes["n"]
    drift_1 = (n**0.5 * (2 * x_N.norm() / n + y_1.abs()) + 2 * y_1.abs()) * FP32_ROUNDOFF
    return (stored(y_1, problem.dtype) + drift_1,)
