"""CUDA C++ kernels of `softmax`, bound to tensors: how many threads and blocks share a row."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.persistent_columns import persistent_kernel
from kernelviz.ops.kernels.row_tiles import CHUNKS, RowTile, cluster_tile, require_vec16, row_tile

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
COLUMNS_SOURCE = Path(__file__).parent / "cuda_columns.cu"


def bind_row(x_MN: Tensor) -> Launch:
    """Rows of a contiguous matrix (M, N), a block each; raises BadField if not contiguous."""
    import torch

    require_vec16(x_MN=x_MN)
    return _forward(x_MN, torch.empty_like(x_MN), clusters=False)


def bind_cluster(x_MN: Tensor) -> Launch:
    """Rows of a contiguous matrix (M, N), long ones a cluster each; raises BadField if not contiguous."""
    import torch

    require_vec16(x_MN=x_MN)
    return _forward(x_MN, torch.empty_like(x_MN), clusters=True)


def bind_row_backward(x_MN: Tensor, dy_MN: Tensor) -> Staged:
    """The backward pass of `bind_row`, after its forward pass."""
    return _backward(x_MN, dy_MN, clusters=False)


def bind_cluster_backward(x_MN: Tensor, dy_MN: Tensor) -> Staged:
    """The backward pass of `bind_cluster`, after its forward pass."""
    return _backward(x_MN, dy_MN, clusters=True)


def bind_columns(x_MN: Tensor) -> Launch:
    """Rows of a contiguous matrix (M, N) by persistent clusters, or as `bind_cluster` where rows are few, short or too long.

    Raises BadField for a matrix that is not contiguous.
    """
    import torch

    require_vec16(x_MN=x_MN)
    m, n = x_MN.shape
    persistent = persistent_kernel(COLUMNS_SOURCE, "softmax_columns", x_MN)
    if persistent is None:
        return bind_cluster(x_MN)
    out_MN = torch.empty_like(x_MN)
    kernel, tile = persistent.kernel, persistent.tile
    threads, cluster, shared_bytes = tile.lanes, tile.cluster, tile.shared_bytes
    blocks = min(persistent.resident, cluster * m)
    tile_counter = torch.zeros(2, dtype=torch.int32, device=x_MN.device)
    pointers = (x_MN.data_ptr(), out_MN.data_ptr())
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), tile_counter.data_ptr())

    def launch() -> Tensor:
        assert tile_counter.numel() == 2  # kept alive
        nvrtc.launch(kernel, blocks, threads, *arguments, cluster=cluster, shared_bytes=shared_bytes)
        return out_MN

    return launch


def _forward(x_MN: Tensor, out_MN: Tensor, *, clusters: bool) -> Launch:
    n, itemsize = x_MN.shape[1], x_MN.element_size()
    return _launch("softmax", cluster_tile(x_MN) if clusters else row_tile(n, itemsize), (x_MN,), out_MN)


def _backward(x_MN: Tensor, dy_MN: Tensor, *, clusters: bool) -> Staged:
    """The backward pass: each thread has two vectors of y and two of dy, not converted."""
    import torch

    require_vec16(x_MN=x_MN, dy_MN=dy_MN)
    y_MN, dx_MN = torch.empty_like(x_MN), torch.empty_like(x_MN)
    n, itemsize = x_MN.shape[1], x_MN.element_size()
    tile = cluster_tile(x_MN, 2, vectors=2) if clusters else row_tile(n, itemsize, vectors=2)
    forward = _forward(x_MN, y_MN, clusters=clusters)
    return Staged(forward, _launch("softmax_backward", tile, (y_MN, dy_MN), dx_MN))


def _launch(name: str, tile: RowTile | None, given: tuple[Tensor, ...], out_MN: Tensor) -> Launch:
    m, n = out_MN.shape
    chosen = tile or CHUNKS
    kind = "on_chip" if chosen.in_shared else "rows" if tile else "chunks"
    shared_bytes, cluster = chosen.shared_bytes * len(given), chosen.cluster
    opt_in_bytes = max(shared_bytes, chosen.opt_in_bytes)
    kernel = nvrtc.kernel(SOURCE, f"{name}_{kind}", chosen.defines(out_MN), shared_bytes=opt_in_bytes, cluster=cluster)
    blocks = cluster * -(-m // chosen.rows)
    arguments = (*(t.data_ptr() for t in (*given, out_MN)), ctypes.c_longlong(m), ctypes.c_int(n))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, chosen.threads, *arguments, cluster=cluster, shared_bytes=shared_bytes)
        return out_MN

    return launch
