"""The parts of a layer with grouped-query attention, and the feed-forward network of every model."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from kernelviz.models.parts import LayerCall
from kernelviz.models.presets import ModelPreset
from kernelviz.workloads.transformer_layer.torch_layer import (
    Part,
    Tensors,
    attend,
    normalise,
    of_heads,
    positions_of,
    rope_tables,
    sequences,
    value_scale,
)

State = dict[str, Tensor]


def norm_part(preset: ModelPreset, tensors: Tensors, source: str, target: str, size: int | None = None) -> Part:
    """A norm of one tensor of the state into another."""

    def norm(part: Any, state: State) -> None:
        state[target] = normalise(part, state[source])

    length = size or preset.hidden
    weights = {"weight": 1 + tensors.normal(length, scale=0.1)}
    if preset.norm == "layernorm":
        weights["bias"] = tensors.normal(length, scale=0.1)
    return Part(norm, **weights)


def norm_before(preset: ModelPreset, tensors: Tensors) -> dict[str, Part]:
    """The norm before attention."""
    return {"attention_norm": norm_part(preset, tensors, "x", "normed")}


def product_part(tensors: Tensors, source: str, target: str, k: int, n: int) -> Part:
    """A projection (T, K) to (T, N)."""

    def project(part: Any, state: State) -> None:
        state[target] = state[source] @ part.weight

    return Part(project, weight=tensors.weight(k, n))


def bias_part(tensors: Tensors, name: str, n: int) -> Part:
    """The addition of a row to each row."""

    def add(part: Any, state: State) -> None:
        state[name] = state[name] + part.weight

    return Part(add, weight=tensors.normal(n, scale=0.1))


def residual_part(source: str) -> Part:
    """The addition of a tensor to the stream of hidden states."""

    def add(part: Any, state: State) -> None:
        state["x"] = state["x"] + state[source]

    return Part(add)


def attention_parts(preset: ModelPreset, call: LayerCall, tensors: Tensors, device: str) -> dict[str, Part]:
    """The parts from the projection of queries, keys and values to the residual."""
    hq, hk, d, b = preset.query_heads, preset.kv_heads, preset.head_dim, call.batch
    built = {"qkv": product_part(tensors, "normed", "qkv", preset.hidden, preset.qkv_features)}
    built["qkv"].weight[:, (hq + hk) * d :] *= value_scale(call.context)
    if preset.qkv_bias:
        built["qkv_bias"] = bias_part(tensors, "qkv", preset.qkv_features)

    def heads_of(state: State) -> tuple[Tensor, Tensor, Tensor]:
        q_TD, k_TD, v_TD = torch.split(state["qkv"], [hq * d, hk * d, hk * d], dim=-1)
        return of_heads(q_TD, hq, d), of_heads(k_TD, hk, d), of_heads(v_TD, hk, d)

    if preset.positions != "learned":

        def rope(part: Any, state: State) -> None:
            q_THD, k_THD, _ = heads_of(state)
            state["q"], state["k"] = rotated(q_THD, part.cos, part.sin), rotated(k_THD, part.cos, part.sin)

        dtype = torch.bfloat16 if call.dtype == "bf16" else torch.float16
        cos, sin = rope_tables(positions_of(call, device), d // 2, dtype)
        built["rope"] = Part(rope, cos=cos, sin=sin)

    def queries_and_keys(state: State) -> tuple[Tensor, Tensor, Tensor]:
        q_THD, k_THD, v_THD = heads_of(state)
        return state.get("q", q_THD), state.get("k", k_THD), v_THD

    cache = (b, call.context, hk, d)
    keys_BLHD = tensors.normal(*cache)
    values_BLHD = tensors.normal(*cache, scale=value_scale(call.context))

    def write(part: Any, state: State) -> None:
        _, k_THD, v_THD = queries_and_keys(state)
        for into, new in ((part.keys, k_THD), (part.values, v_THD)):
            (into if call.phase == "prefill" else into[:, -1:]).copy_(sequences(new, b))
        state["keys"], state["values"] = part.keys, part.values

    built["cache_write"] = Part(write, keys=keys_BLHD, values=values_BLHD)

    def attention(part: Any, state: State) -> None:
        q_THD, k_THD, v_THD = queries_and_keys(state)
        prefill = call.phase == "prefill"
        k_BLHD = sequences(k_THD, b) if prefill else state["keys"]
        v_BLHD = sequences(v_THD, b) if prefill else state["values"]
        q_BHSD = sequences(q_THD, b).transpose(1, 2)
        o_BHSD = attend(q_BHSD, k_BLHD.transpose(1, 2), v_BLHD.transpose(1, 2), causal=prefill, scale=1 / math.sqrt(d))
        state["attended"] = o_BHSD.transpose(1, 2).reshape(-1, hq * d)

    built["attention"] = Part(attention)
    built["output"] = product_part(tensors, "attended", "projected", hq * d, preset.hidden)
    if preset.other_biases:
        built["output_bias"] = bias_part(tensors, "projected", preset.hidden)
    built["attention_residual"] = residual_part("projected")
    return built


def rotated(x_THD: Tensor, cos_T1P: Tensor, sin_T1P: Tensor) -> Tensor:
    """Each pair of a number of the first half with one of the second, rotated."""
    first, second = x_THD.chunk(2, dim=-1)
    return torch.cat((first * cos_T1P - second * sin_T1P, second * cos_T1P + first * sin_T1P), dim=-1)


def feed_forward_parts(preset: ModelPreset, tensors: Tensors) -> dict[str, Part]:
    """The parts from the norm before the feed-forward network to the residual behind it."""
    h, i = preset.hidden, preset.intermediate
    built = {"feed_forward_norm": norm_part(preset, tensors, "x", "normed")}
    if preset.feed_forward == "swiglu":
        built["gate"] = product_part(tensors, "normed", "gate", h, i)

    def activation(part: Any, state: State) -> None:
        if preset.feed_forward == "swiglu":
            state["active"] = functional.silu(state["gate"]) * state["up"]
        else:
            state["active"] = functional.gelu(state["up"], approximate="tanh")

    built["up"] = product_part(tensors, "normed", "up", h, i)
    if preset.other_biases:
        built["up_bias"] = bias_part(tensors, "up", i)
    built["activation"] = Part(activation)
    built["down"] = product_part(tensors, "active", "down", i, h)
    if preset.other_biases:
        built["down_bias"] = bias_part(tensors, "down", h)
    built["feed_forward_residual"] = residual_part("down")
    return built
