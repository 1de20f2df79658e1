"""CUDA C++ kernels of the gated activations, bound to tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"


def bind_scalar(a_MN: Tensor, b_MN: Tensor, gate: str) -> Launch:
    """One element a thread; raises BadField for tensors that are not contiguous."""
    return _forward("gated_scalar", a_MN, b_MN, gate, work=a_MN.numel(), threads=256)


def bind_vec16(a_MN: Tensor, b_MN: Tensor, gate: str) -> Launch:
    """16-byte vectors; one element a thread where an input does not start on 16 bytes. Raises BadField as above."""
    if not _aligned(a_MN, b_MN):
        return bind_scalar(a_MN, b_MN, gate)
    return _forward("gated_vec16", a_MN, b_MN, gate, work=_vectors(a_MN), threads=128)


def bind_scalar_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor, gate: str) -> Launch:
    """One element a thread; raises BadField for tensors that are not contiguous."""
    return _backward("gated_backward_scalar", a_MN, b_MN, dy_MN, gate, work=a_MN.numel(), threads=256)


def bind_vec16_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor, gate: str) -> Launch:
    """16-byte vectors; one element a thread where an input does not start on 16 bytes. Raises BadField as above."""
    if not _aligned(a_MN, b_MN, dy_MN):
        return bind_scalar_backward(a_MN, b_MN, dy_MN, gate)
    return _backward("gated_backward_vec16", a_MN, b_MN, dy_MN, gate, work=_vectors(a_MN), threads=128)


def _aligned(*tensors: Tensor) -> bool:
    """Whether 16-byte loads are allowed. Outputs are: torch aligns what it allocates to 512 bytes."""
    return all(t.data_ptr() % 16 == 0 for t in tensors)


def _vectors(tensor: Tensor) -> int:
    """Number of threads: one for each whole vector, and one for each element after the last."""
    return sum(divmod(tensor.numel(), 16 // tensor.element_size()))


def _forward(name: str, a_MN: Tensor, b_MN: Tensor, gate: str, *, work: int, threads: int) -> Launch:
    import torch

    require_contiguous(a_MN=a_MN, b_MN=b_MN)
    y_MN = torch.empty_like(a_MN)
    run = _launch(name, (a_MN, b_MN, y_MN), gate, work, threads)

    def launch() -> Tensor:
        run()
        return y_MN

    return launch


def _backward(name: str, a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor, gate: str, *, work: int, threads: int) -> Launch:
    import torch

    require_contiguous(a_MN=a_MN, b_MN=b_MN, dy_MN=dy_MN)
    gradients = (torch.empty_like(a_MN), torch.empty_like(b_MN))
    run = _launch(name, (a_MN, b_MN, dy_MN, *gradients), gate, work, threads)

    def launch() -> tuple[Tensor, ...]:
        run()
        return gradients

    return launch


def _launch(name: str, tensors: tuple[Tensor, ...], gate: str, work: int, threads: int) -> Callable[[], None]:
    kernel = nvrtc.kernel(SOURCE, name, {"ELEMENT": nvrtc.element_type(tensors[0].dtype), "GATE": gate})
    blocks = -(-work // threads)
    pointers = tuple(t.data_ptr() for t in tensors)
    count = ctypes.c_longlong(tensors[0].numel())
    return lambda: nvrtc.launch(kernel, blocks, threads, *pointers, count)
