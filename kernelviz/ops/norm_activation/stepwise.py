"""A normalisation, then its activation in a kernel of its own. They show what fusing alone saves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.activation.triton import bind_activation
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.sequence import in_sequence
from kernelviz.ops.norm_activation.triton_batchnorm import bind_batchnorm
from kernelviz.ops.normalisation.triton import NormInputs, bind_block_per_row

if TYPE_CHECKING:
    from torch import Tensor


def bind_layernorm_then_gelu(x_MN: Tensor, w_N: Tensor, b_N: Tensor, *, eps: float) -> Launch:
    """One program a row, then gelu with 16 bytes a thread; raises BadField for tensors that are not contiguous."""
    normalise = bind_block_per_row(NormInputs(x_MN=x_MN, w_N=w_N, b_N=b_N), eps=eps)
    return in_sequence(normalise, lambda z_MN: bind_activation(z_MN, "gelu"))


def bind_batchnorm_then_relu(
    x_MN: Tensor, mean_N: Tensor, variance_N: Tensor, w_N: Tensor, b_N: Tensor, *, eps: float
) -> Launch:
    """The kernel of the fused form without its relu, then relu; raises BadField for tensors that are not contiguous."""
    normalise = bind_batchnorm(x_MN, mean_N, variance_N, w_N, b_N, eps=eps, relu=False)
    return in_sequence(normalise, lambda z_MN: bind_activation(z_MN, "relu"))
