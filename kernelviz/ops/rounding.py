"""Pieces that the bounds of several ops share: how much one rounding may err."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.dtypes import dtype as dtype_named

if TYPE_CHECKING:
    from torch import Tensor

ACCUMULATION_ROUNDOFF = 2.0**-24
"""Sums are accumulated in fp32 whatever the storage format is: that is what a problem declares."""


def stored(exact: Tensor, dtype: str) -> Tensor:
    """The largest |error| of storing `exact` (float64) in a format: u |exact|, near zero half the smallest number.

    The factor 1 + 2^-10 pays for the rounding to fp32 that comes first where the format is narrower (double rounding).
    """
    kind = dtype_named(dtype)
    return exact.abs() * (kind.unit_roundoff * (1 + 2.0**-10)) + kind.smallest / 2
