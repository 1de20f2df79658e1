"""The kernels of `w4a16_matmul` for few rows that copy by TMA (bulk.cu): what may be tuned, choice by size, launch.

Imports neither torch nor CUDA, so that a space can be listed without them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES, limits
from kernelviz.ops.w4a16_matmul.layout import GROUP, TILE, groups, require_aligned

if TYPE_CHECKING:
    from torch import Tensor

    from kernelviz.ops.catalog.variant import Launch

SOURCE = Path(__file__).parent / "bulk.cu"
KERNEL = "w4a16_bulk"
MOST_ROWS = 16
MOST_ROWS_OF_INTEGERS = 4
"""A product of integers has two rows of x, each with three digits."""
COPIERS = 2
"""Warps that copy."""
MOST_PIECES = 16
"""The loop over the pieces of a tile is written out."""
LEAST_AHEAD_BYTES = 24 * 1024
"""Of a multiprocessor: half of what hides the latency of memory by Little's law (`mma.ENOUGH_AHEAD_BYTES`)."""
SPACE = {"warps": (0, 16, 8), "depth": (0, 2, 1, 4), "stages": (0, 3, 2, 4, 5, 6, 8)}
"""What may be tuned; 0, in all of them, is the choice of `choose`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """`warps` multiply; a piece of `warps` times `depth` groups of 16 features is copied at a time, `stages` pieces ahead.
    `integers`: whether products are of integers."""

    warps: int
    depth: int
    stages: int
    integers: bool = False

    @property
    def stage_bytes(self) -> int:
        """Of a piece in shared memory."""
        return TILE * (self.warps * self.depth * GROUP // 2 + 32)

    def pieces(self, k: int) -> int:
        """That make up K.

        >>> Tile(warps=16, depth=1, stages=4).pieces(4096)
        2
        """
        return -(-groups(k) // (self.warps * self.depth))

    def columns(self, m: int) -> int:
        """Products side by side."""
        return -(-m // (2 if self.integers else 8))

    def keeps_x(self, m: int, k: int) -> bool:
        """Whether the registers of a warp hold all numbers of x that it needs: for a group and a product 20, or 11 of integers.

        A thread has 96 registers with 16 such warps, twice as many with 8.
        """
        most = (2 if self.warps > 8 else 8) if self.integers else 32 // self.warps
        return self.pieces(k) * self.depth * self.columns(m) <= most

    def x_bytes(self, m: int) -> int:
        """Of a group of x in shared memory."""
        if self.integers:
            return (8 * GROUP + 64) * self.columns(m)
        return 2 * GROUP * m + 64 * self.columns(m)

    def shared_bytes(self, m: int, k: int) -> int:
        """The stages, sums of each warp for several tiles, x unless registers hold it, and two barriers for each stage."""
        pieces = self.pieces(k)
        sums = (1 + self.stages // pieces) * self.warps * 4 * (TILE + 4) * m
        x = 0 if self.keeps_x(m, k) else pieces * self.depth * self.warps * self.x_bytes(m)
        return self.stages * (self.stage_bytes + 16) + sums + x

    def refusal(self, m: int, k: int, shared_bytes: int = MOST_SHARED_BYTES) -> str | None:
        """Why a GPU with so much shared memory for a block cannot run it, or None."""
        if (pieces := self.pieces(k)) > MOST_PIECES:
            return f"{pieces} pieces of K; the kernel writes out at most {MOST_PIECES}"
        if (size := self.shared_bytes(m, k)) > shared_bytes:
            return f"{size:,} bytes of shared memory; a block has at most {shared_bytes:,}"
        return None

    def defines(self, element: str, m: int, n: int, k: int) -> dict[str, str]:
        """The definitions that bulk.cu is compiled with."""
        numbers = {
            "INTEGERS": int(self.integers),
            "ROWS": m,
            "WARPS": self.warps,
            "DEPTH": self.depth,
            "PIECES": self.pieces(k),
            "STAGES": self.stages,
            "X_IN_REGISTERS": int(self.keeps_x(m, k)),
            "WHOLE": int(groups(k) == self.pieces(k) * self.warps * self.depth),
            "ALIGNED": int(n % 8 == 0),
            "COPY_X": 16 if k % 8 == 0 else 2,
        }
        return {"ELEMENT": element, **{name: str(number) for name, number in numbers.items()}}


def choose(m: int, k: int, shared_bytes: int = MOST_SHARED_BYTES, *, integers: bool = False) -> Tile:
    """Copies of 2 KB, of which two or three pieces are on their way while one is used; fewer and shorter ones where x needs
    shared memory. Products of integers leave enough registers for 8 warps with twice as many groups each, up to 4096 columns.

    Errors: BadField.

    >>> [astuple(choose(m, k))[:3] for m, k in ((1, 4096), (8, 4096), (1, 8192), (8, 8192), (16, 4096), (1, 14336), (1, 1024))]
    [(16, 2, 3), (16, 2, 3), (16, 2, 3), (16, 1, 4), (16, 1, 3), (16, 1, 5), (16, 1, 5)]
    >>> [astuple(choose(1, k, integers=True))[:3] for k in (4096, 8192, 14336)]
    [(8, 4, 3), (16, 2, 4), (16, 1, 5)]
    """
    sizes = [(16, 1, 5), (16, 1, 4), (16, 1, 3), (16, 1, 2)]
    if groups(k) % 32 == 0 and groups(k) <= 64:
        few = [(8, 4, 3)] if groups(k) == 32 else []
        sizes = [*few, (16, 2, 4), (16, 2, 3), *sizes] if integers else [(16, 2, 3), *sizes]
    tiles = [Tile(warps=warps, depth=depth, stages=stages, integers=integers) for warps, depth, stages in sizes]
    for tile in tiles:
        if tile.refusal(m, k, shared_bytes) is None:
            return tile
    raise BadField("size k", k, f"{tiles[-1].refusal(m, k, shared_bytes)}; choose cuda_mma")


def admits(configuration: Mapping[str, int], problem: Problem, *, integers: bool = False) -> str | None:
    """Why a configuration is not measured: it fits no GPU, copies too little ahead, or has warps without a group."""
    if not all(configuration.values()):
        return "0 is the choice by size, in all parameters or in none"
    m, n, k = (problem.sizes[axis] for axis in ("m", "n", "k"))
    if m > most_rows(integers):
        return f"more than {most_rows(integers)} rows"
    tile = Tile(**configuration, integers=integers)
    if (refusal := tile.refusal(m, k)) is not None:
        return refusal
    if (idle := tile.pieces(k) * tile.warps * tile.depth - groups(k)) >= tile.warps:
        return f"{idle} of its groups are after the end of K"
    ahead = (tile.stages - 1) * tile.stage_bytes
    if ahead < LEAST_AHEAD_BYTES and n * k >= 2**22:
        return f"a multiprocessor would copy only {ahead:,} bytes ahead, too few to hide the latency"
    return None


def admits_integers(configuration: Mapping[str, int], problem: Problem) -> str | None:
    """The same for products of integers."""
    return admits(configuration, problem, integers=True)


def most_rows(integers: bool) -> int:
    """Rows that a kernel takes.

    >>> most_rows(False), most_rows(True)
    (16, 4)
    """
    return MOST_ROWS_OF_INTEGERS if integers else MOST_ROWS


def bind(
    x_MK: Tensor, w_NGB: Tensor, s_GN: Tensor, z_GH: Tensor, parameters: Mapping[str, int], *, integers: bool = False
) -> Launch:
    """Launch of `w4a16_bulk` over contiguous tensors. `parameters`: those of SPACE.

    Errors: BadField for tensors that are not contiguous or aligned, too many rows, and rows that do not fit shared memory.
    """
    import torch

    require_contiguous(x_MK=x_MK, w_NGB=w_NGB, s_GN=s_GN, z_GH=z_GH)
    require_aligned(x_MK=x_MK, w_NGB=w_NGB, s_GN=s_GN, z_GH=z_GH)
    (m, k), n = x_MK.shape, len(w_NGB)
    if m > (most := most_rows(integers)):
        raise BadField("size m", m, f"this kernel takes at most {most} rows; choose cuda_mma or triton_fused")
    multiprocessors, shared_limit = limits(x_MK.device)
    chosen = not all(parameters.values())
    tile = choose(m, k, shared_limit, integers=integers) if chosen else Tile(**parameters, integers=integers)
    if (refusal := tile.refusal(m, k)) is not None:
        raise BadField("tile", str(astuple(tile)), refusal)
    shared_bytes = tile.shared_bytes(m, k)
    kernel = nvrtc.kernel(
        SOURCE, KERNEL, tile.defines(nvrtc.element_type(x_MK.dtype), m, n, k), shared_bytes=shared_bytes
    )
    blocks = min(multiprocessors, -(-n // TILE))
    y_MN = torch.empty((m, n), dtype=x_MK.dtype, device=x_MK.device)
    pointers = tuple(t.data_ptr() for t in (x_MK, w_NGB, s_GN, z_GH, y_MN))
    sizes = tuple(ctypes.c_int(number) for number in (n, k))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, 32 * (tile.warps + COPIERS), *pointers, *sizes, shared_bytes=shared_bytes)
        return y_MN

    return launch
