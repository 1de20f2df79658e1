"""A layer of a preset with its random weights and its input."""

from collections.abc import Mapping

from torch import Tensor

from kernelviz.models.parts import LayerCall, checked_call, layer_parts
from kernelviz.models.presets import ModelPreset, preset_named
from kernelviz.workloads.transformer_layer import torch_latent_parts, torch_parts
from kernelviz.workloads.transformer_layer.torch_layer import DTYPES, Layer, Tensors


def build(preset: ModelPreset, call: LayerCall, device: str, seed: int) -> tuple[Layer, Tensor]:
    """The layer and its input (T, H), in the number format of the call."""
    tensors = Tensors(device, DTYPES[call.dtype], seed)
    make = torch_latent_parts.parts if preset.latent else torch_parts.attention_parts
    built = {**torch_parts.norm_before(preset, tensors), **make(preset, call, tensors, device)}
    built |= torch_parts.feed_forward_parts(preset, tensors)
    parts = {part.name: built[part.name] for part in layer_parts(preset, call)}
    assert set(parts) == set(built), set(parts) ^ set(built)
    layer = Layer(parts).eval().requires_grad_(False)
    return layer, tensors.normal(call.tokens, preset.hidden)


def call_of(values: Mapping[str, int | str]) -> tuple[ModelPreset, LayerCall]:
    """The model and the call of a case. Errors: UnknownName, BadField."""
    preset = preset_named(str(values["model"]))
    batch, context = int(values["batch"]), int(values["context"])
    return preset, checked_call(preset, str(values["phase"]), batch, context, str(values["dtype"]))
