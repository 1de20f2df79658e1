"""What `scale` computes, in float64, and how much a result may differ from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor

FACTOR = 0.7
"""The scalar as a caller writes it. It is not a power of two: those products would be exact and would prove nothing."""
FACTOR_FP32 = 11744051 * 2.0**-24
"""The fp32 number nearest to 0.7, by which every variant multiplies. torch multiplies fp32, fp16 and bf16 tensors in fp32 (its
`opmath_type`), with the scalar rounded to fp32. The `float` argument of a kernel or an extension is the same number."""


def reference(x_N: Tensor) -> Tensors:
    """x times the fp32 number nearest to 0.7, in the dtype of the input (float64 in the gate)."""
    return (x_N * FACTOR_FP32,)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """One rounding of the exact product to the output's format, in fp32 first where the format is narrower: 1.01 u |y|.

    The rounding of the scalar to fp32 is not counted as an error: it is the same in every variant and in the reference.
    """
    return (stored(outputs[0], problem.dtype),)
