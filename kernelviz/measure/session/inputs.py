"""Input tensors of a problem: filled from a seed, with the data that the problem names."""

from collections.abc import Sequence

import torch
from torch import Tensor

from kernelviz.core import Problem
from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.reasons import OutputCount, OutputDtype, OutputFault, OutputShape, OutputStrides, OutputType
from kernelviz.ops import Op, TensorSpec

_PLAIN = (Tensor, torch.nn.Parameter)
"""A subclass of tensor can delay its work until it is read, which is after the time was taken."""


def allocate(
    specs: Sequence[TensorSpec], problem: Problem, device: torch.device, least_bytes: int = 0
) -> tuple[Tensor, ...]:
    """Uninitialised tensors of the given specs, contiguous, in the problem's dtype unless the spec has one.

    Each tensor starts its own block of memory of at least `least_bytes`.
    """

    def one(spec: TensorSpec) -> Tensor:
        dtype, elements = torch_dtype(spec.dtype or problem.dtype), spec.elements(problem.sizes)
        block = torch.empty(max(elements, least_bytes // dtype.itemsize), dtype=dtype, device=device)
        return block[:elements].view(spec.shape(problem.sizes))

    return tuple(one(spec) for spec in specs)


def torch_dtype(name: str) -> torch.dtype:
    named: torch.dtype = getattr(torch, dtype_named(name).torch_name)
    return named


def fill(op: Op, tensors: Sequence[Tensor], problem: Problem, seed: int) -> None:
    """Write the problem's data into the inputs of `op` (the op of the problem's direction) in place.

    The same seed always writes the same numbers on one device.
    """
    for position, (spec, tensor) in enumerate(zip(op.inputs, tensors, strict=True)):
        _fill_one(spec, tensor, problem, seed * 1000 + position)


def _fill_one(spec: TensorSpec, tensor: Tensor, problem: Problem, seed: int) -> None:
    """Write one input: the values of the spec, ids below the size of their axis, or the data of the spec or of the problem."""
    if spec.values is not None:
        tensor.copy_(torch.tensor(spec.values(problem.sizes), dtype=tensor.dtype).view(tensor.shape))
        return
    generator = torch.Generator(device=tensor.device).manual_seed(seed)
    if spec.below is not None:
        _fill_ids(tensor, problem.sizes[spec.below], spec.ids, problem.data == "sorted", generator)
    elif tensor.dtype == torch.uint8:
        _fill_bytes(tensor, spec.data or problem.data, generator)
    else:
        _fill_numbers(tensor, spec.data or problem.data, generator)


def _fill_ids(tensor: Tensor, size: int, ids: str, ascending: bool, generator: torch.Generator) -> None:
    if ids == "labels":
        tensor.random_(0, size, generator=generator)
        return
    times = -(-tensor.numel() // size)
    permutations = [torch.randperm(size, device=tensor.device, generator=generator) for _ in range(times)]
    whole = torch.cat(permutations)[: tensor.numel()]
    tensor.copy_((whole.sort().values if ascending else whole).view(tensor.shape))


def _fill_bytes(tensor: Tensor, data: str | None, generator: torch.Generator) -> None:
    """Write bytes: normal round 128 with deviation 32, uniform over all, zeros, 0..8, or ones."""
    match data:
        case "normal" | "sorted":
            wide = torch.empty(tensor.shape, dtype=torch.float32, device=tensor.device)
            tensor.copy_(wide.normal_(128.0, 32.0, generator=generator).round_().clamp_(0, 255))
        case "uniform":
            tensor.random_(0, 256, generator=generator)
        case "small_integers":
            tensor.random_(0, 9, generator=generator)
        case _:
            _fill_numbers(tensor, data, generator)


def _fill_numbers(tensor: Tensor, data: str | None, generator: torch.Generator) -> None:
    """Write numbers: standard normal, uniform in [-1, 1), zeros, whole numbers -4..4, or ones."""
    match data:
        case "normal" | "sorted":
            tensor.normal_(generator=generator)
        case "uniform":
            tensor.uniform_(-1.0, 1.0, generator=generator)
        case "zeros":
            tensor.zero_()
        case "small_integers":
            tensor.random_(-4, 5, generator=generator)
        case "one_value":
            tensor.fill_(1.0)
        case _:
            raise ValueError(f"no data called {data!r}")


def unchanged(op: Op, tensors: Sequence[Tensor], problem: Problem, seed: int) -> list[int]:
    """Positions of the tensors that no longer hold the values that `fill` wrote with that seed."""
    changed = []
    for position, (spec, tensor) in enumerate(zip(op.inputs, tensors, strict=True)):
        again = torch.empty_like(tensor)
        _fill_one(spec, again, problem, seed * 1000 + position)
        if not torch.equal(again, tensor):
            changed.append(position)
    return changed


def as_tuple(outputs: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The outputs of a launch as a tuple. Anything else than a tuple or a list is one output."""
    return tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)


def check_specs(op: Op, problem: Problem, outputs: Sequence[Tensor]) -> OutputFault | None:
    """What is wrong with the number, types, shapes, dtypes or strides of the outputs, or None."""
    if len(outputs) != len(op.outputs):
        return OutputCount(returned=len(outputs), expected=len(op.outputs), op=op.name)
    for spec, tensor in zip(op.outputs, outputs, strict=True):
        if type(tensor) not in _PLAIN:
            return OutputType(output=spec.name, type=type(tensor).__name__)
        shape, kind = spec.shape(problem.sizes), torch_dtype(spec.dtype or problem.dtype)
        if tuple(tensor.shape) != shape:
            return OutputShape(output=spec.name, shape=tuple(tensor.shape), expected=shape)
        if tensor.dtype != kind:
            return OutputDtype(output=spec.name, dtype=str(tensor.dtype), expected=str(kind))
        if not tensor.is_contiguous():
            return OutputStrides(output=spec.name, strides=tensor.stride())
    return None
