"""Error bounds of one rounding, which the bounds of several ops share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kernelviz.core.dtypes import dtype as dtype_named

if TYPE_CHECKING:
    from torch import Tensor

FP32_ROUNDOFF = 2.0**-24
"""Half the distance of 1 to the next number. Sums are accumulated in fp32 in every storage format, as each problem declares."""


def stored(exact: Tensor, dtype: str, times: int = 1) -> Tensor:
    """The largest |error| of rounding a value to a format `times` times: u |exact| each.

    1 % is added for the rounding to fp32 that comes first if the format is narrower, and for u². Near zero, half the
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


def added_in_fp32(terms: int) -> float:
    """The largest |error| of adding up `terms` products in fp32, relative to the sum of their sizes: u max(√K, min(K, 8)).

    K roundings err by at most K u, independent ones by about √K u. The largest of many short sums is between the two: of
    2^24 sums of 16 products it was 1.07 √K u on an H200.

    >>> [added_in_fp32(k) / FP32_ROUNDOFF for k in (1, 16, 4096)]
    [1.0, 8.0, 64.0]
    """
    return max(math.sqrt(terms), min(terms, 8)) * FP32_ROUNDOFF
