"""What a cast must compute: the nearest number of the format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


LOWEST_EXPONENT = {"fp16": -14, "bf16": -126, "fp8": -6}
"""Exponent of the smallest normal number of each format; smaller numbers have the spacing of that one."""


def rounded(x_N: Tensor, target: str) -> Tensor:
    """float64 numbers rounded to nearest, ties to even, to the numbers of a format: by arithmetic, without a conversion.

    What is nearer to the number that would follow the largest is infinite; fp8 (E4M3, which has no infinity) saturates: the
    OCP standard allows that or NaN; NVIDIA's instruction, Triton and torch 2.13 saturate, torch 2.11 gives NaN beyond 464.
    """
    import torch

    kind = dtype_named(target)
    fraction_bits = -int(torch.tensor(kind.unit_roundoff, dtype=torch.float64).log2()) - 1
    _, exponent_N = torch.frexp(x_N)  # |x| = f · 2^exponent with f from 0.5 to 1
    step_N = torch.exp2((exponent_N - 1).clamp(min=LOWEST_EXPONENT[target]).double() - fraction_bits)
    y_N = torch.round(x_N / step_N) * step_N
    largest = float(torch.finfo(getattr(torch, kind.torch_name)).max)
    beyond = largest if target == "fp8" else torch.inf
    y_N = torch.where(y_N.abs() > largest, torch.copysign(torch.full_like(y_N, beyond), x_N), y_N)
    special_N = torch.copysign(torch.full_like(x_N, beyond), x_N).where(torch.isinf(x_N), x_N)
    return torch.where(torch.isfinite(x_N), y_N, special_N)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Zero: the reference is the nearest number of the format, the only result that IEEE 754 allows."""
    return (outputs[0].new_zeros(()).expand_as(outputs[0]),)
