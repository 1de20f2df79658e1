"""CUDA C++ kernels of `matmul` on the tensor cores of sm_80 and later (WMMA and mma.sync), bound to tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES, limits

if TYPE_CHECKING:
    from torch import Tensor

    from kernelviz.ops.catalog.variant import Launch

MMA_SOURCE = Path(__file__).parent / "mma.cu"
WMMA_SOURCE = Path(__file__).parent / "wmma.cu"
WMMA_TILE, WMMA_THREADS = 128, 256
MOST_REGISTERS = 255
OTHER_REGISTERS = 40
"""Registers for addresses, sizes and counters: sm_80 to sm_120 use 232 to 248 for 128 sums and 64 of fragments."""
SPACE = {
    "rows": (0, 128, 256, 64, 32, 16),
    "columns": (0, 128, 256, 64),
    "depth": (0, 64, 32, 16, 128),
    "stages": (0, 3, 4, 2, 5),
    "warps": (0, 4, 8),
    "group": (0, 8, 4, 16),
}
"""What may be tuned; 0, in all of them, is the choice of `tile_for`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """What a block of `matmul_mma` computes, and how: `rows` × `columns` of C in steps of `depth`, with `stages` such steps in
    shared memory and `warps` warps; `group` rows of tiles are computed together."""

    rows: int
    columns: int
    depth: int
    stages: int
    warps: int
    group: int = 8

    def blocks(self, m: int, n: int) -> int:
        """Tiles of C, one for each block."""
        return -(-m // self.rows) * -(-n // self.columns)

    def shared_bytes(self, itemsize_bytes: int) -> int:
        """The stages; or C, where it goes through shared memory and is larger."""
        stages = self.stages * (self.rows + self.columns) * self.depth * itemsize_bytes
        return stages if itemsize_bytes == 4 else max(stages, self.rows * self.columns * itemsize_bytes)

    def grid_of_warps(self, itemsize_bytes: int) -> tuple[int, int] | None:
        """Warps along rows and columns, such that they read least from shared memory; None if no grid has whole fragments.

        >>> Tile(rows=128, columns=256, depth=64, stages=3, warps=8).grid_of_warps(2)
        (2, 4)
        """
        columns = 32 if itemsize_bytes == 4 else 16
        grids = [
            (down, self.warps // down)
            for down in (1, 2, 4, 8, 16)
            if down <= self.warps
            and self.rows % (16 * down) == 0
            and self.columns % (columns * (self.warps // down)) == 0
        ]
        return min(grids, key=lambda grid: self.rows / grid[0] + self.columns / grid[1], default=None)

    def refusal(self, itemsize_bytes: int) -> str | None:
        """Why no GPU can run this tile for elements of that size, or None."""
        grid = self.grid_of_warps(itemsize_bytes)
        if grid is None:
            return f"{self.warps} warps do not divide a tile of {self.rows} × {self.columns} into whole fragments"
        if self.depth * itemsize_bytes % 64:
            return f"a depth of {self.depth} is not an even number of tensor core steps"
        if self.rows * self.columns * itemsize_bytes // 16 % (32 * self.warps):
            return f"{self.warps} warps are more than {self.rows} × {self.columns} elements need"
        if (size := self.shared_bytes(itemsize_bytes)) > MOST_SHARED_BYTES:
            return f"{size:,} bytes of shared memory; a block has at most {MOST_SHARED_BYTES:,}"
        tall, wide = self.rows // grid[0] // 16, self.columns // grid[1] // 8
        registers = 4 * tall * wide + 2 * (4 * tall + 2 * wide) + OTHER_REGISTERS
        if registers > MOST_REGISTERS:
            return f"about {registers} registers a thread; there are {MOST_REGISTERS}"
        return None

    def defines(self, element: str, itemsize_bytes: int, accesses: tuple[int, int, int]) -> dict[str, str]:
        """The definitions that mma.cu is compiled with. `accesses`: bytes of an access to A, B and C. Errors: BadField."""
        if (refusal := self.refusal(itemsize_bytes)) is not None:
            raise BadField("tile", str(astuple(self)), refusal)
        down, across = self.grid_of_warps(itemsize_bytes) or (1, 1)
        numbers = {
            "ROWS": self.rows,
            "COLUMNS": self.columns,
            "DEPTH": self.depth,
            "STAGES": self.stages,
            "WARP_ROWS": down,
            "WARP_COLUMNS": across,
            "GROUP": self.group,
            **dict(zip(("COPY_A", "COPY_B", "STORE"), accesses, strict=True)),
        }
        return {"ELEMENT": element, **{name: str(number) for name, number in numbers.items()}}


# Largest first. The first fills an SM of Hopper or B200 alone (4096³ on an H200: 272 µs, 290 µs by two blocks of the next). Two
# blocks of the second fit an SM of Hopper and B200, of the third A100, of the fourth RTX 4090 and 5090. The
# last two are for few rows.
HALF = (
    Tile(rows=128, columns=256, depth=64, stages=3, warps=8),
    Tile(rows=128, columns=128, depth=64, stages=3, warps=4),
    Tile(rows=128, columns=128, depth=32, stages=4, warps=4),
    Tile(rows=128, columns=128, depth=32, stages=3, warps=4),
    Tile(rows=64, columns=128, depth=32, stages=4, warps=4),
    Tile(rows=64, columns=64, depth=64, stages=3, warps=4),
    Tile(rows=32, columns=64, depth=128, stages=3, warps=4),
    Tile(rows=16, columns=64, depth=128, stages=4, warps=4),
)
TF32 = (
    Tile(rows=128, columns=128, depth=32, stages=3, warps=4),
    Tile(rows=128, columns=128, depth=16, stages=4, warps=4),
    Tile(rows=128, columns=128, depth=16, stages=3, warps=4),
    Tile(rows=64, columns=128, depth=16, stages=4, warps=4),
    Tile(rows=64, columns=64, depth=32, stages=3, warps=4),
    Tile(rows=32, columns=128, depth=32, stages=4, warps=4),
    Tile(rows=16, columns=128, depth=32, stages=4, warps=4),
)


def tile_for(m: int, n: int, itemsize_bytes: int, multiprocessors: int, shared_bytes: int) -> Tile:
    """The largest tile that gives every multiprocessor one, else the smallest; a flat one for at most 32 rows.

    `shared_bytes`: of a block. The tile of two blocks must fit a multiprocessor, whose shared memory is hardly larger; of tiles
    with more than four warps only one.

    >>> [tile_for(m, 4096, 2, 132, 232448).rows for m in (16, 32, 512, 4096)]
    [16, 32, 64, 128]
    >>> [tile_for(4096, 4096, 2, 128, shared).depth for shared in (232448, 101376)]
    [64, 32]
    """
    *tiles, flat, flattest = HALF if itemsize_bytes == 2 else TF32
    if m <= 32:
        return flattest if m <= 16 else flat
    fitting = [t for t in tiles if (1 if t.warps > 4 else 2) * t.shared_bytes(itemsize_bytes) <= shared_bytes] or tiles[
        -1:
    ]
    return next((t for t in fitting if t.blocks(m, n) >= multiprocessors), fitting[-1])


def admits(configuration: Mapping[str, int], problem: Problem) -> str | None:
    """Why a configuration is not measured: it fits no GPU, or a smaller one does the same work."""
    if not all(configuration.values()):
        return "0 is the choice by size, in all parameters or in none"
    tile = Tile(**configuration)
    if (refusal := tile.refusal(dtype_named(problem.dtype).itemsize_bytes)) is not None:
        return refusal
    m = problem.sizes["m"]
    for name, size, least in (("m", tile.rows, 16), ("n", tile.columns, 64), ("k", tile.depth, 32)):
        if size > least and size >= 2 * problem.sizes[name]:
            return f"half of {size} along {name} is outside of the matrix"
    if tile.rows < 64 <= m:
        return f"tiles of {tile.rows} rows are for fewer than 64 rows"
    if tile.group > 4 and tile.group >= 2 * -(-m // tile.rows):
        return f"there are fewer than {tile.group} rows of tiles"
    return None


def access_bytes(address: int, pitch_bytes: int, itemsize_bytes: int) -> int:
    """The widest access that is aligned in every row: 16, 8 or 4 bytes, or one element.

    >>> access_bytes(4096, 4096, 2), access_bytes(4096, 4098, 2), access_bytes(4100, 4096, 2), access_bytes(4096, 4100, 4)
    (16, 2, 4, 4)
    """
    return next((b for b in (16, 8, 4) if address % b == 0 and pitch_bytes % b == 0), itemsize_bytes)


def bind_mma(a_MK: Tensor, b_KN: Tensor, parameters: Mapping[str, int]) -> Launch:
    """Launch of `matmul_mma`; fp32 is multiplied as tf32. `parameters`: those of SPACE. Errors: BadField for matrices that are
    not contiguous and for a tile that no GPU runs; DoesNotLaunch for one that this GPU has too little shared memory for."""
    a_bytes, b_bytes, c_MN, sizes = _operands(a_MK, b_KN)
    size, (m, n) = a_MK.element_size(), c_MN.shape
    tile = Tile(**parameters) if all(parameters.values()) else tile_for(m, n, size, *limits(a_MK.device))
    store_bytes = access_bytes(0, n * size, size)
    defines = tile.defines(nvrtc.element_type(a_MK.dtype), size, (a_bytes, b_bytes, store_bytes))
    shared_bytes, blocks = tile.shared_bytes(size), tile.blocks(m, n)
    kernel = nvrtc.kernel(MMA_SOURCE, "matmul_mma", defines, shared_bytes=shared_bytes)
    pointers = (a_MK.data_ptr(), b_KN.data_ptr(), c_MN.data_ptr())

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, 32 * tile.warps, *pointers, *sizes, shared_bytes=shared_bytes)
        return c_MN

    return launch


def bind_wmma(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """Launch of `matmul_wmma`; fp32 is multiplied as tf32. Errors: BadField for matrices that are not contiguous."""
    a_bytes, b_bytes, c_MN, sizes = _operands(a_MK, b_KN)
    defines = {"ELEMENT": nvrtc.element_type(a_MK.dtype), "COPY_A": str(a_bytes), "COPY_B": str(b_bytes)}
    kernel = nvrtc.kernel(WMMA_SOURCE, "matmul_wmma", defines)
    blocks = -(-c_MN.shape[0] // WMMA_TILE) * -(-c_MN.shape[1] // WMMA_TILE)
    pointers = (a_MK.data_ptr(), b_KN.data_ptr(), c_MN.data_ptr())

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, WMMA_THREADS, *pointers, *sizes)
        return c_MN

    return launch


def _operands(a_MK: Tensor, b_KN: Tensor) -> tuple[int, int, Tensor, tuple[ctypes.c_longlong, ...]]:
    """Bytes of an access to A and to B, the output, and M, N and K as arguments of a kernel."""
    import torch

    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    (m, k), n, size = a_MK.shape, b_KN.shape[1], a_MK.element_size()
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    a_bytes, b_bytes = access_bytes(a_MK.data_ptr(), k * size, size), access_bytes(b_KN.data_ptr(), n * size, size)
    return a_bytes, b_bytes, c_MN, (ctypes.c_longlong(m), ctypes.c_longlong(n), ctypes.c_longlong(k))
