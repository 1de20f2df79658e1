"""The kernel of `matmul` for at most 64 rows on tensor cores (skinny.cu): what may be tuned, the choice by size, and its launch.

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
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES, MULTIPROCESSORS, limits
from kernelviz.ops.matmul.gemv import LEAST_AHEAD_BYTES, SHORTEST_PART
from kernelviz.ops.matmul.mma import access_bytes

if TYPE_CHECKING:
    from torch import Tensor

    from kernelviz.ops.catalog.variant import Launch

SOURCE = Path(__file__).parent / "skinny.cu"
KERNEL = "matmul_skinny"
MOST_ROWS = 64
BLOCK_BYTES = 1024
"""Shared memory that the system takes of each block (CUDA C++ Programming Guide, "Compute Capability 8.x")."""
MOST_REGISTERS = 255
OTHER_REGISTERS = 40
"""Registers for addresses, sizes and counters."""
MOST_STAGES = 8
SPACE = {
    "columns": (0, 64, 128, 256),
    "depth": (0, 64, 128, 32),
    "stages": (0, 4, 5, 6, 8, 3),
    "across": (0, 4, 2, 8),
    "deep": (0, 1, 2, 4),
    "parts": (0, 1, 2, 3, 4, 6, 8),
}
"""What may be tuned; 0, in all of them, is the choice of `choose`."""


def padded_rows(m: int) -> int:
    """Rows that the tensor cores compute: 8, or a multiple of 16.

    >>> [padded_rows(m) for m in (1, 8, 9, 17, 64)]
    [8, 8, 16, 32, 64]
    """
    return 8 if m <= 8 else -(-m // 16) * 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """A block computes `columns` columns of C in steps of `depth` rows of B, of which `stages` are in shared memory.

    It has `across` warps along the columns times `deep` warps along the depth. K is divided into `parts`, of which it takes one.
    """

    columns: int
    depth: int
    stages: int
    across: int
    deep: int
    parts: int

    @property
    def warps(self) -> int:
        return self.across * self.deep

    def stage_bytes(self, rows: int) -> int:
        """Of B and of A in one stage."""
        return 2 * self.depth * (self.columns + rows)

    def shared_bytes(self, rows: int) -> int:
        """The stages, or the sums that follow them, if those are larger."""
        return max(self.stages * self.stage_bytes(rows), 4 * self.deep * rows * (self.columns + 4))

    def refusal(self, rows: int) -> str | None:
        """Why no GPU can run it for so many padded rows, or None."""
        of_warp = self.columns // self.across
        if of_warp < 16:
            return f"{self.across} warps have fewer than 16 of {self.columns} columns each"
        if self.depth < 16 * self.deep:
            return f"{self.deep} warps have less than one step of a depth of {self.depth} each"
        if (size := self.shared_bytes(rows)) > MOST_SHARED_BYTES:
            return f"{size:,} bytes of shared memory; a block has at most {MOST_SHARED_BYTES:,}"
        registers = of_warp * rows // 32 + of_warp // 4 + (rows + 15) // 16 * 4 + OTHER_REGISTERS
        if registers > MOST_REGISTERS:
            return f"about {registers} registers a thread; there are {MOST_REGISTERS}"
        return None

    def defines(self, element: str, rows: int, accesses: tuple[int, int, int]) -> dict[str, str]:
        """The definitions that skinny.cu is compiled with. `accesses`: bytes of an access to A, B and C. Errors: BadField."""
        if (refusal := self.refusal(rows)) is not None:
            raise BadField("tile", str(astuple(self)), refusal)
        numbers = {
            "ROWS": rows,
            "COLUMNS": self.columns,
            "DEPTH": self.depth,
            "STAGES": self.stages,
            "WARPS_ACROSS": self.across,
            "WARPS_DEEP": self.deep,
            "COPY_A": accesses[0],
            "COPY_B": accesses[1],
            "STORE": min(accesses[2], 8),
        }
        return {"ELEMENT": element, **{name: str(number) for name, number in numbers.items()}}

    def grid(self, n: int, k: int) -> tuple[int, int, int]:
        """Tiles of C, parts of K that are not empty, and rows of B in each of them but the last.

        >>> Tile(columns=128, depth=64, stages=4, across=4, deep=2, parts=8).grid(4096, 14336)
        (32, 8, 1792)
        """
        part_depth = -(-k // (self.depth * self.parts)) * self.depth
        return -(-n // self.columns), -(-k // part_depth), part_depth


def choose(m: int, n: int, k: int, processors: int, shared_bytes: int) -> Tile:
    """One or two blocks for each multiprocessor, by parts of K if there are too few columns, and as many stages as fit.

    Wide tiles, because every block reads all of A. `shared_bytes`: of a block, about those of a multiprocessor.

    >>> [astuple(choose(m, 14336, 4096, 132, 232448)) for m in (1, 16, 64)]
    [(64, 128, 6, 4, 1, 1), (64, 128, 5, 4, 1, 1), (128, 128, 4, 4, 2, 1)]
    >>> [astuple(choose(64, n, k, 132, 232448))[2:] for n, k in ((6144, 4096), (4096, 14336))]
    [(4, 4, 2, 2), (4, 4, 2, 4)]
    """
    rows = padded_rows(m)
    few = rows <= 16
    widths = (128, 64) if few else (256, 128)
    # Where shared memory is small, four stages of the widest tile do not fit it.
    fitting = [c for c in widths if 4 * 2 * 64 * (c + rows) <= shared_bytes]
    columns = next((c for c in fitting if 2 * (n // c) >= 3 * processors), widths[-1])
    tiles = -(-n // columns)
    enough = 5 * tiles >= 4 * processors
    # Sums of parts of many rows are large, so these have one block for each multiprocessor.
    parts = 1 if enough else max(1, min((2 if few else 1) * processors // tiles, k // SHORTEST_PART))
    # 64 rows, n 14336, k 4096 on an H200: 30.9 µs with a depth of 128, 34.0 with 64 and 8 stages.
    deep = columns == 64 or (rows > 32 and 4 * 2 * 128 * (columns + rows) <= shared_bytes)
    depth = 128 if deep else 64
    resident = min(2, -(-tiles * parts // processors))
    stage_bytes = 2 * depth * (columns + rows)
    stages = (shared_bytes // resident - BLOCK_BYTES) // stage_bytes
    if stages < 3:  # one block has all of the memory
        stages = shared_bytes // stage_bytes
    stages = max(2, min(MOST_STAGES, stages))
    # Each warp reads all rows of A from shared memory. Of many rows that is more than of B, unless few warps lie side by side.
    grids = [(4, 1)] if few else [(2, 4), (4, 2)] if rows > 32 and resident == 1 and not deep else [(4, 2)]
    tilings = [Tile(columns=columns, depth=depth, stages=stages, across=a, deep=d, parts=parts) for a, d in grids]
    return next((t for t in tilings if t.refusal(rows) is None and t.shared_bytes(rows) <= shared_bytes), tilings[-1])


def admits(configuration: Mapping[str, int], problem: Problem) -> str | None:
    """Why a configuration is not measured: it fits no GPU, or it loads too little ahead."""
    if not all(configuration.values()):
        return "0 is the choice by size, in all parameters or in none"
    m, n, k = (problem.sizes[axis] for axis in ("m", "n", "k"))
    if m > MOST_ROWS:
        return f"more than {MOST_ROWS} rows"
    tile, rows = Tile(**configuration), padded_rows(m)
    if (refusal := tile.refusal(rows)) is not None:
        return refusal
    if tile.warps < 4 or tile.warps > 16:
        return f"{tile.warps} warps: 4 to 16 are enough to copy and to multiply"
    if tile.columns > 64 and tile.columns >= 2 * n:
        return f"half of {tile.columns} columns are outside of the matrix"
    if tile.columns < 2 * m:
        return f"tiles of {tile.columns} columns would read A more than half as often as B"
    if tile.parts > 1 and k < tile.parts * SHORTEST_PART:
        return f"parts of K would have fewer than {SHORTEST_PART} rows of B"
    tiles = -(-n // tile.columns)
    blocks = -(-tiles * tile.parts // MULTIPROCESSORS)
    resident = max(1, MOST_SHARED_BYTES // (tile.shared_bytes(rows) + BLOCK_BYTES))
    if tile.parts > 1 and blocks > resident:
        return f"{tiles:,} tiles are enough without {tile.parts} parts of K"
    ahead = min(blocks, resident) * (tile.stages - 1) * 2 * tile.depth * tile.columns
    if ahead < LEAST_AHEAD_BYTES and n * k >= 2**22:
        return f"a multiprocessor would load only {ahead:,} bytes ahead, too few to hide the latency"
    return None


def bind(a_MK: Tensor, b_KN: Tensor, parameters: Mapping[str, int]) -> Launch:
    """Launch of `matmul_skinny` over contiguous matrices of 2-byte elements. `parameters`: those of SPACE.

    Errors: BadField for matrices that are not contiguous, more than 64 rows, and a tile that no GPU runs; DoesNotLaunch for one
    that this GPU has too little shared memory for.
    """
    import torch

    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    (m, k), n, size = a_MK.shape, b_KN.shape[1], a_MK.element_size()
    if m > MOST_ROWS:
        raise BadField("size m", m, f"this kernel takes at most {MOST_ROWS} rows; choose cuda_mma")
    rows = padded_rows(m)
    tile = Tile(**parameters) if all(parameters.values()) else choose(m, n, k, *limits(a_MK.device))
    accesses = (
        access_bytes(a_MK.data_ptr(), k * size, size),
        access_bytes(b_KN.data_ptr(), n * size, size),
        access_bytes(0, n * size, size),
    )
    shared_bytes = tile.shared_bytes(rows)
    defines = tile.defines(nvrtc.element_type(a_MK.dtype), rows, accesses)
    kernel = nvrtc.kernel(SOURCE, KERNEL, defines, shared_bytes=shared_bytes)
    tiles, parts, part_depth = tile.grid(n, k)
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    # Sums of all parts, and how many blocks have stored theirs; unused, but never empty, where K is whole.
    sums = torch.empty(tiles * parts * rows * tile.columns if parts > 1 else 4, dtype=torch.float32, device=a_MK.device)
    arrived = torch.zeros(tiles if parts > 1 else 1, dtype=torch.int32, device=a_MK.device)
    pointers = (a_MK.data_ptr(), b_KN.data_ptr(), c_MN.data_ptr())
    sizes = (*(ctypes.c_longlong(number) for number in (m, n, k, part_depth)), ctypes.c_int(parts))

    def launch() -> Tensor:
        # Addresses are taken here, so that the launch keeps alive the tensors that only it owns.
        own = (sums.data_ptr(), arrived.data_ptr())
        nvrtc.launch(kernel, tiles * parts, 32 * tile.warps, *pointers, *own, *sizes, shared_bytes=shared_bytes)
        return c_MN

    return launch
