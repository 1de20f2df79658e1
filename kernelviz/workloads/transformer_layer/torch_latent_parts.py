"""The parts of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): a prefill makes keys and values of each
head; decoding absorbs their up projections into queries and outputs, and attends to the latents themselves."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from kernelviz.models.parts import LayerCall
from kernelviz.models.presets import ModelPreset
from kernelviz.workloads.transformer_layer.torch_layer import (
    Part,
    Tensors,
    attend,
    of_heads,
    positions_of,
    rope_tables,
    sequences,
    value_scale,
)
from kernelviz.workloads.transformer_layer.torch_parts import norm_part, product_part, residual_part

State = dict[str, Tensor]


def parts(preset: ModelPreset, call: LayerCall, tensors: Tensors, device: str) -> dict[str, Part]:
    """The parts from the latent projections to the residual."""
    latent = preset.latent
    assert latent is not None
    h, b, prefill = preset.query_heads, call.batch, call.phase == "prefill"
    d = latent.nope + latent.rope
    scale = 1 / math.sqrt(d)
    widths = [latent.query_rank, latent.kv_rank, latent.rope]

    def project(part: Any, state: State) -> None:
        latents_TR = state["normed"] @ part.weight
        state["query_latent"], state["kv_latent"], state["key_rope"] = torch.split(latents_TR, widths, dim=-1)

    built = {
        "latents": Part(project, weight=tensors.weight(preset.hidden, sum(widths))),
        "query_norm": norm_part(preset, tensors, "query_latent", "query_latent", latent.query_rank),
        "kv_norm": norm_part(preset, tensors, "kv_latent", "kv_latent", latent.kv_rank),
        "query_up": product_part(tensors, "query_latent", "q", latent.query_rank, h * d),
    }

    def rope(part: Any, state: State) -> None:
        q_THD = of_heads(state["q"], h, d)
        state["q_nope"] = q_THD[..., : latent.nope]
        state["q_rope"] = interleaved(q_THD[..., latent.nope :], part.cos, part.sin)
        state["k_rope"] = interleaved(state["key_rope"][:, None], part.cos, part.sin)[:, 0]

    dtype = torch.bfloat16 if call.dtype == "bf16" else torch.float16
    cos, sin = rope_tables(positions_of(call, device), latent.rope // 2, dtype)
    built["rope"] = Part(rope, cos=cos, sin=sin)
    width = latent.kv_rank + latent.rope

    def write(part: Any, state: State) -> None:
        into_BLR = part.cache if prefill else part.cache[:, -1:]
        into_BLR[..., : latent.kv_rank].copy_(sequences(state["kv_latent"], b))
        into_BLR[..., latent.kv_rank :].copy_(sequences(state["k_rope"], b))
        state["cache"] = part.cache

    built["cache_write"] = Part(write, cache=tensors.normal(b, call.context, width))
    # Keys of standard deviation 1; values as large as value_scale says, by their up projection.
    keys_HRN = tensors.normal(h, latent.kv_rank, latent.nope, scale=1 / math.sqrt(latent.kv_rank))
    values_HRV = tensors.normal(
        h, latent.kv_rank, latent.value, scale=value_scale(call.context) / math.sqrt(latent.kv_rank)
    )
    built |= _of_prefill(call, keys_HRN, values_HRV, scale) if prefill else _absorbed(keys_HRN, values_HRV, scale)
    built["output"] = product_part(tensors, "attended", "projected", h * latent.value, preset.hidden)
    built["attention_residual"] = residual_part("projected")
    return built


def _of_prefill(call: LayerCall, keys_HRN: Tensor, values_HRV: Tensor, scale: float) -> dict[str, Part]:
    heads, rank, nope = keys_HRN.shape
    value = values_HRV.shape[2]

    def up(part: Any, state: State) -> None:
        kv_THD = of_heads(state["kv_latent"] @ part.weight, heads, nope + value)
        state["k_nope"], state["v"] = torch.split(kv_THD, [nope, value], dim=-1)

    def join(part: Any, state: State) -> None:
        k_rope_THD = state["k_rope"][:, None].expand(-1, heads, -1)
        state["k"] = torch.cat((state["k_nope"], k_rope_THD), dim=-1)
        state["q"] = torch.cat((state["q_nope"], state["q_rope"]), dim=-1)

    def attention(part: Any, state: State) -> None:
        q_BHSD, k_BHSD, v_BHSD = (sequences(state[name], call.batch).transpose(1, 2) for name in ("q", "k", "v"))
        o_BHSD = attend(q_BHSD, k_BHSD, v_BHSD, causal=True, scale=scale)
        state["attended"] = o_BHSD.transpose(1, 2).reshape(-1, heads * value)

    weight_RHD = torch.cat((keys_HRN, values_HRV), dim=2).permute(1, 0, 2).reshape(rank, -1)
    return {"kv_up": Part(up, weight=weight_RHD.contiguous()), "join_keys": Part(join), "attention": Part(attention)}


def _absorbed(keys_HRN: Tensor, values_HRV: Tensor, scale: float) -> dict[str, Part]:
    rank = keys_HRN.shape[1]

    def absorb(part: Any, state: State) -> None:
        state["q_latent"] = torch.bmm(state["q_nope"].transpose(0, 1), part.weight).transpose(0, 1)

    def attention(part: Any, state: State) -> None:
        # One key head for all query heads: heads are rows of one product with the cache, which is read once.
        q_B1HR = torch.cat((state["q_latent"], state["q_rope"]), dim=-1)[:, None]
        cache_B1LR = state["cache"][:, None]
        o_B1HR = attend(q_B1HR, cache_B1LR, cache_B1LR[..., :rank], causal=False, scale=scale)
        state["weighted"] = o_B1HR[:, 0]

    def expand(part: Any, state: State) -> None:
        o_HTV = torch.bmm(state["weighted"].transpose(0, 1), part.weight)
        state["attended"] = o_HTV.transpose(0, 1).reshape(o_HTV.shape[1], -1)

    return {
        "absorb_query": Part(absorb, weight=keys_HRN.transpose(1, 2).contiguous()),
        "attention": Part(attention),
        "expand_value": Part(expand, weight=values_HRV),
    }


def interleaved(x_THD: Tensor, cos_T1P: Tensor, sin_T1P: Tensor) -> Tensor:
    """Each pair of neighbours, rotated."""
    even, odd = x_THD[..., ::2], x_THD[..., 1::2]
    return torch.stack((even * cos_T1P - odd * sin_T1P, odd * cos_T1P + even * sin_T1P), dim=-1).flatten(-2)
