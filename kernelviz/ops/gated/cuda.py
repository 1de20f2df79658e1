"""CUDA C++ kernels of the gated activations, bound to tensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.flat_launch import FlatLaunch, one_element
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.vec16 import aligned
from kernelviz.ops.kernels.vectors_and_rest import vectors_and_rest

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"


def bind_scalar(a_MN: Tensor, b_MN: Tensor, gate: str) -> Launch:
    """One element a thread; raises BadField for tensors that are not contiguous."""
    return _forward("gated_scalar", a_MN, b_MN, gate, one_element(a_MN))


def bind_vec16(a_MN: Tensor, b_MN: Tensor, gate: str) -> Launch:
    """16-byte vectors; one element a thread where an input does not start on 16 bytes. Raises BadField as above."""
    if not aligned(a_MN, b_MN):
        return bind_scalar(a_MN, b_MN, gate)
    return _forward("gated_vec16", a_MN, b_MN, gate, vectors_and_rest(a_MN))


def bind_scalar_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor, gate: str) -> Launch:
    """One element a thread; raises BadField for tensors that are not contiguous."""
    return _backward("gated_backward_scalar", a_MN, b_MN, dy_MN, gate, one_element(a_MN))


def bind_vec16_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor, gate: str) -> Launch:
    """16-byte vectors; one element a thread where an input does not start on 16 bytes. Raises BadField as above."""
    if not aligned(a_MN, b_MN, dy_MN):
        return bind_scalar_backward(a_MN, b_MN, dy_MN, gate)
    return _backward("gated_backward_vec16", a_MN, b_MN, dy_MN, gate, vectors_and_rest(a_MN))


def _forward(name: str, a_MN: Tensor, b_MN: Tensor, gate: str, flat: FlatLaunch) -> Launch:
    import torch

    require_contiguous(a_MN=a_MN, b_MN=b_MN)
    y_MN = torch.empty_like(a_MN)
    run = _launch(name, (a_MN, b_MN, y_MN), gate, flat)

    def launch() -> Tensor:
        run()
        return y_MN

    return launch


def _backward(name: str, a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor, gate: str, flat: FlatLaunch) -> Launch:
    import torch

    require_contiguous(a_MN=a_MN, b_MN=b_MN, dy_MN=dy_MN)
    gradients = (torch.empty_like(a_MN), torch.empty_like(b_MN))
    run = _launch(name, (a_MN, b_MN, dy_MN, *gradients), gate, flat)

    def launch() -> tuple[Tensor, ...]:
        run()
        return gradients

    return launch


def _launch(name: str, tensors: tuple[Tensor, ...], gate: str, flat: FlatLaunch) -> Callable[[], None]:
    kernel = nvrtc.kernel(SOURCE, name, {"ELEMENT": nvrtc.element_type(tensors[0].dtype), "GATE": gate, **flat.defines})
    pointers = tuple(t.data_ptr() for t in tensors)
    return lambda: nvrtc.launch(kernel, flat.blocks, flat.threads, *pointers, flat.size)
