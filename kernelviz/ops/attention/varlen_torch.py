"""Causal attention of sequences of different lengths by torch."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from kernelviz.core.errors import BadField
from kernelviz.ops.attention.varlen_reference import ranges
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor


def bind_each(q_THD: Tensor, k_THD: Tensor, v_THD: Tensor, ends_B: Tensor) -> Launch:
    """A call of scaled_dot_product_attention for each sequence; the lengths are read once, when the launch is bound."""
    import torch

    from kernelviz.ops.attention.torch import scaled_dot_product

    parts = [tuple(t[None, part] for t in (q_THD, k_THD, v_THD)) for part in ranges(ends_B)]
    o_THD = torch.empty_like(q_THD)
    results = [o_THD[part] for part in ranges(ends_B)]

    def launch() -> Tensor:
        for (q_1SHD, k_1SHD, v_1SHD), result_SHD in zip(parts, results, strict=True):
            result_SHD.copy_(scaled_dot_product(q_1SHD, k_1SHD, v_1SHD, causal=True)[0])
        return o_THD

    return launch


def bind_varlen(q_THD: Tensor, k_THD: Tensor, v_THD: Tensor, ends_B: Tensor) -> Launch:
    """torch.nn.attention.varlen: one call of FlashAttention-2 for all sequences.

    Raises BadField where this torch has no such function.
    """
    import torch

    require_contiguous(q_THD=q_THD, k_THD=k_THD, v_THD=v_THD, ends_B=ends_B)
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError as error:
        raise BadField("torch", torch.__version__, "torch.nn.attention.varlen needs torch 2.10 or later") from error
    accepted = inspect.signature(varlen_attn).parameters
    arguments: dict[str, Any] = {"window_size": (-1, 0)} if "window_size" in accepted else {"is_causal": True}
    if "enable_gqa" in accepted:
        arguments["enable_gqa"] = q_THD.shape[1] != k_THD.shape[1]
    starts_B = torch.nn.functional.pad(ends_B, (1, 0))
    longest = max((part.stop - part.start for part in ranges(ends_B)), default=0)

    def launch() -> Tensor:
        result: Any = varlen_attn(q_THD, k_THD, v_THD, starts_B, starts_B, longest, longest, **arguments)
        o_THD: Tensor = result
        return o_THD

    return launch
