"""Input tensors of a problem: filled from a seed, with the data that the problem names."""

from collections.abc import Sequence

import torch
from torch import Tensor

from kernelviz.core import Problem
from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import RANDOM_DATA, problem_of_seed
from kernelviz.core.reasons import OutputCount, OutputDtype, OutputFault, OutputShape, OutputStrides, OutputType
from kernelviz.ops import Op, TensorSpec

_PLAIN = (Tensor, torch.nn.Parameter)
"""A subclass of tensor can delay its work until it is read, which is after the time was taken."""
OUTLIER_DISTANCE, OUTLIER_FACTOR = 1009, 32.0
"""Of ``outliers``, every 1,009th number is 32 times larger: about 0.1 % of the numbers, as in the activations of large language
models (Dettmers et al. 2022, arXiv 2208.07339). The distance is a prime, so that outliers are in all rows and columns; the factor
is a power of two, so that the number is exact in every format."""
MOST_PERMUTATIONS = 1024
"""Of ids that are drawn one after the other. A call takes about 50 µs on a GPU, so 200,000 permutations of 5 ids took
10 s; more than these are sorted by random numbers at once instead."""


def allocate(
    specs: Sequence[TensorSpec], problem: Problem, device: torch.device, least_bytes: int = 0
) -> tuple[Tensor, ...]:
    """Uninitialised tensors of the given specs, contiguous, in the problem's dtype unless the spec has one.

    Each tensor starts its own block of memory of at least `least_bytes`, or begins by its offset after its start.
    """

    def one(spec: TensorSpec) -> Tensor:
        dtype, elements = torch_dtype(spec.dtype or problem.dtype), spec.elements(problem.sizes)
        skipped = spec.offset_bytes(problem.sizes) // dtype.itemsize
        block = torch.empty(max(skipped + elements, least_bytes // dtype.itemsize), dtype=dtype, device=device)
        return block[skipped : skipped + elements].view(spec.shape(problem.sizes))

    return tuple(one(spec) for spec in specs)


def torch_dtype(name: str) -> torch.dtype:
    named: torch.dtype = getattr(torch, dtype_named(name).torch_name)
    return named


def check_seeds(problem: Problem, seeds: int) -> range:
    """The seeds of the correctness check: `seeds` of them, but at least one with random data (`problem_of_seed`)."""
    return range(max(seeds, 1 if problem.data in RANDOM_DATA else 2))


def fill(op: Op, tensors: Sequence[Tensor], problem: Problem, seed: int) -> None:
    """Write the data of this seed (`problem_of_seed`) into the inputs of `op` (the op of the problem's direction) in place.

    The same seed always writes the same numbers on one device.
    """
    fill_with(op, tensors, problem_of_seed(problem, seed), seed)


def fill_with(op: Op, tensors: Sequence[Tensor], problem: Problem, seed: int) -> None:
    """The same with the data of the problem for every seed."""
    for position, (spec, tensor) in enumerate(zip(op.inputs, tensors, strict=True)):
        _fill_one(spec, tensor, problem, seed * 1000 + position)


def _fill_one(spec: TensorSpec, tensor: Tensor, problem: Problem, seed: int) -> None:
    """Write one input: the values of the spec, ids below the size of their axis, scales, or data of the spec or the problem."""
    if spec.values is not None:
        tensor.copy_(torch.tensor(spec.values(problem.sizes), dtype=tensor.dtype).view(tensor.shape))
        return
    generator = torch.Generator(device=tensor.device).manual_seed(seed)
    below = spec.below_number(problem.sizes)
    if below is not None:
        _fill_ids(tensor, below, spec.ids, problem.data == "sorted", generator)
    elif spec.scales:
        tensor.uniform_(1 / 256, 3 / 256, generator=generator)
    elif tensor.dtype == torch.float8_e4m3fn:
        # torch draws no random numbers of 8 bits. All that are drawn here are within ±448, the largest ones of e4m3.
        wide = torch.empty(tensor.shape, dtype=torch.float32, device=tensor.device)
        _fill_numbers(wide, spec.data or problem.data, generator)
        tensor.copy_(wide)
    elif tensor.dtype == torch.uint8:
        _fill_bytes(tensor, spec.data or problem.data, generator)
    else:
        _fill_numbers(tensor, spec.data or problem.data, generator)


def _fill_ids(tensor: Tensor, size: int, ids: str, ascending: bool, generator: torch.Generator) -> None:
    if ids == "labels":
        tensor.random_(0, size, generator=generator)
        return
    times = -(-tensor.numel() // size)
    if times <= MOST_PERMUTATIONS:
        permutations = [torch.randperm(size, device=tensor.device, generator=generator) for _ in range(times)]
        whole = torch.cat(permutations)[: tensor.numel()]
    else:
        order = torch.rand(times, size, device=tensor.device, generator=generator).argsort(dim=1)
        whole = order.flatten()[: tensor.numel()]
    tensor.copy_((whole.sort().values if ascending else whole).view(tensor.shape))


def _fill_bytes(tensor: Tensor, data: str | None, generator: torch.Generator) -> None:
    """Write bytes: normal round 128 with deviation 32, uniform over all, zeros, 0..8, or ones. An outlier is 255."""
    match data:
        case "normal" | "sorted" | "outliers":
            wide = torch.empty(tensor.shape, dtype=torch.float32, device=tensor.device)
            tensor.copy_(wide.normal_(128.0, 32.0, generator=generator).round_().clamp_(0, 255))
            if data == "outliers":
                _outliers(tensor, generator).fill_(255)
        case "uniform":
            tensor.random_(0, 256, generator=generator)
        case "small_integers":
            tensor.random_(0, 9, generator=generator)
        case _:
            _fill_numbers(tensor, data, generator)


def _fill_numbers(tensor: Tensor, data: str | None, generator: torch.Generator) -> None:
    """Write numbers: standard normal, the same with outliers, uniform in [-1, 1), zeros, whole numbers -4..4, or ones."""
    match data:
        case "normal" | "sorted":
            tensor.normal_(generator=generator)
        case "outliers":
            tensor.normal_(generator=generator)
            _outliers(tensor, generator).mul_(OUTLIER_FACTOR)
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


def _outliers(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """Every OUTLIER_DISTANCE-th element, from a random one on. A small tensor has one, or none."""
    first = int(torch.randint(OUTLIER_DISTANCE, (1,), device=tensor.device, generator=generator))
    return tensor.view(-1)[first::OUTLIER_DISTANCE]


def unchanged(op: Op, tensors: Sequence[Tensor], problem: Problem, seed: int) -> list[int]:
    """Positions of the tensors that no longer hold the values that `fill` wrote with that seed."""
    problem = problem_of_seed(problem, seed)
    changed = []
    for position, (spec, tensor) in enumerate(zip(op.inputs, tensors, strict=True)):
        again = torch.empty_like(tensor)
        _fill_one(spec, again, problem, seed * 1000 + position)
        if not torch.equal(_comparable(again), _comparable(tensor)):
            changed.append(position)
    return changed


def _comparable(tensor: Tensor) -> Tensor:
    """The tensor, or the bytes of one of 8-bit floats, which torch does not compare on every device."""
    return tensor.view(torch.uint8) if tensor.dtype == torch.float8_e4m3fn else tensor


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
