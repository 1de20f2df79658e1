"""Triton kernel of `transpose` and `reshape_elementwise` that is compiled for the sizes of the matrix."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous

TILES = ((2**15, 16, 16), (2**17, 32, 16), (None, 32, 32))
"""Elements of a matrix, up to which a tile has so many rows and columns, if both are enough. The last is the tile of
torch.compile; H200, there: 70 rows of 91,963 fp16 take 10.4 us, and 13.0 in larger tiles. With relu, 139
rows of 37 fp32 take 1.06 us in the smallest tiles, and 1.14 in those of torch.compile; of 41 rows of 42 the code of 16 × 16 has
66 instructions, 21 of them before the first load, and that of 32 × 32 138 and 34."""
FEWEST_EVEN = 16
"""Rows and columns from which matrices with an even number of both have the last tile at any size, because a thread loads and
stores several elements of it at once. H200, us in smaller tiles and in torch.compile: 32 rows of 512 bf16 1.33 and 1.05, 1026 of
38 1.24 and 1.14, with relu 16 of 4096 fp32 1.32 and 1.24; but 4 of 2048 bf16 1.04 and 1.09, with relu 84 of 617 1.22 and 1.34."""
WARPS, FEWEST_ELEMENTS = 4, 128
"""Of a program, and of a tile with so many; a smaller one has one warp."""
LONG_ELEMENTS, LONG_ROWS, LONG_COLUMNS, LONG_WARPS = 2**21, range(9, 33), 128, 8
"""A larger matrix of so few rows has tiles of so many columns and warps, which read 256 bytes and more of a row at once: as
torch.compile found on an H200. 16 rows of 6,974,056 bf16 with relu took 108.9 us in tiles of 64 columns, and 104.1 there."""
FEW_ELEMENTS = 2**16
"""Of a matrix that is loaded without a policy of eviction, which takes some instructions: an estimate."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """Rows and columns of a tile, its warps, and how many tiles there are down and across."""

    rows: int
    columns: int
    down: int
    across: int

    @property
    def warps(self) -> int:
        elements = self.rows * self.columns
        return LONG_WARPS if elements >= LONG_COLUMNS * LONG_WARPS * 2 else WARPS if elements >= FEWEST_ELEMENTS else 1


def tiles_of(m: int, n: int) -> Tiles:
    """Tiles by the size of the matrix, of more rows or columns where it has fewer of the other.

    >>> tiles_of(70, 91963), tiles_of(15, 4187213)
    (Tiles(rows=32, columns=32, down=3, across=2874), Tiles(rows=16, columns=128, down=1, across=32713))
    >>> tiles_of(19, 14), tiles_of(2, 2876), tiles_of(1333295, 7).rows
    (Tiles(rows=16, columns=16, down=2, across=1), Tiles(rows=2, columns=128, down=1, across=23), 128)
    >>> tiles_of(32, 512), tiles_of(16, 4096)
    (Tiles(rows=32, columns=32, down=1, across=16), Tiles(rows=16, columns=64, down=1, across=64))
    """
    most = triton.next_power_of_2(m), triton.next_power_of_2(n)
    if m * n > LONG_ELEMENTS and m in LONG_ROWS:
        return Tiles(most[0], LONG_COLUMNS, 1, triton.cdiv(n, LONG_COLUMNS))
    wide = m % 2 == n % 2 == 0 and min(m, n) >= FEWEST_EVEN
    tiles = TILES[-1:] if wide else TILES
    height, width = next((rows, columns) for limit, rows, columns in tiles if limit is None or m * n <= limit)
    rows, columns = min(height, most[0]), min(width, most[1])
    rows = min(most[0], max(rows, height * width // columns))
    columns = min(most[1], max(columns, height * width // rows))
    return Tiles(rows, columns, triton.cdiv(m, rows), triton.cdiv(n, columns))


@triton.jit
def known_size_kernel(
    x_ptr,
    y_ptr,
    M: tl.constexpr,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DOWN: tl.constexpr,
    ACROSS: tl.constexpr,
    RELU: tl.constexpr,
    WIDE: tl.constexpr,
    POLICY: tl.constexpr,
):
    program = tl.program_id(0)
    if WIDE:
        program = program.to(tl.int64)
    # Along the shorter side first, so that neighbouring programs read and write neighbouring memory.
    if DOWN <= ACROSS:
        row, column = program % DOWN, program // DOWN
    else:
        row, column = program // ACROSS, program % ACROSS
    rows = (row * ROWS + tl.arange(0, ROWS))[None, :]
    columns = (column * COLUMNS + tl.arange(0, COLUMNS))[:, None]
    inside = (rows < M) & (columns < N)
    # Loads have neighbouring threads along a row of x and stores along a row of y: the compiler exchanges the tile between them.
    x = tl.load(x_ptr + (rows * N + columns), mask=inside, eviction_policy=POLICY)
    if RELU:
        x = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL).to(x.dtype)
    tl.store(y_ptr + (columns * M + rows), x, mask=inside)


def bind_known_size(x_MN: torch.Tensor, *, relu: bool = False) -> Launch:
    """xᵀ, or max(xᵀ, 0) with `relu`. Raises BadField for a matrix that is not contiguous."""
    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    y_NM = torch.empty((n, m), dtype=x_MN.dtype, device=x_MN.device)
    tiles = tiles_of(m, n)
    policy = "" if m * n <= FEW_ELEMENTS else "evict_last"
    sizes = {"M": m, "N": n, "ROWS": tiles.rows, "COLUMNS": tiles.columns, "DOWN": tiles.down, "ACROSS": tiles.across}
    # Indices of the last tile, which may pass the matrix, in 32 bits.
    wide = (tiles.down * tiles.rows) * (tiles.across * tiles.columns) >= 2**31

    def launch() -> torch.Tensor:
        known_size_kernel[(tiles.down * tiles.across,)](
            x_MN, y_NM, **sizes, RELU=relu, WIDE=wide, POLICY=policy, num_warps=tiles.warps
        )
        return y_NM

    return launch
