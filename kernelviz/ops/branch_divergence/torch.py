"""`branch_divergence` by single operators of torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.branch_divergence.reference import RATE, STEPS, takes_first
from kernelviz.ops.catalog.variant import Launch

if TYPE_CHECKING:
    from torch import Tensor


def bind_both(x_N: Tensor, g: int) -> Launch:
    """Both branches in buffers of their own, an operator a step, then a selection by a mask that was made before."""
    import torch

    first_N, second_N, out_N = (torch.empty_like(x_N) for _ in range(3))
    one, mask_N = x_N.new_ones(()), takes_first(x_N.numel(), g, x_N)

    def launch() -> Tensor:
        torch.lerp(x_N, one, RATE, out=first_N)
        torch.abs(x_N, out=second_N)
        second_N.addcmul_(second_N, second_N, value=-RATE)
        for _ in range(STEPS - 1):
            first_N.lerp_(one, RATE)
            second_N.addcmul_(second_N, second_N, value=-RATE)
        return torch.where(mask_N, first_N, second_N, out=out_N)

    return launch
