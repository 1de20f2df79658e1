"""Tensors without memory that say they are on a GPU, and torch's answers about a GPU that is not there.

A variant is bound to such tensors where no CUDA device is visible, so that it asks its compilers for the same kernels as on
the GPU. torch sees tensors on its device ``meta``, so nothing reaches CUDA; Python code sees ``cuda:0``. The addresses that
they name are aligned as those of torch's allocator are, because Triton compiles aligned pointers differently.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from kernelviz.core import Problem
from kernelviz.measure.compile_ahead.messages import DeviceFacts
from kernelviz.measure.session.inputs import allocate
from kernelviz.ops import TensorSpec

_ADDRESS = 2**32
"""Where each tensor's memory would begin: a multiple of 512 bytes, as in torch's allocator."""


class StandIn(torch.Tensor):
    """A tensor on the device ``meta`` that names a GPU as its device, and an aligned address."""

    gpu = torch.device("cuda", 0)

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return self.gpu

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        return True

    @property
    def is_meta(self) -> bool:  # type: ignore[override]
        return False

    def get_device(self) -> int:
        return self.gpu.index

    def data_ptr(self) -> int:
        return _ADDRESS + int(self.storage_offset()) * self.element_size()


class _OnMeta(TorchFunctionMode):
    """Calls of torch that name a GPU as their device use the device ``meta``, and return stand-ins."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if function is torch.Tensor.__repr__:
            return "StandIn"
        # torch computes shapes for the device `meta` in Python, so it must get the tensors as they are.
        placed = {name: _on_meta(value) for name, value in (kwargs or {}).items()}
        return _stand_ins(function(*map(_on_meta, args), **placed))


def _on_meta(value: Any) -> Any:
    if isinstance(value, StandIn):
        return value.as_subclass(torch.Tensor)
    if type(value) in (tuple, list):
        return type(value)(map(_on_meta, value))
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("meta")
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "meta"
    return value


def _stand_ins(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and not isinstance(value, StandIn):
        return value.as_subclass(StandIn) if value.device.type == "meta" else value
    if type(value) in (tuple, list):
        return type(value)(map(_stand_ins, value))
    return value


def stand_ins(specs: Sequence[TensorSpec], problem: Problem) -> tuple[torch.Tensor, ...]:
    """Contiguous stand-ins of the given specs, as `measure.session.inputs.allocate` allocates the tensors themselves."""
    on_meta = torch.device("meta")
    return tuple(tensor.as_subclass(StandIn) for tensor in allocate(specs, problem, on_meta))


@contextlib.contextmanager
def gpu_of(facts: DeviceFacts) -> Iterator[None]:
    """While it is open, torch answers as on that GPU, and creates stand-ins on it. For a process that has no GPU."""
    properties = SimpleNamespace(**facts.torch_properties)
    answers: dict[str, Any] = {
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: divmod(facts.arch, 10),
        "get_device_name": lambda device=None: str(facts.torch_properties.get("name", "")),
        "current_device": lambda: facts.index,
        "synchronize": lambda device=None: None,
        "device": lambda device=None: contextlib.nullcontext(),
    }
    before = {name: getattr(torch.cuda, name) for name in answers}
    StandIn.gpu = torch.device("cuda", facts.index)
    try:
        for name, answer in answers.items():
            setattr(torch.cuda, name, answer)
        with _OnMeta():
            yield
    finally:
        for name, answer in before.items():
            setattr(torch.cuda, name, answer)
