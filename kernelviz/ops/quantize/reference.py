"""What the quantised formats can hold, and how far the nearest of their numbers may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF

if TYPE_CHECKING:
    from torch import Tensor

SMALLEST = 1e-12
"""The largest |x| of a row is taken to be at least this: a row of zeros has a scale that one can divide by. (The smallest fp16
number is 6e-8.)"""


def largest(target: str) -> float:
    """The largest number of the format, to which the largest |x| of a row is mapped.

    >>> largest("fp8"), largest("int8")
    (448.0, 127.0)
    """
    return dtype_named(target).largest


def half_step(value: Tensor, target: str) -> Tensor:
    """Half the distance between the format's two numbers round each value: what rounding to the nearest may err by at most.

    e4m3 has 3 fraction bits and 2^-6 as its smallest normal number: steps of 2^(e - 3) from 2^e on, of 2^-9 below 2^-6.
    """
    import torch

    if target == "int8":
        return torch.full_like(value, 0.5)
    _, exponent = torch.frexp(value)  # |value| in [2^(exponent - 1), 2^exponent)
    return torch.ldexp(torch.ones_like(value), exponent.clamp(min=-5) - 5)


def scale_of(x_MN: Tensor, target: str) -> Tensor:
    """Each row's largest |x| over the format's largest number."""
    return x_MN.abs().amax(-1).clamp(min=SMALLEST) / largest(target)


def quantised_bound(x_MN: Tensor, scale_M: Tensor, target: str) -> Tensor:
    """What q · scale may differ from x by: half a step of the format, and 8 |x| 2^-24 for arithmetic in fp32.

    The scale and its reciprocal are rounded, so is the product of x with it, each moves a value by 2^-24 of itself (the
    approximate reciprocal by two), and so may decide a tie the other way; so does q · scale, which is formed to be compared.
    """
    value_MN = x_MN / scale_M[:, None]
    return half_step(value_MN, target) * scale_M[:, None] + x_MN.abs() * (8 * FP32_ROUNDOFF)


def dequantised(q_MN: Tensor, scale_M: Tensor) -> Tensor:
    """q · scale in fp32."""
    return q_MN.float().mul_(scale_M[:, None])


def quantised(x_MN: Tensor, target: str) -> tuple[Tensor, Tensor]:
    """Row by row to fp8 or int8 by torch ops, in float32."""
    import torch

    wide_MN = x_MN.float()
    scale_M = wide_MN.abs().amax(-1).clamp(min=SMALLEST) / largest(target)
    value_MN = wide_MN / scale_M[:, None]
    if target == "int8":
        return value_MN.round().to(torch.int8), scale_M
    # Clamped: in fp32 the largest element over the scale may be a little more than 448, which would become NaN.
    return value_MN.clamp(-448.0, 448.0).to(torch.float8_e4m3fn), scale_M
