"""The kernel of `w4a16_matmul` for at most 64 rows on tensor cores (mma.cu): what may be tuned, the choice by size, its launch.

Imports neither torch nor CUDA, so that a space can be listed without them.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES, MULTIPROCESSORS, limits
from kernelviz.ops.w4a16_matmul.layout import GROUP, TILE, groups, require_aligned, shuffled

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "mma.cu"
KERNEL = "w4a16_mma"
MOST_ROWS = 64
BLOCK_BYTES, STATIC_BYTES = 1024, 128
"""Shared memory that the system takes of each block (CUDA C++ Programming Guide, "Compute Capability 8.x"), and what is before
dynamic shared memory: the flag of `is_last_to_arrive`, up to a multiple of 128 bytes."""
REGISTERS = 65536
"""Of a multiprocessor, on every GPU from sm_80 on."""
ENOUGH_AHEAD_BYTES = 36 * 1024
"""Of a multiprocessor. Little's law gives 44 KB: 4.8 TB/s (H200) times 1.2 µs over 132 multiprocessors. Measured at 28672 × 4096,
bf16, 1 row: 37 KB 21.6 µs, 55 KB 21.7, 92 KB 22.2."""
MEMORY_BYTES_PER_CLOCK, SHARED_BYTES_PER_CLOCK = 18, 128
"""What a multiprocessor gets from memory (4.2 TB/s over 132 at 1.75 GHz) and from shared memory."""
BARRIER_CLOCKS, PART_CLOCKS = 150, 800
"""Estimates of what it costs for each tile to add the sums of warps, and those of parts: a fence, an atomic and loads from L2."""
LOGIC = 1.03
"""With a single tile of a warp, which needs 1.16 instructions of the ALU a weight; two need 1.06 (measured: 4 % faster)."""
WORST_ESTIMATE = 1.4
"""Times the estimate of the best tile: what `admits` refuses because it is unlikely to be faster."""
SPACE = {
    "tiles": (0, 1, 2, 4),
    "deep": (0, 8, 16, 4, 2, 1),
    "across": (0, 1, 2, 4, 8),
    "stages": (0, 4, 3, 5, 6, 8),
    "blocks": (0, 2, 1, 3, 4),
    "parts": (0, 1, 2, 3, 4, 6, 8),
}
"""What may be tuned; 0, in all of them, is the choice of `choose`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """A warp computes `tiles` times 16 output features, one group at a time, with `stages` of a group in shared memory.

    A block has `across` sets of `deep` warps that share K. `blocks` of them run on a multiprocessor. K is divided into
    `parts`, of which a block has one.
    """

    tiles: int
    deep: int
    across: int
    stages: int
    blocks: int
    parts: int

    @property
    def warps(self) -> int:
        return self.deep * self.across

    @property
    def features(self) -> int:
        """Output features that a block computes at a time."""
        return TILE * self.tiles * self.across

    @property
    def stage_bytes(self) -> int:
        """Of a warp: weights, scales and zero points of a group."""
        return 1024 * self.tiles + 128 * -(-10 * self.tiles // 32)

    def part_groups(self, k: int) -> int:
        """Groups of each part of K but the last, which may be shorter."""
        return -(-groups(k) // self.parts)

    def shared_bytes(self, m: int, k: int) -> int:
        """Of a block: x of its part of K, the sums of x, the stages, and two buffers for the sums of warps."""
        columns, depth = -(-m // 8), self.part_groups(k)
        sums_of_x = -(-depth * 64 * columns // 128) * 128 if columns <= 2 else 0
        of_warps = 0 if self.deep == 1 else 2 * self.warps * 4 * (TILE * self.tiles + 4) * m
        return depth * m * GROUP * 2 + sums_of_x + self.warps * self.stages * self.stage_bytes + of_warps

    def registers(self, m: int) -> int:
        """About how many a thread needs: 82 and 104 with 1 row and one or two tiles, 164 with 64 rows and two (sm_90)."""
        columns = -(-m // 8)
        if columns <= 2:
            return 56 + 16 * self.tiles + 12 * self.tiles * columns
        return 56 + 24 * self.tiles + 4 * self.tiles * columns

    def refusal(self, m: int, k: int, shared_bytes: int = MOST_SHARED_BYTES) -> str | None:
        """Why a GPU with so much shared memory for a block cannot run it, or None."""
        if self.warps < 2 or self.warps > 16:
            return f"{self.warps} warps: 2 to 16 of a block are enough to copy and to multiply"
        if (size := self.shared_bytes(m, k) + STATIC_BYTES) > shared_bytes:
            return f"{size:,} bytes of shared memory; a block has at most {shared_bytes:,}"
        if self.blocks * (size + BLOCK_BYTES) > shared_bytes + BLOCK_BYTES:
            return f"{self.blocks} blocks of {size:,} bytes of shared memory do not fit a multiprocessor"
        most = min(255, REGISTERS // (32 * self.warps * self.blocks) // 8 * 8)
        if (registers := self.registers(m)) > most:
            return f"about {registers} registers a thread; {self.blocks} blocks of {self.warps} warps have {most}"
        return None

    def defines(self, element: str, m: int, n: int, *, shuffle: bool, copy_x: int) -> dict[str, str]:
        """The definitions that mma.cu is compiled with. `copy_x`: bytes of an access to x."""
        numbers = {
            "ROWS": m,
            "TILES": self.tiles,
            "DEEP": self.deep,
            "ACROSS": self.across,
            "STAGES": self.stages,
            "BLOCKS": self.blocks,
            "ALIGNED": int(n % 8 == 0),
            "SHUFFLED": int(shuffle),
            "COPY_X": copy_x,
        }
        return {"ELEMENT": element, **{name: str(number) for name, number in numbers.items()}}

    def grid(self, n: int, k: int, multiprocessors: int) -> tuple[int, int, int]:
        """Blocks, parts of K that are not empty, and tiles of features.

        >>> Tile(tiles=1, deep=8, across=1, stages=6, blocks=2, parts=1).grid(28672, 4096, 132)
        (264, 1, 1792)
        """
        parts = -(-groups(k) // self.part_groups(k))
        tiles = -(-n // self.features)
        return parts * max(1, min(tiles, self.blocks * multiprocessors // parts)), parts, tiles

    def slowdown(self, m: int, n: int, k: int, multiprocessors: int) -> float:
        """How many times as long as reading the weights it is estimated to take.

        It counts blocks that wait for the last ones, too few bytes ahead, sums of warps and of parts, and reads of shared memory.
        """
        blocks, parts, tiles = self.grid(n, k, multiprocessors)
        depth, columns = self.part_groups(k), -(-m // 8)
        idle = -(-tiles * parts // blocks) * self.blocks * multiprocessors / (tiles * parts)
        ahead = self.blocks * min(self.warps, depth * self.across) * (self.stages - 1) * self.stage_bytes
        few = max(1.0, ENOUGH_AHEAD_BYTES / ahead)
        uneven = 1 + (-(-depth // self.deep) * self.deep / depth - 1) / 10
        tile_clocks = self.features * depth * GROUP / 2 / MEMORY_BYTES_PER_CLOCK
        barriers = 1 + (BARRIER_CLOCKS + (parts > 1) * PART_CLOCKS) / (self.blocks * tile_clocks)
        sums = 1 + (parts > 1) * 8 * parts * m / k  # written and read as fp32, mostly in L2: half of that counts
        shared = (2 + columns * min(1.0, m / 8) * 2 / self.tiles) * MEMORY_BYTES_PER_CLOCK / SHARED_BYTES_PER_CLOCK
        logic = LOGIC if self.tiles == 1 and columns == 1 else 1.0
        return idle * few * uneven * barriers * sums * logic * max(1.0, shared)


def candidates() -> Iterator[Tile]:
    """The tiles that `choose` compares, what is simplest first."""
    for parts in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64):
        for blocks, deep, across in (
            (2, 8, 1),
            (1, 16, 1),
            (2, 4, 2),
            (1, 8, 1),
            (1, 8, 2),
            (1, 4, 2),
            (1, 2, 4),
            (1, 1, 8),
        ):
            for tiles in (1, 2, 4):
                for stages in (3, 4, 5, 6):
                    yield Tile(tiles=tiles, deep=deep, across=across, stages=stages, blocks=blocks, parts=parts)


def choose(m: int, n: int, k: int, multiprocessors: int, shared_bytes: int) -> Tile:
    """The tile that is estimated to be fastest. `shared_bytes`: of a block, about those of a multiprocessor. Errors: BadField.

    >>> [astuple(choose(m, 28672, 4096, 132, 232448)) for m in (1, 8, 16)]
    [(2, 16, 1, 3, 1, 1), (2, 16, 1, 3, 1, 1), (1, 8, 2, 3, 1, 1)]
    """
    fitting = [t for t in candidates() if t.parts <= groups(k) and t.refusal(m, k, shared_bytes) is None]
    if not fitting:
        raise BadField("size k", k, f"a part of {m} rows of x does not fit shared memory of {shared_bytes:,} bytes")
    return min(fitting, key=lambda t: round(t.slowdown(m, n, k, multiprocessors), 2))


def admits(configuration: Mapping[str, int], problem: Problem) -> str | None:
    """Why a configuration is not measured: it fits no GPU, or it loads too little ahead."""
    if not all(configuration.values()):
        return "0 is the choice by size, in all parameters or in none"
    m, n, k = (problem.sizes[axis] for axis in ("m", "n", "k"))
    if m > MOST_ROWS:
        return f"more than {MOST_ROWS} rows"
    tile = Tile(**configuration)
    if tile.parts > groups(k):
        return f"{groups(k)} groups cannot be divided into {tile.parts} parts"
    if (refusal := tile.refusal(m, k)) is not None:
        return refusal
    if tile.deep > tile.part_groups(k):
        return f"{tile.deep} warps share {tile.part_groups(k)} groups"
    ahead = tile.blocks * tile.warps * (tile.stages - 1) * tile.stage_bytes
    if 2 * ahead < ENOUGH_AHEAD_BYTES and n * k >= 2**22:
        return f"a multiprocessor would copy only {ahead:,} bytes ahead, too few to hide the latency"
    estimate, best = tile.slowdown(m, n, k, MULTIPROCESSORS), _least_slowdown(m, n, k)
    if n * k >= 2**22 and estimate > WORST_ESTIMATE * best:
        return f"estimated to take {estimate / best:.1f} times as long as the best one: idle blocks, or sums of parts"
    return None


@functools.cache
def _least_slowdown(m: int, n: int, k: int) -> float:
    """The estimate for the tile that `choose` takes on an H200."""
    return choose(m, n, k, MULTIPROCESSORS, MOST_SHARED_BYTES).slowdown(m, n, k, MULTIPROCESSORS)


def bind(inputs: tuple[Tensor, Tensor, Tensor, Tensor], parameters: Mapping[str, int], *, shuffle: bool) -> Launch:
    """Launch of `w4a16_mma` over contiguous tensors. `parameters`: those of SPACE. `shuffle`: the launch is staged; its untimed
    forward pass reorders the weights.

    Errors: BadField for tensors that are not contiguous or aligned, more than 64 rows, and a tile that no GPU runs; DoesNotLaunch
    for one that this GPU has too little shared memory for.
    """
    import torch

    x_MK, w_NGB, s_GN, z_GH = inputs
    require_contiguous(x_MK=x_MK, w_NGB=w_NGB, s_GN=s_GN, z_GH=z_GH)
    require_aligned(x_MK=x_MK, w_NGB=w_NGB, s_GN=s_GN, z_GH=z_GH)
    (m, k), n = x_MK.shape, len(w_NGB)
    if m > MOST_ROWS:
        raise BadField("size m", m, f"this kernel takes at most {MOST_ROWS} rows; choose triton_fused")
    multiprocessors, shared_limit = limits(x_MK.device)
    tile = Tile(**parameters) if all(parameters.values()) else choose(m, n, k, multiprocessors, shared_limit)
    if (refusal := tile.refusal(m, k)) is not None:
        raise BadField("tile", str(astuple(tile)), refusal)
    shared_bytes = tile.shared_bytes(m, k)
    defines = tile.defines(nvrtc.element_type(x_MK.dtype), m, n, shuffle=shuffle, copy_x=16 if k % 8 == 0 else 2)
    kernel = nvrtc.kernel(SOURCE, KERNEL, defines, shared_bytes=shared_bytes)
    blocks, parts, tiles = tile.grid(n, k, multiprocessors)
    y_MN = torch.empty((m, n), dtype=x_MK.dtype, device=x_MK.device)
    weights = torch.empty_like(shuffled(w_NGB)) if shuffle else w_NGB
    # Sums of all parts, and how many blocks have stored theirs; unused, but never empty, where K is whole.
    sums = torch.empty(tiles * parts * m * tile.features if parts > 1 else 1, dtype=torch.float32, device=x_MK.device)
    arrived = torch.zeros(tiles if parts > 1 else 1, dtype=torch.int32, device=x_MK.device)
    sizes = tuple(ctypes.c_int(number) for number in (n, k, tile.part_groups(k), parts))

    def launch() -> Tensor:
        # Addresses are taken here, so that the launch keeps alive the tensors that only it owns.
        pointers = tuple(t.data_ptr() for t in (x_MK, weights, s_GN, z_GH, y_MN, sums, arrived))
        nvrtc.launch(kernel, blocks, 32 * tile.warps, *pointers, *sizes, shared_bytes=shared_bytes)
        return y_MN

    return Staged(lambda: weights.copy_(shuffled(w_NGB)), launch) if shuffle else launch
