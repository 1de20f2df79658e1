"""What `cumsum` must compute, and how large its error may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


def reference(x_N: Tensor) -> Tensors:
    """y_k = x₁ + … + x_k, in the dtype of the input (float64 in the gate)."""
    return (x_N.cumsum(0),)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """1.01 u |y_k| + √k (2 ‖x₁…x_k‖ + max |y₁…y_k|) 2^-24: any order of additions in fp32, one rounding to the output's format.

    One accumulator errs by at most 2^-24 |y_j| with each addition, in no particular direction: together by about
    2^-24 √(Σ y_j²) / √3 ≤ √k max |y_j| 2^-24 / √3. Scans made of tiles add sums of tiles, which are differences of two y_j,
    and fewer of them. ‖x‖ pays for short prefixes, whose errors do not average yet.
    """
    import torch

    x_N, y_N = inputs[0], outputs[0]
    count_N = torch.arange(1, problem.sizes["n"] + 1, dtype=torch.float64, device=x_N.device)
    spread_N = 2 * x_N.square().cumsum(0).sqrt_() + y_N.abs().cummax(0).values
    return (stored(y_N, problem.dtype) + count_N.sqrt_() * spread_N * FP32_ROUNDOFF,)
