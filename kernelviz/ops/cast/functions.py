"""The casts as functions for torch.compile: each a module's own, so that its graph can be kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def to_fp16(x_N: Tensor) -> Tensor:
    import torch

    return x_N.to(torch.float16)


def to_bf16(x_N: Tensor) -> Tensor:
    import torch

    return x_N.to(torch.bfloat16)


def to_fp8(x_N: Tensor) -> Tensor:
    import torch

    return x_N.to(torch.float8_e4m3fn)


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {"float16": to_fp16, "bfloat16": to_bf16, "float8_e4m3fn": to_fp8}
