"""How many random bits an element has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

BITS = {"float32": 24, "float16": 11, "bfloat16": 8}
"""By torch's name of the format: those of the significand, so that every multiple of 2^-bits below 1 is a number of the format.

A number of more bits that is rounded to the format can become 1, which is outside: in bf16 one of 512 does.
"""


def bits_of(tensor: Tensor) -> int:
    """Random bits of an element of this tensor's format."""
    return BITS[str(tensor.dtype).removeprefix("torch.")]
