"""Pieces that the bounds of several ops share: how much one rounding may err."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.dtypes import dtype as dtype_named

if TYPE_CHECKING:
    from torch import Tensor

FP32_ROUNDOFF = 2.0**-24
"""Sums are accumulated in fp32 whatever the storage format is: that is what a problem declares."""


def stored(exact: Tensor, dtype: str, times: int = 1) -> Tensor:
    """The largest |error| of storing a value in a format that many times over: u |exact| each.

    1 % more pays for the rounding to fp32 that comes first where the format is narrower, and for u². Near zero half the
    smallest number of fp16 is added; fp32 and bf16 may be flushed to zero below their smallest normal number, 2^-126.
    """
    unit = dtype_named(dtype).unit_roundoff
    return (exact.abs() * (1.01 * unit) + nearest_zero(dtype)) * times


def nearest_zero(dtype: str) -> float:
    """The largest |error| of storing a number near zero.

    >>> nearest_zero("fp16") == 2.0**-25
    True
    """
    return 2.0**-25 if dtype == "fp16" else 2.0**-126
