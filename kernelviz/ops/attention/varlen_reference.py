"""What `varlen_attention` must compute, and how large its error may be: `causal_attention` of each sequence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kernelviz.core.problem import Problem
from kernelviz.ops.attention import reference as of_attention
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


def ranges(ends_B: Tensor) -> Iterator[slice]:
    """The positions of each sequence that has any."""
    first = 0
    for end in ends_B.tolist():
        if end > first:
            yield slice(first, end)
        first = end


def reference(q_THD: Tensor, k_THD: Tensor, v_THD: Tensor, ends_B: Tensor) -> Tensors:
    """softmax(q kᵀ / √D + mask) v of each head and sequence, in the dtype of the inputs (float64 in the gate)."""
    import torch

    o_THD = torch.empty_like(q_THD)
    for part in ranges(ends_B):
        (o_1SHD,) = of_attention.causal_attention(q_THD[None, part], k_THD[None, part], v_THD[None, part])
        o_THD[part] = o_1SHD[0]
    return (o_THD,)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """That of `causal_attention` for each sequence."""
    import torch

    *tensors, ends_B = inputs
    (o_THD,) = outputs
    allowed_THD = torch.empty_like(o_THD)
    for part in ranges(ends_B):
        of_part = tuple(t[None, part] for t in tensors)
        causal = replace(problem, op="causal_attention")
        allowed_THD[part] = of_attention.bound(causal, of_part, (o_THD[None, part],))[0][0]
    return (allowed_THD,)
