"""The kernel of `matmul` for at most 8 rows with ordinary multiply-adds (gemv.cu): what may be tuned, the choice by size, and its
launch. Imports neither torch nor CUDA, so that a space can be listed without them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import MULTIPROCESSORS
from kernelviz.ops.matmul.mma import access_bytes

if TYPE_CHECKING:
    from torch import Tensor

    from kernelviz.ops.catalog.variant import Launch

SOURCE = Path(__file__).parent / "gemv.cu"
KERNEL = "matmul_gemv"
MOST_ROWS = 8
SHORTEST_PART = 256
"""Rows of B: a shorter part would wait for memory longer than it reads."""
MOST_STATIC_SHARED_BYTES = 48 * 1024
REGISTERS = 65536
"""Of a multiprocessor, on every GPU from sm_80 on."""
MOST_REGISTERS = 255
LEAST_REGISTERS = 56
"""What the kernel needs with few rows and loads (sm_90)."""
LEAST_AHEAD_BYTES = 32 * 1024
"""Of a multiprocessor. Little's law: 4.8 TB/s (H200) times 0.9 µs, the latency of memory under load, over 132 SMs."""
SPACE = {
    "columns": (0, 64, 32, 128, 256),
    "warps": (0, 16, 8, 32, 4),
    "depth": (0, 8, 4, 16),
    "parts": (0, 1, 2, 3, 4, 6, 8),
}
"""What may be tuned; 0, in all of them, is the choice of `choose`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """A block computes `columns` columns of C: each of its `warps` reads `depth` neighbouring rows of B at a time; K is divided
    into `parts`, of which a block takes one."""

    columns: int
    warps: int
    depth: int
    parts: int

    def registers(self, m: int) -> int:
        """About how many a thread needs: for sums, for what it loads of B and of A, and for A in fp32.

        With a depth of 8 the compiler uses 64 for one row and 242 for 8, and spills a few of 128 for 4. This gives 64, 232, 136.
        """
        return max(LEAST_REGISTERS, 8 * m + 4 * self.depth + 2 * m * self.depth + 8)

    def refusal(self, m: int) -> str | None:
        """Why no GPU can run it for `m` rows, or None."""
        if (size := 4 * self.warps * self.columns) > MOST_STATIC_SHARED_BYTES:
            return f"{size:,} bytes of sums of warps; a block has {MOST_STATIC_SHARED_BYTES:,} without asking for more"
        most = min(MOST_REGISTERS, REGISTERS // (32 * self.warps))
        if (registers := self.registers(m)) > most:
            return f"about {registers} registers a thread; {self.warps} warps have {most}"
        return None

    def defines(self, element: str, m: int, accesses: tuple[int, int]) -> dict[str, str]:
        """The definitions that gemv.cu is compiled with. `accesses`: bytes of an access to A and B. Errors: BadField."""
        if (refusal := self.refusal(m)) is not None:
            raise BadField("tile", str(astuple(self)), refusal)
        numbers = {
            "ROWS": m,
            "LANES": self.columns // 8,
            "WARPS": self.warps,
            "DEPTH": self.depth,
            "COPY_A": accesses[0],
            "COPY_B": accesses[1],
        }
        return {"ELEMENT": element, **{name: str(number) for name, number in numbers.items()}}

    def grid(self, n: int, k: int) -> tuple[int, int, int]:
        """Tiles of C, parts of K that are not empty, and rows of B in each of them but the last.

        >>> Tile(columns=64, warps=16, depth=8, parts=4).grid(14336, 4096)
        (224, 4, 1024)
        """
        part_depth = -(-k // (16 * self.parts)) * 16  # rows of A of a part begin at multiples of 16 bytes
        return -(-n // self.columns), -(-k // part_depth), part_depth


def choose(m: int, n: int, k: int, multiprocessors: int) -> Tile:
    """The widest tile of which every multiprocessor gets one, else parts of K; warps so that two blocks fill a multiprocessor.

    >>> [astuple(choose(1, n, 4096, 132)) for n in (28672, 14336, 6144, 1024)]
    [(128, 16, 8, 1), (64, 16, 8, 1), (32, 16, 8, 1), (64, 16, 8, 16)]
    """
    # Whole depths need no second sum. Tiles of 32 columns read 64 bytes of a row, so they are for what has no wider tiles.
    columns = next((c for c in (128, 64, 32) if 10 * -(-n // c) >= 9 * multiprocessors), 64)
    tiles = -(-n // columns)
    few = 10 * tiles < 9 * multiprocessors
    parts = max(1, min(2 * multiprocessors // tiles, k // SHORTEST_PART)) if few else 1
    candidates = [Tile(columns=columns, warps=w, depth=d, parts=parts) for w, d in ((16, 8), (8, 8), (8, 4), (4, 4))]
    return next((c for c in candidates if c.refusal(m) is None), candidates[-1])


def admits(configuration: Mapping[str, int], problem: Problem) -> str | None:
    """Why a configuration is not measured: it fits no GPU, or it reads too little at a time."""
    if not all(configuration.values()):
        return "0 is the choice by size, in all parameters or in none"
    m, n, k = (problem.sizes[axis] for axis in ("m", "n", "k"))
    if m > MOST_ROWS:
        return f"more than {MOST_ROWS} rows"
    tile = Tile(**configuration)
    if (refusal := tile.refusal(m)) is not None:
        return refusal
    if tile.parts > 1 and k < tile.parts * SHORTEST_PART:
        return f"parts of K would have fewer than {SHORTEST_PART} rows of B"
    tiles = -(-n // tile.columns)
    if tile.columns > 32 and tile.columns >= 2 * n:
        return f"half of {tile.columns} columns are outside of the matrix"
    blocks = -(-tiles * tile.parts // MULTIPROCESSORS)
    resident = max(1, REGISTERS // (32 * tile.warps * tile.registers(m)))
    if tile.parts > 1 and blocks > 2 * resident:
        return f"{tiles:,} tiles are enough without {tile.parts} parts of K"
    ahead = min(blocks, resident) * 32 * tile.warps * tile.depth * 16
    if ahead < LEAST_AHEAD_BYTES and n * k >= 2**22:
        return f"a multiprocessor would read only {ahead:,} bytes at a time, too few to hide the latency"
    return None


def bind(a_MK: Tensor, b_KN: Tensor, parameters: Mapping[str, int]) -> Launch:
    """Launch of `matmul_gemv` over contiguous matrices of 2-byte elements. `parameters`: those of SPACE.

    Errors: BadField for matrices that are not contiguous, more than 8 rows, and a tile that no GPU runs.
    """
    import torch

    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    (m, k), n, size = a_MK.shape, b_KN.shape[1], a_MK.element_size()
    if m > MOST_ROWS:
        raise BadField("size m", m, f"this kernel takes at most {MOST_ROWS} rows; choose cuda_skinny or cuda_mma")
    tile = Tile(**parameters) if all(parameters.values()) else choose(m, n, k, multiprocessors(a_MK.device))
    accesses = access_bytes(a_MK.data_ptr(), k * size, size), access_bytes(b_KN.data_ptr(), n * size, size)
    kernel = nvrtc.kernel(SOURCE, KERNEL, tile.defines(nvrtc.element_type(a_MK.dtype), m, accesses))
    tiles, parts, part_depth = tile.grid(n, k)
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    # Sums of all parts, and how many blocks have stored theirs; unused, but never empty, where K is whole.
    sums = torch.empty(tiles * parts * m * tile.columns if parts > 1 else 1, dtype=torch.float32, device=a_MK.device)
    arrived = torch.zeros(tiles if parts > 1 else 1, dtype=torch.int32, device=a_MK.device)
    pointers = (a_MK.data_ptr(), b_KN.data_ptr(), c_MN.data_ptr())
    sizes = (*(ctypes.c_longlong(number) for number in (n, k, part_depth)), ctypes.c_int(parts))

    def launch() -> Tensor:
        # Addresses are taken here, so that the launch keeps alive the tensors that only it owns.
        own = (sums.data_ptr(), arrived.data_ptr())
        nvrtc.launch(kernel, tiles * parts, 32 * tile.warps, *pointers, *own, *sizes)
        return c_MN

    return launch


def multiprocessors(device: Any) -> int:
    """Of a GPU; without one, of an H200."""
    import torch

    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else MULTIPROCESSORS
