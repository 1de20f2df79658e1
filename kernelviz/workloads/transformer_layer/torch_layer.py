"""A transformer layer as one torch module. Its parts are submodules with the names of `kernelviz.models.parts`, in that order.

A part reads tensors from a dictionary by name and adds its own; ``x`` is the stream of hidden states. Weights are (input
features, output features). Values are scaled so that attention is as large as the stream whatever the context, because an error
of attention would otherwise be lost in rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

from kernelviz.models.parts import LayerCall

if TYPE_CHECKING:
    State = dict[str, Tensor]

EPSILON = 1e-5
ROPE_BASE = 500000.0
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Part(torch.nn.Module):  # type: ignore[name-defined,misc]
    """A part: a function of the part and the state, with the tensors that it owns."""

    def __init__(self, function: Callable[[Any, dict[str, Tensor]], None], **tensors: Tensor) -> None:
        super().__init__()
        self.function = function
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor)

    def forward(self, state: dict[str, Tensor]) -> None:
        """Do the part; its results are added to the state."""
        self.function(self, state)


class Layer(torch.nn.Module):  # type: ignore[name-defined,misc]
    """A layer: (T, H) to (T, H)."""

    def __init__(self, parts: dict[str, Part]) -> None:
        super().__init__()
        self.names = tuple(parts)
        for name, part in parts.items():
            self.add_module(name, part)

    def part(self, name: str) -> Part:
        """The part of that name."""
        collected = getattr(self, name)
        assert isinstance(collected, Part)
        return collected

    def forward(self, x_TH: Tensor) -> Tensor:
        """The stream of hidden states after the layer."""
        state = {"x": x_TH}
        for name in self.names:
            getattr(self, name)(state)
        return state["x"]


class Tensors:
    """Random tensors on a device in a number format, from one seed. They are drawn in fp32, so that they are the same in both."""

    def __init__(self, device: str, dtype: torch.dtype, seed: int) -> None:
        self._generator = torch.Generator(device=device).manual_seed(seed)
        self._device, self._dtype = device, dtype

    def normal(self, *shape: int, scale: float = 1.0) -> Tensor:
        """Normal numbers of that standard deviation."""
        built = torch.empty(shape, device=self._device, dtype=self._dtype)
        for row in built if len(shape) > 2 else (built,):  # a cache in fp32 at once would double the memory
            row.copy_(torch.randn(row.shape, generator=self._generator, device=self._device) * scale)
        return built

    def weight(self, k: int, n: int) -> Tensor:
        """A weight (k, n) whose product with normal rows is normal."""
        return self.normal(k, n, scale=1 / math.sqrt(k))


def value_scale(context: int) -> float:
    """The factor on values that makes attention over so many random keys as large as one value.

    Scores of standard deviation 1 weigh n / e keys alike.
    """
    return max(1.0, math.sqrt(context / math.e))


def normalise(part: Any, values: Tensor) -> Tensor:
    """RMSNorm, or layer norm if the part has a bias."""
    size = (values.shape[-1],)
    if hasattr(part, "bias"):
        return functional.layer_norm(values, size, part.weight, part.bias, EPSILON)
    return functional.rms_norm(values, size, part.weight, EPSILON)


def of_heads(x: Tensor, heads: int, dimension: int) -> Tensor:
    """A view (T, heads, dimension) of (T, heads · dimension)."""
    return x.view(x.shape[0], heads, dimension)


def sequences(x: Tensor, batch: int) -> Tensor:
    """A view (B, T / B, …) of (T, …)."""
    return x.view(batch, x.shape[0] // batch, *x.shape[1:])


def rope_tables(positions_T: Tensor, pairs: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosines and sines (T, 1, P) of rotary position embedding."""
    steps_P = torch.arange(pairs, device=positions_T.device, dtype=torch.float32) / pairs
    angles_TP = positions_T.float()[:, None] * ROPE_BASE**-steps_P
    return angles_TP.cos()[:, None].to(dtype), angles_TP.sin()[:, None].to(dtype)


def positions_of(call: LayerCall, device: str) -> Tensor:
    """The position of each token (T)."""
    if call.phase == "decode":
        return torch.full((call.batch,), call.context - 1, device=device)
    return torch.arange(call.context, device=device).repeat(call.batch)


def attend(q_BHSD: Tensor, k_BHLD: Tensor, v_BHLE: Tensor, *, causal: bool, scale: float) -> Tensor:
    """Attention with grouped heads. In fp32, which is the reference, by its definition and a key head at a time."""
    if q_BHSD.dtype is not torch.float32:
        return functional.scaled_dot_product_attention(
            q_BHSD, k_BHLD, v_BHLE, is_causal=causal, scale=scale, enable_gqa=q_BHSD.shape[1] != k_BHLD.shape[1]
        )
    group, rows = q_BHSD.shape[1] // k_BHLD.shape[1], []
    later_SL = torch.ones(q_BHSD.shape[2], k_BHLD.shape[2], dtype=torch.bool, device=q_BHSD.device).triu(1)
    for b in range(q_BHSD.shape[0]):
        heads = []
        for h in range(k_BHLD.shape[1]):
            scores = q_BHSD[b, h * group : (h + 1) * group] @ k_BHLD[b, h].T * scale
            if causal:
                scores = scores.masked_fill(later_SL, -torch.inf)
            heads.append(scores.softmax(-1) @ v_BHLE[b, h])
        rows.append(torch.cat(heads))
    return torch.stack(rows)
