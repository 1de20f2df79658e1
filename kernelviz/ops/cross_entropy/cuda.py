"""CUDA C++ kernels of `cross_entropy`, bound to tensors: how many threads and blocks share a row."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.persistent_columns import persistent_kernel
from kernelviz.ops.kernels.row_tiles import (
    CHUNKS,
    CLUSTER,
    RowTile,
    cluster_tile,
    require_vec16,
    row_tile,
    vectors_of_row,
)

if TYPE_CHECKING:
    from torch import Tensor

WARP = 32
SOURCE = Path(__file__).parent / "cuda.cu"
COLUMNS_SOURCE = Path(__file__).parent / "cuda_columns.cu"
LOSS = RowTile(lanes=128, vectors=4)
"""Tile of the losses alone: eight blocks an SM, each thread with four vectors in flight while it sums four others. Blocks of 1024
threads read 128256 logits in bf16 at 3517 GB/s, of 512 at 4033, of 256 at 4353, of 128 at 4387 (H200): the fewer wait for each
other, the better."""
MOST_BLOCKS = 32
"""That a multiprocessor holds."""
SPREAD_BLOCKS = 2
"""Of a multiprocessor: up to as many short rows have a block each, although a block could have several."""
PIECE = RowTile(lanes=256, vectors=2, resident=2048)
"""Of the backward pass, which is a copy with some arithmetic. With four vectors a thread, of rows that begin within one, it would
spill registers."""
SMALL_PIECE = RowTile(lanes=128, vectors=1, resident=2048)
"""Where every 16-byte vector can have a thread of its own at once."""


def bind_loss(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """The losses, one block per row of contiguous logits (M, V), or per several short rows.

    Raises BadField if not contiguous.
    """
    require_vec16(logits_MV=logits_MV)
    require_contiguous(labels_M=labels_M)
    return _loss(logits_MV, labels_M, None, loss_tile(logits_MV))


def bind_loss_cluster(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """The losses, up to eight blocks per row if there are fewer rows than an H200 holds blocks; errors as `bind_loss`."""
    require_vec16(logits_MV=logits_MV)
    require_contiguous(labels_M=labels_M)
    m, n = logits_MV.shape
    tile = loss_tile(logits_MV)
    steps = vectors_of_row(n, logits_MV.element_size()) // (tile.lanes * tile.vectors)
    room = multiprocessors(logits_MV.device) * tile.resident // tile.threads // m
    cluster = 1
    while cluster < CLUSTER and 2 * cluster <= min(room, steps):
        cluster *= 2
    return _loss(logits_MV, labels_M, None, replace(tile, cluster=cluster))


def bind_row_with_grad(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """The losses and their gradient, one block per row of contiguous logits (M, V); raises BadField if not contiguous."""
    return _with_grad(logits_MV, labels_M, clusters=False)


def bind_cluster_with_grad(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """The losses and their gradient, long rows a cluster each; raises BadField if not contiguous."""
    return _with_grad(logits_MV, labels_M, clusters=True)


def bind_backward(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Staged:
    """The gradient of the logits, after a forward pass that writes ln Σ exp; raises BadField if not contiguous."""
    import torch

    require_vec16(logits_MV=logits_MV)
    require_contiguous(labels_M=labels_M, dloss_M=dloss_M)
    m, n = logits_MV.shape
    sums_M = torch.empty(m, dtype=torch.float32, device=logits_MV.device)
    dx_MV = torch.empty_like(logits_MV)
    run = _loss(logits_MV, labels_M, sums_M, loss_tile(logits_MV))
    tile = backward_tile(logits_MV)
    pieces = -(-vectors_of_row(n, logits_MV.element_size()) // tile.row_vectors)
    blocks = -(-m // tile.rows) * pieces
    kernel = nvrtc.kernel(SOURCE, "cross_entropy_backward", tile.defines(logits_MV))
    pointers = tuple(t.data_ptr() for t in (logits_MV, labels_M, sums_M, dloss_M, dx_MV))
    sizes = (*_sizes(logits_MV), ctypes.c_int(pieces))

    def forward() -> Tensor:
        run()
        return sums_M

    def launch() -> Tensor:
        assert sums_M.numel()  # the launch keeps the tensor alive
        nvrtc.launch(kernel, blocks, tile.threads, *pointers, *sizes)
        return dx_MV

    return Staged(forward, launch)


def loss_tile(logits_MV: Tensor) -> RowTile:
    """The tile of the losses: rows of at most 8 KiB lie in the registers of a block, which has several short ones."""
    m, n = logits_MV.shape
    if vectors_of_row(n, logits_MV.element_size()) > LOSS.row_vectors:
        return LOSS
    return _short_row_tile(m, n, logits_MV, LOSS)


def backward_tile(logits_MV: Tensor) -> RowTile:
    """The tile of the backward pass: pieces of 8 KiB, of 2 KiB where there are few, or several short rows a block."""
    m, n = logits_MV.shape
    vectors = vectors_of_row(n, logits_MV.element_size())
    if vectors <= WARP * PIECE.vectors:
        return _short_row_tile(m, n, logits_MV, PIECE)
    if m * vectors <= multiprocessors(logits_MV.device) * SMALL_PIECE.resident:
        return SMALL_PIECE
    return PIECE if vectors > PIECE.row_vectors else _short_row_tile(m, n, logits_MV, PIECE)


def _short_row_tile(m: int, n: int, logits_MV: Tensor, like: RowTile) -> RowTile:
    """Of a row with at most as many vectors as a block has in its registers."""
    tile = row_tile(n, logits_MV.element_size(), like.vectors)
    assert tile is not None
    if tile.rows > 1 and m <= SPREAD_BLOCKS * multiprocessors(logits_MV.device):
        tile = RowTile(WARP, like.vectors)
    return replace(tile, resident=min(like.resident, MOST_BLOCKS * tile.threads))


def bind_columns_with_grad(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Losses and gradient of contiguous logits (M, V) by persistent clusters; as `bind_cluster_with_grad` where rows are few,
    short or too long.

    Raises BadField if not contiguous.
    """
    import torch

    require_vec16(logits_MV=logits_MV)
    require_contiguous(labels_M=labels_M)
    m, n = logits_MV.shape
    persistent = persistent_kernel(COLUMNS_SOURCE, "cross_entropy_with_grad_columns", logits_MV)
    if persistent is None:
        return bind_cluster_with_grad(logits_MV, labels_M)
    loss_M = torch.empty(m, dtype=logits_MV.dtype, device=logits_MV.device)
    dx_MV = torch.empty_like(logits_MV)
    kernel, tile = persistent.kernel, persistent.tile
    threads, cluster, shared_bytes = tile.lanes, tile.cluster, tile.shared_bytes
    blocks = min(persistent.resident, cluster * m)
    tile_counter = torch.zeros(2, dtype=torch.int32, device=logits_MV.device)
    pointers = tuple(t.data_ptr() for t in (logits_MV, labels_M, loss_M, dx_MV))
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), tile_counter.data_ptr())

    def launch() -> tuple[Tensor, Tensor]:
        assert tile_counter.numel() == 2  # kept alive
        nvrtc.launch(kernel, blocks, threads, *arguments, cluster=cluster, shared_bytes=shared_bytes)
        return loss_M, dx_MV

    return launch


def _loss(logits_MV: Tensor, labels_M: Tensor, sums_M: Tensor | None, tile: RowTile) -> Launch:
    import torch

    m = logits_MV.shape[0]
    loss_M = torch.empty(m, dtype=logits_MV.dtype, device=logits_MV.device)
    # Each block of a cluster would store the loss of `cross_entropy_rows`.
    vectors = vectors_of_row(logits_MV.shape[1], logits_MV.element_size())
    is_short = tile.cluster == 1 and vectors <= tile.row_vectors
    name = "cross_entropy_rows" if is_short else "cross_entropy_steps"
    kernel = nvrtc.kernel(SOURCE, name, tile.defines(logits_MV), cluster=tile.cluster)
    blocks = -(-m // tile.rows) * tile.cluster
    saved = 0 if sums_M is None else sums_M.data_ptr()
    pointers = (logits_MV.data_ptr(), labels_M.data_ptr(), loss_M.data_ptr(), saved)
    sizes = _sizes(logits_MV)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, tile.threads, *pointers, *sizes, cluster=tile.cluster)
        return loss_M

    return launch


def _with_grad(logits_MV: Tensor, labels_M: Tensor, *, clusters: bool) -> Launch:
    n, itemsize = logits_MV.shape[1], logits_MV.element_size()
    return with_grad(logits_MV, labels_M, cluster_tile(logits_MV) if clusters else row_tile(n, itemsize))


def with_grad(logits_MV: Tensor, labels_M: Tensor, tile: RowTile | None) -> Launch:
    """Losses and gradient with the row in registers (and shared memory) of that tile, or in chunks where it is None."""
    import torch

    require_vec16(logits_MV=logits_MV)
    require_contiguous(labels_M=labels_M)
    m = logits_MV.shape[0]
    loss_M = torch.empty(m, dtype=logits_MV.dtype, device=logits_MV.device)
    dx_MV = torch.empty_like(logits_MV)
    chosen = tile or CHUNKS
    name = f"cross_entropy_with_grad_{'on_chip' if chosen.in_shared else 'rows' if tile else 'chunks'}"
    shared_bytes, cluster = chosen.shared_bytes, chosen.cluster
    defines = chosen.defines(logits_MV)
    kernel = nvrtc.kernel(SOURCE, name, defines, shared_bytes=chosen.opt_in_bytes, cluster=cluster)
    blocks = cluster * -(-m // chosen.rows)
    tensors = (logits_MV, labels_M, loss_M, dx_MV)
    arguments = (*(t.data_ptr() for t in tensors), *_sizes(logits_MV))

    def launch() -> tuple[Tensor, Tensor]:
        nvrtc.launch(kernel, blocks, chosen.threads, *arguments, cluster=cluster, shared_bytes=shared_bytes)
        return loss_M, dx_MV

    return launch


def _sizes(logits_MV: Tensor) -> tuple[ctypes.c_longlong, ctypes.c_int]:
    m, n = logits_MV.shape
    return ctypes.c_longlong(m), ctypes.c_int(n)
