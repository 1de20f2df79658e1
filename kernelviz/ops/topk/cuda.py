"""CUDA C++ kernels of `topk`, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
MOST = 1024
"""The largest k: as many entries are sorted in shared memory."""
SHORTEST_PART = 8192
"""Elements of a row that is shared by several blocks: below, reading them takes less time than offering them again."""


def bind_radix_select(x_MN: Tensor, k: int) -> Launch:
    """A block a row of a contiguous matrix (M, N). Errors: BadField if not contiguous or k is above 1024 or the row length."""
    values_MK, indices_MK = _outputs(x_MN, k)
    kernel = nvrtc.kernel(SOURCE, "topk_radix_select", {"ELEMENT": nvrtc.element_type(x_MN.dtype)})
    m, n = x_MN.shape
    sizes = (ctypes.c_int(n), ctypes.c_int(k))

    def launch() -> tuple[Tensor, ...]:
        nvrtc.launch(kernel, m, 512, x_MN.data_ptr(), values_MK.data_ptr(), indices_MK.data_ptr(), *sizes)
        return values_MK, indices_MK

    return launch


def bind_threshold(x_MN: Tensor, k: int, *, threads: int = 0, vectors: int = 0, parts: int = 0) -> Launch:
    """One reading of the rows, several blocks each where they are few; errors as above."""
    import torch

    values_MK, indices_MK = _outputs(x_MN, k)
    m, n = x_MN.shape
    # The row's vectors in flight at once: 8 KiB a block, and 512 or 1024 elements between two barriers.
    threads, vectors = (
        threads or (128 if x_MN.element_size() == 4 else 256),
        vectors or (4 if x_MN.element_size() == 4 else 2),
    )
    parts = parts or parts_for(m, n, multiprocessors(x_MN.device))
    # Whole vectors, so that all parts of an aligned row are aligned.
    part = -(-n // (8 * parts)) * 8
    parts = -(-n // part)
    defines = {"ELEMENT": nvrtc.element_type(x_MN.dtype), "THREADS": str(threads), "VECTORS": str(vectors)}
    kernel = nvrtc.kernel(SOURCE, "topk_threshold", defines)
    candidates = torch.empty(m * parts * k if parts > 1 else 1, dtype=torch.int64, device=x_MN.device)
    tickets = torch.zeros(m, dtype=torch.int32, device=x_MN.device)
    sizes = tuple(ctypes.c_int(s) for s in (n, k, parts, part))

    def launch() -> tuple[Tensor, ...]:
        # The addresses are read here, so that the closure keeps the tensors alive that only it owns.
        pointers = (t.data_ptr() for t in (x_MN, candidates, tickets, values_MK, indices_MK))
        nvrtc.launch(kernel, m * parts, threads, *pointers, *sizes)
        return values_MK, indices_MK

    return launch


def parts_for(m: int, n: int, count: int) -> int:
    """Blocks a row on a GPU of `count` SMs: two an SM in all, at least 8192 elements each.

    >>> parts_for(1, 128256, 132), parts_for(64, 128256, 132), parts_for(4096, 32000, 132)
    (15, 4, 1)
    """
    return max(1, min(2 * count // m, n // SHORTEST_PART))


def _outputs(x_MN: Tensor, k: int) -> tuple[Tensor, Tensor]:
    import torch

    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    if not 1 <= k <= min(n, MOST):
        raise BadField("size k", k, f"this kernel takes 1 to {min(n, MOST)} of rows of {n}")
    values_MK = torch.empty((m, k), dtype=x_MN.dtype, device=x_MN.device)
    return values_MK, torch.empty((m, k), dtype=torch.int64, device=x_MN.device)
