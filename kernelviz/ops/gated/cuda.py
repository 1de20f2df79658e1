"""CUDA C++ kernels of the gated activations, bound to tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.one_element import OneElement

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
VEC16_THREADS = 128


def bind_scalar(a_MN: Tensor, b_MN: Tensor, gate: str) -> Launch:
    """One element a thread; raises BadField for tensors that are not contiguous."""
    return _forward("gated_scalar", a_MN, b_MN, gate, OneElement(a_MN.numel()))


def bind_vec16(a_MN: Tensor, b_MN: Tensor, gate: str) -> Launch:
    """16-byte vectors; one element a thread where an input does not start on 16 bytes. Raises BadField as above."""
    if not _aligned(a_MN, b_MN):
        return bind_scalar(a_MN, b_MN, gate)
    return _forward("gated_vec16", a_MN, b_MN, gate)


def bind_scalar_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor, gate: str) -> Launch:
    """One element a thread; raises BadField for tensors that are not contiguous."""
    return _backward("gated_backward_scalar", a_MN, b_MN, dy_MN, gate, OneElement(a_MN.numel()))


def bind_vec16_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor, gate: str) -> Launch:
    """16-byte vectors; one element a thread where an input does not start on 16 bytes. Raises BadField as above."""
    if not _aligned(a_MN, b_MN, dy_MN):
        return bind_scalar_backward(a_MN, b_MN, dy_MN, gate)
    return _backward("gated_backward_vec16", a_MN, b_MN, dy_MN, gate)


def _aligned(*tensors: Tensor) -> bool:
    """Whether 16-byte loads are allowed. Outputs are: torch aligns what it allocates to 512 bytes."""
    return all(t.data_ptr() % 16 == 0 for t in tensors)


def _vectors(tensor: Tensor) -> int:
    """Number of threads: one for each whole vector, and one for each element after the last."""
    return sum(divmod(tensor.numel(), 16 // tensor.element_size()))


def _forward(name: str, a_MN: Tensor, b_MN: Tensor, gate: str, one: OneElement | None = None) -> Launch:
    import torch

    require_contiguous(a_MN=a_MN, b_MN=b_MN)
    y_MN = torch.empty_like(a_MN)
    run = _launch(name, (a_MN, b_MN, y_MN), gate, one)

    def launch() -> Tensor:
        run()
        return y_MN

    return launch


def _backward(name: str, a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor, gate: str, one: OneElement | None = None) -> Launch:
    import torch

    require_contiguous(a_MN=a_MN, b_MN=b_MN, dy_MN=dy_MN)
    gradients = (torch.empty_like(a_MN), torch.empty_like(b_MN))
    run = _launch(name, (a_MN, b_MN, dy_MN, *gradients), gate, one)

    def launch() -> tuple[Tensor, ...]:
        run()
        return gradients

    return launch


def _launch(name: str, tensors: tuple[Tensor, ...], gate: str, one: OneElement | None) -> Callable[[], None]:
    """One element a thread, or 16-byte vectors."""
    defines = {"ELEMENT": nvrtc.element_type(tensors[0].dtype), "GATE": gate}
    kernel = nvrtc.kernel(SOURCE, name, defines | (one.defines if one else {}))
    blocks, threads = (one.blocks, one.threads) if one else (-(-_vectors(tensors[0]) // VEC16_THREADS), VEC16_THREADS)
    pointers = tuple(t.data_ptr() for t in tensors)
    size = one.last if one else ctypes.c_longlong(tensors[0].numel())
    return lambda: nvrtc.launch(kernel, blocks, threads, *pointers, size)
