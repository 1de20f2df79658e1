"""What `w4a16_matmul` must compute, and how large its error may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import added_in_fp32, stored
from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.w4a16_matmul.layout import dequantised

if TYPE_CHECKING:
    from torch import Tensor

DEVIATIONS = 3
"""Of the rounded weights: each error is at most u |x||w| and about 0.4 of it on average (root mean square), so this is seven
standard deviations of their sum, and the worst case of up to nine equal terms."""


def reference(x_MK: Tensor, w_NGB: Tensor, s_GN: Tensor, z_GH: Tensor) -> Tensors:
    """The product with the weights in the dtype of the activations and scales (float64 in the gate)."""
    return (x_MK @ dequantised(w_NGB, s_GN, z_GH, x_MK.shape[1]).t(),)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """1.01 u |y| + max(√K, min(K, 8)) 2^-24 Σ|x||w| + 3 u √Σx²w².

    One rounding of the output, products added up in fp32, and each weight (q − zero) · scale rounded once to 16 bits before it is
    multiplied. q − zero is exact in 16 bits. The roundings of weights are independent of the activations, so they add up like
    independent errors. A kernel that multiplies by the scale in fp32 needs little of the last term: in fp16, sums of (1024 + q) x
    less 1024 Σx are off by 5 % of it at most if additions cut off their last bits (simulated, K from 256 to 28,672).
    """
    x_MK, w_NGB, s_GN, z_GH = inputs
    w_KN = dequantised(w_NGB, s_GN, z_GH, x_MK.shape[1]).t()
    accumulated = (x_MK.abs() @ w_KN.abs()) * added_in_fp32(problem.sizes["k"])
    rounded = (x_MK.square() @ w_KN.square()).sqrt() * (DEVIATIONS * dtype_named(problem.dtype).unit_roundoff)
    return (accumulated + rounded + stored(outputs[0], problem.dtype),)
