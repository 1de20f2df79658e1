"""What `branch_divergence` computes, in float64, and how much a result may differ from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, nearest_zero
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor

STEPS = 128
"""Steps of a branch. Two instructions each, 256 in all, take longer than moving the 8 bytes of an element: on an H200, by its
data sheet, 9 ps by all SMs, and 1.7 ps."""
RATE = 2.0**-9
"""A power of two, so that products with it are exact. In 128 steps the first branch goes 22 % of the way."""


def takes_first(n: int, g: int, like: Tensor) -> Tensor:
    """For each of n elements, whether it takes the first branch: g neighbours do, the next g do not, and so on."""
    import torch

    return (torch.arange(n, device=like.device) // g) % 2 == 0


def reference(x_N: Tensor, g: int) -> Tensors:
    """Both branches of every element, and of each the one that it takes, in the dtype of the input (float64 in the gate)."""
    import torch

    first_N, second_N = x_N.clone(), x_N.abs()
    one = x_N.new_ones(())
    for _ in range(STEPS):
        first_N.lerp_(one, RATE)
        second_N.addcmul_(second_N, second_N, value=-RATE)
    return (torch.where(takes_first(x_N.numel(), g, x_N), first_N, second_N),)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """128 · 1.5 · 2^-24 · max(|x|, 1): in each step, the roundings of one sum and of what is added to it.

    No number on the way is larger than max(|x|, 1), and what is added is smaller by 2^-9 times that number, so for |x| below 256
    its roundings are less than half of those of the sum. No step makes an earlier error larger: the derivative of the first
    branch is 1 - 2^-9, that of the second 1 - 2^-8 |y|.
    """
    return (inputs[0].abs().clamp(min=1.0) * (STEPS * 1.5 * FP32_ROUNDOFF) + nearest_zero(problem.dtype),)
