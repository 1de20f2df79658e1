"""A stack of linear layers, its files of weights, and the ways to load it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

SEED = 20261127
LAYERS_OF_A_SHARD = 4
ROWS = 8
WHOLE = "weights.pt"


def stack(layers: int, width: int) -> nn.Sequential:
    """The model: linear layers without anything between them. Its weights are of the file, which keeps the values in range."""
    return nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(layers)))


def weights_of(layer: int, width: int) -> torch.Tensor:
    """The weights of a layer: normal numbers of a variance that keeps the size of activations."""
    generator = torch.Generator().manual_seed(SEED + layer)
    return torch.randn(width, width, generator=generator) / width**0.5


def inputs(width: int) -> torch.Tensor:
    """The rows of the first call."""
    return torch.randn(ROWS, width, generator=torch.Generator().manual_seed(SEED - 1))


def write(folder: Path, layers: int, width: int, *, sharded: bool) -> list[Path]:
    """Write the weights to one file, or one for each few layers. Returns the paths."""
    names = {f"{i}.weight": i for i in range(layers)}
    if not sharded:
        torch.save({name: weights_of(i, width) for name, i in names.items()}, folder / WHOLE)
        return [folder / WHOLE]
    paths = []
    for first in range(0, layers, LAYERS_OF_A_SHARD):
        part = {n: weights_of(i, width) for n, i in names.items() if first <= i < first + LAYERS_OF_A_SHARD}
        path = folder / f"weights-{first:05d}.pt"
        torch.save(part, path)
        paths.append(path)
    return paths


def expected(layers: int, width: int) -> torch.Tensor:
    """The result of the first call, in float64."""
    hidden = inputs(width).double()
    for layer in range(layers):
        hidden = hidden @ weights_of(layer, width).double().T
    return hidden


def eager(paths: list[Path], layers: int, width: int, device: torch.device) -> nn.Module:
    """Initialise the model, read all weights, and copy them."""
    model = stack(layers, width)
    model.load_state_dict(torch.load(paths[0], weights_only=True))
    return model.to(device)


def mapped(paths: list[Path], layers: int, width: int, device: torch.device) -> nn.Module:
    """Initialise the model, map the file, and copy from its pages."""
    model = stack(layers, width)
    model.load_state_dict(torch.load(paths[0], mmap=True, weights_only=True))
    return model.to(device)


def meta_assign(paths: list[Path], layers: int, width: int, device: torch.device) -> nn.Module:
    """Make the model without memory, and take the pages of the file as its weights."""
    with torch.device("meta"):
        model = stack(layers, width)
    model.load_state_dict(torch.load(paths[0], mmap=True, weights_only=True), assign=True)
    return model.to(device)


def lazy(paths: list[Path], layers: int, width: int, device: torch.device) -> nn.Module:
    """Make the model without memory; each layer takes its weights just before its first call."""
    with torch.device("meta"):
        model = stack(layers, width)
    state = torch.load(paths[0], mmap=True, weights_only=True)

    def first_call(name: str, layer: nn.Module) -> Callable[..., None]:
        def take(*_: Any) -> None:
            layer.load_state_dict({"weight": state[name].to(device)}, assign=True)
            handle.remove()

        handle = layer.register_forward_pre_hook(take)
        return take

    for i, layer in enumerate(model):
        first_call(f"{i}.weight", layer)
    return model


def sharded(paths: list[Path], layers: int, width: int, device: torch.device) -> nn.Module:
    """Make the model without memory, and assign one file after another, each of which is let go before the next."""
    with torch.device("meta"):
        model = stack(layers, width)
    for path in paths:
        part = {name: tensor.to(device) for name, tensor in torch.load(path, weights_only=True).items()}
        model.load_state_dict(part, assign=True, strict=False)
        del part
    return model


Load = Callable[[list[Path], int, int, torch.device], nn.Module]
LOADS: Mapping[str, Load] = {
    "eager": eager,
    "mmap": mapped,
    "meta_assign": meta_assign,
    "lazy": lazy,
    "sharded": sharded,
}


def relative_error(result: torch.Tensor, reference: torch.Tensor) -> float:
    """The norm of the difference over the norm of the reference; infinite if it is not finite."""
    error = float(torch.linalg.vector_norm(result.double().cpu() - reference) / torch.linalg.vector_norm(reference))
    return error if error == error else float("inf")
