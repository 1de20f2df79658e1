"""CUDA C++ kernels of `quantize_fp8`, `quantize_int8` and `rmsnorm_quantize_fp8`, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.persistent_columns import columns_tile
from kernelviz.ops.quantize.reference import SMALLEST, largest

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
COLUMNS_SOURCE = Path(__file__).parent / "cuda_columns.cu"
VEC16_BYTES = 16
LONGEST_BLOCK_VECTORS = 4096
"""The longest row that the registers of one block hold, with a second block on the SM: 512 threads with eight vectors, 64 KiB."""
MOST_CLUSTER = 8


@dataclass(frozen=True, slots=True)
class RowTile:
    """Threads that share a row, 16-byte vectors of each, blocks that share a row, rows of a block, blocks an SM."""

    lanes: int
    vectors: int
    cluster: int = 1
    rows: int = 1
    blocks: int = 1


def row_tile(vectors: int, *, clusters: bool) -> RowTile | None:
    """The tile for rows of that many 16-byte vectors; None for rows that blocks cannot hold.

    Two vectors a thread where a block can have enough threads, otherwise four or eight, with 32, 40 and 64 registers.

    >>> row_tile(16, clusters=False), row_tile(512, clusters=False)
    (RowTile(lanes=16, vectors=1, cluster=1, rows=8, blocks=12), RowTile(lanes=256, vectors=2, cluster=1, rows=1, blocks=8))
    >>> row_tile(4096, clusters=False), row_tile(16384, clusters=True), row_tile(16384, clusters=False)
    (RowTile(lanes=512, vectors=8, cluster=1, rows=1, blocks=2), RowTile(lanes=512, vectors=4, cluster=8, rows=1, blocks=3), None)
    """
    if vectors <= 128:
        lanes = min(32, 1 << max(0, vectors - 1).bit_length())
        return RowTile(lanes, -(-vectors // lanes), 1, 128 // lanes, 12)
    if vectors <= LONGEST_BLOCK_VECTORS:
        each = 2 if vectors <= 1024 else 4 if vectors <= 2048 else 8
        lanes = 32 * -(-vectors // (32 * each))
        return RowTile(lanes, each, blocks={2: 2048, 4: 1536, 8: 1024}[each] // lanes)
    if not clusters:
        return None
    each = 4 if vectors <= 32 * 1024 else 8
    lanes = 32 * -(-vectors // (32 * each * MOST_CLUSTER))
    resident = 1536 if each == 4 else 1024
    return RowTile(lanes, each, MOST_CLUSTER, blocks=max(1, resident // lanes)) if lanes <= 1024 else None


def bind_rows(x_MN: Tensor, w_N: Tensor | None, target: str, *, eps: float = 0.0) -> Launch:
    """A block a row, read once up to 64 KiB and twice beyond. Errors: BadField for tensors that are not contiguous or aligned."""
    return _bind(x_MN, w_N, target, eps, row_tile(_row_vectors(x_MN, w_N), clusters=False))


def bind_cluster(x_MN: Tensor, w_N: Tensor | None, target: str, *, eps: float = 0.0) -> Launch:
    """A cluster of blocks per row of more than 64 KiB; one of more than 1 MiB is read twice. Errors as above."""
    return _bind(x_MN, w_N, target, eps, row_tile(_row_vectors(x_MN, w_N), clusters=True))


def _row_vectors(x_MN: Tensor, w_N: Tensor | None) -> int:
    """16-byte vectors that a row touches, wherever it starts. Errors: BadField."""
    tensors = {"x_MN": x_MN} if w_N is None else {"x_MN": x_MN, "w_N": w_N}
    require_contiguous(**tensors)
    for name, tensor in tensors.items():
        if tensor.data_ptr() % VEC16_BYTES:
            raise BadField(f"input {name}", hex(tensor.data_ptr()), "this kernel needs one that starts on 16 bytes")
    width, n = VEC16_BYTES // x_MN.element_size(), x_MN.shape[1]
    return n // width if n % width == 0 else (n + 2 * width - 2) // width


def _bind(x_MN: Tensor, w_N: Tensor | None, target: str, eps: float, tile: RowTile | None) -> Launch:
    import torch

    m, n = x_MN.shape
    name = "quantize_rows" if tile is not None else "quantize_long_rows"
    tile = tile or RowTile(1024, 1)
    defines = {
        "ELEMENT": nvrtc.element_type(x_MN.dtype),
        "INT8": str(int(target == "int8")),
        "NORM": str(int(w_N is not None)),
        "ROW_LANES": str(tile.lanes),
        "ROW_VECTORS": str(tile.vectors),
        "ROW_CLUSTER": str(tile.cluster),
        "ROW_ROWS": str(tile.rows),
        "ROW_BLOCKS": str(tile.blocks),
        "ROW_ALIGNED": "true" if n % (VEC16_BYTES // x_MN.element_size()) == 0 else "false",
    }
    kernel = nvrtc.kernel(SOURCE, name, defines, cluster=tile.cluster)
    blocks, threads, cluster = tile.cluster * -(-m // tile.rows), tile.lanes * tile.rows, tile.cluster
    q_MN = torch.empty_like(x_MN, dtype=torch.int8 if target == "int8" else torch.float8_e4m3fn)
    scale_M = torch.empty(m, dtype=torch.float32, device=x_MN.device)
    weight = 0 if w_N is None else w_N.data_ptr()
    numbers = (ctypes.c_float(eps), ctypes.c_float(SMALLEST), ctypes.c_float(largest(target)))
    arguments = (
        x_MN.data_ptr(),
        weight,
        q_MN.data_ptr(),
        scale_M.data_ptr(),
        ctypes.c_longlong(m),
        ctypes.c_int(n),
        *numbers,
    )

    def launch() -> tuple[Tensor, ...]:
        nvrtc.launch(kernel, blocks, threads, *arguments, cluster=cluster)
        return q_MN, scale_M

    return launch


def bind_columns(x_MN: Tensor, w_N: Tensor | None, target: str, *, eps: float = 0.0) -> Launch:
    """Persistent blocks or clusters for rows that start on 16 bytes; other, short and very long rows as `bind_cluster`.

    Errors: BadField.
    """
    import torch

    m, n = x_MN.shape
    vectors, aligned = _row_vectors(x_MN, w_N), n % (VEC16_BYTES // x_MN.element_size()) == 0
    tile = columns_tile(vectors, weighted=w_N is not None) if aligned else None
    if tile is None:
        return bind_cluster(x_MN, w_N, target, eps=eps)
    defines = {
        "ELEMENT": nvrtc.element_type(x_MN.dtype),
        "INT8": str(int(target == "int8")),
        "NORM": str(int(w_N is not None)),
    } | tile.defines(vectors)
    lanes, cluster, shared = tile.lanes, tile.cluster, tile.shared_bytes
    kernel = nvrtc.kernel(COLUMNS_SOURCE, "quantize_columns", defines, cluster=cluster, shared_bytes=shared)
    blocks = min(nvrtc.resident(kernel, lanes, cluster=cluster, shared_bytes=shared), cluster * m)
    q_MN = torch.empty_like(x_MN, dtype=torch.int8 if target == "int8" else torch.float8_e4m3fn)
    scale_M = torch.empty(m, dtype=torch.float32, device=x_MN.device)
    tile_counter = torch.zeros(2, dtype=torch.int32, device=x_MN.device)
    weight = 0 if w_N is None else w_N.data_ptr()
    numbers = (ctypes.c_float(eps), ctypes.c_float(SMALLEST), ctypes.c_float(largest(target)))
    pointers = (x_MN.data_ptr(), weight, q_MN.data_ptr(), scale_M.data_ptr())
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), *numbers, tile_counter.data_ptr())

    def launch() -> tuple[Tensor, ...]:
        assert tile_counter.numel() == 2  # the launch keeps the tensor alive
        nvrtc.launch(kernel, blocks, lanes, *arguments, cluster=cluster, shared_bytes=shared)
        return q_MN, scale_M

    return launch
