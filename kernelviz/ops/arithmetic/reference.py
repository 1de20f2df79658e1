"""What the three ops must compute, which values of `div` are compared, and how large errors may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


def add_reference(x_N: Tensor, y_N: Tensor) -> Tensors:
    """The sum, in the dtype of the inputs (float64 in the gate)."""
    return (x_N + y_N,)


def mul_reference(x_N: Tensor, y_N: Tensor) -> Tensors:
    """The product, in the dtype of the inputs (float64 in the gate)."""
    return (x_N * y_N,)


def div_reference(x_N: Tensor, y_N: Tensor) -> Tensors:
    """The quotient, in the dtype of the inputs (float64 in the gate): infinite or NaN where y is 0, as IEEE 754 defines it."""
    return (x_N / y_N,)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """One rounding of the exact result to the output's format, in fp32 first where the format is narrower: 1.01 u |result|."""
    return (stored(outputs[0], problem.dtype),)


def div_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """One rounding to the output's format of a quotient that is within 2 ulp in fp32, which is at most 4 · 2^-24 of it.

    That is what PTX promises of div.full, to which Triton and so torch.compile turn every fp32 quotient. div.approx, as fast
    mathematics has it, gives 0 for divisors beyond 2^126 and is refused there.
    """
    return (stored(outputs[0], problem.dtype) + 4 * FP32_ROUNDOFF * outputs[0].abs(),)


def quotients(inputs: Tensors, outputs: Tensors) -> Tensors:
    """The outputs in fp32; where one is infinite because fp16 holds nothing so large, the quotient that overflowed.

    Two normal numbers have a quotient above 65520 in 1 of 80,000 cases. From there on an infinity is the right answer in
    fp16, and only there is it taken for one: anywhere else it stays infinite, which the reference is not.
    """
    import torch

    (x_N, y_N), (z_N,) = inputs, outputs
    wide_N = z_N.float()
    if z_N.dtype == torch.float16:
        at = torch.isinf(z_N).nonzero()[:, 0]
        exact = x_N[at].float() / y_N[at].float()
        # 65520: half a step beyond the largest number. From there on the nearest is infinity.
        right = (exact.abs() >= 65520) & (exact.sign() == wide_N[at].sign())
        wide_N[at] = torch.where(right, exact, wide_N[at])
    return (wide_N,)
