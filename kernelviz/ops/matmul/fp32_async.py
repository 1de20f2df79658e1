"""The top of the fp32 ladder of `matmul` (fp32_async.cu): its tilings, the one that suits a problem, and its launch.

Imports neither torch nor CUDA, so that a space can be listed without them.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "fp32_async.cu"
KERNEL = "matmul_async_copy"
GROUP = 8
"""Rows of tiles that blocks which run together share."""
MOST_SHARED_BYTES = 99 * 1024
"""What a block may have on every GPU with cp.async: that of sm_86, sm_89 and sm_120, the smallest."""
LARGEST_DEPTH = 2**31 - 64
"""Elements of K that the kernel counts in 32 bits, with room for a step more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tiling:
    """bm × bn elements of C a block in steps of bk, tm × tn a thread, and how many steps shared memory holds.

    `stretch`: columns that a thread's multiply-adds pass through before they go to the next row.
    """

    bm: int = 128
    bn: int = 128
    bk: int = 16
    tm: int = 16
    tn: int = 8
    stretch: int = 8
    stages: int = 3

    @property
    def threads(self) -> int:
        return self.bm * self.bn // (self.tm * self.tn)

    @property
    def warp_tile(self) -> tuple[int, int]:
        """Rows and columns of C that a warp computes: its threads lie 8 × 4 if theirs are wide, else 4 × 8."""
        return (8 * self.tm, 4 * self.tn) if self.tm < self.tn else (4 * self.tm, 8 * self.tn)

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block; rows of the transposed tile of A are 16 bytes longer than needed."""
        return 4 * self.stages * self.bk * (self.bm + 4 + self.bn)

    @property
    def resident_blocks(self) -> int:
        """Blocks that the registers of a multiprocessor hold, as fp32_async.cu explains it."""
        most = 256 if self.tm * self.tn > 64 else 512 if self.threads > 64 else 384
        return max(1, most // self.threads)

    def tiles(self, m: int, n: int) -> int:
        return -(-m // self.bm) * -(-n // self.bn)

    def defect(self) -> str | None:
        """Why the kernel cannot be compiled so, or not for every GPU with cp.async; None if it can."""
        if self.tm * self.tn > 128:
            return f"{self.tm} × {self.tn} sums a thread leave too few registers for anything else"
        (rows, columns), threads = self.warp_tile, self.threads
        if self.bm % rows or self.bn % columns:
            return f"a tile of {self.bm} × {self.bn} cannot be divided into warps of {rows} × {columns}"
        if self.tm * self.tn * threads > 256 * 128:
            return f"{threads} threads with {self.tm * self.tn} sums each have more registers than a multiprocessor"
        if self.tn % self.stretch:
            return f"{self.tn} columns are not a multiple of {self.stretch}"
        if self.bk * self.bn // 4 % threads or self.bm * 8 % threads:
            return f"{threads} threads cannot share the copies of a step of {self.bk} evenly"
        if self.shared_bytes > MOST_SHARED_BYTES:
            return f"needs {self.shared_bytes:,} bytes of shared memory"
        return None


BY_SIZE = {
    Tiling(tm=8): 0.897,
    Tiling(bm=64): 0.919,
    Tiling(bm=64, bn=64, tm=8): 0.882,
    Tiling(bm=32, bn=64, tm=8): 0.873,
}
"""What `choose` chooses from, the largest first, with the multiply-adds' share of the instructions of the main loop (sm_90). The
first one is the fastest of all at 4096³ on an H200, although 16×8 sums a thread have a share of 0.924."""
FULL_WARPS = 6
"""Resident warps that are assumed to issue an instruction in every cycle; fewer issue in proportion."""
LATENCY_CYCLES = 2000
"""What a block is assumed to wait for its first tiles and for its last stores."""
L2_BYTES_PER_CYCLE = 32
"""What a multiprocessor is assumed to exchange with L2."""
SHORTEST_PART = 128
"""Elements of K: a part that is shorter would wait for its first tiles for longer than it multiplies."""


NEARLY = 1.03
"""Estimates that differ by less than this factor count as equal: then the larger tile and the fewer parts are chosen."""


def choose(m: int, n: int, k: int, processors: int) -> tuple[Tiling, int]:
    """The tiling and the number of parts of K with about the least estimated time.

    >>> def chosen(*sizes): return ["{0.bm}x{0.bn}".format(c) if isinstance(c, Tiling) else c for c in choose(*sizes, 132)]
    >>> chosen(4096, 4096, 4096), chosen(512, 512, 512), chosen(16, 4096, 4096)
    (['128x128', 1], ['32x64', 4], ['32x64', 16])
    """
    candidates = [
        (t, parts) for t in BY_SIZE for parts in (1, 2, 4, 8, 16, 32) if parts == 1 or k >= parts * SHORTEST_PART
    ]
    estimates = [estimated_cycles(*c, m, n, k, processors) for c in candidates]
    least = min(estimates)
    return next(c for c, cycles in zip(candidates, estimates, strict=True) if cycles <= NEARLY * least)


def estimated_cycles(tiling: Tiling, parts: int, m: int, n: int, k: int, processors: int) -> float:
    """About how long the busiest multiprocessor works: an estimate to choose by, which no measurement has confirmed.

    A multiprocessor issues at most 128 multiply-adds a cycle, fewer by the other instructions of the loop, and fewer if too few
    warps are resident. Blocks that are resident together wait for memory together. Parts of K write their sums to L2, and one
    block reads them.
    """
    tiles, elements = tiling.tiles(m, n), tiling.bm * tiling.bn
    block_cycles = elements * part_depth(tiling, k, parts) / (128 * BY_SIZE[tiling])
    full_rounds, rest = divmod(-(-tiles * parts // processors), tiling.resident_blocks)
    total = 0.0
    for blocks, rounds in ((tiling.resident_blocks, full_rounds), (rest, 1 if rest else 0)):
        rate = min(1.0, blocks * tiling.threads / 32 / FULL_WARPS)
        total += rounds * (LATENCY_CYCLES + (blocks * block_cycles / rate if blocks else 0.0))
    if parts > 1:
        written, read = (4 * elements * -(-blocks // processors) for blocks in (tiles * parts, tiles))
        total += LATENCY_CYCLES + (written + parts * read) / L2_BYTES_PER_CYCLE
    return total


def part_depth(tiling: Tiling, k: int, parts: int) -> int:
    """Elements of K of each part but the last: a multiple of bk."""
    return -(-k // (tiling.bk * parts)) * tiling.bk


def defines(tiling: Tiling, *, vectors: bool, split: bool, wide_offsets: bool) -> dict[str, str]:
    """The macros of fp32_async.cu."""
    numbers = {
        "BM": tiling.bm,
        "BN": tiling.bn,
        "BK": tiling.bk,
        "TM": tiling.tm,
        "TN": tiling.tn,
        "STRETCH": tiling.stretch,
        "STAGES": tiling.stages,
        "GROUP": GROUP,
        "VECTORS": int(vectors),
        "SPLIT": int(split),
    }
    return {
        **{name: str(value) for name, value in numbers.items()},
        "OFFSET": "unsigned long long" if wide_offsets else "unsigned",
    }


def bind(a_MK: Tensor, b_KN: Tensor, tiling: Tiling, parts: int = 1) -> Launch:
    """Launch of the kernel over contiguous matrices (M, K) and (K, N) in fp32, with K in at most `parts` parts.

    Raises BadField for matrices that are not contiguous, and for more than 2^31 - 64 elements along K.
    """
    import torch

    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    (m, k), n = a_MK.shape, b_KN.shape[1]
    if k > LARGEST_DEPTH:
        raise BadField("size k", k, f"this kernel takes at most {LARGEST_DEPTH}")
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    depth = part_depth(tiling, k, parts)
    tiles, parts = tiling.tiles(m, n), -(-k // depth)
    macros = defines(
        tiling,
        vectors=n % 4 == 0 and all(t.data_ptr() % 16 == 0 for t in (b_KN, c_MN)),
        split=parts > 1,
        wide_offsets=max(tiling.bm * k, tiling.bk * n) >= 2**32,
    )
    kernel = nvrtc.kernel(SOURCE, KERNEL, macros, shared_bytes=tiling.shared_bytes)
    # Sums of all parts, and how many blocks have stored theirs; unused, but never empty, where K is whole.
    sums = torch.empty(
        tiles * parts * tiling.bm * tiling.bn if parts > 1 else 4, dtype=torch.float32, device=a_MK.device
    )
    arrived = torch.zeros(tiles if parts > 1 else 1, dtype=torch.int32, device=a_MK.device)
    pointers = (a_MK.data_ptr(), b_KN.data_ptr(), c_MN.data_ptr())
    sizes = tuple(ctypes.c_longlong(size) for size in (m, n, k, depth))

    def launch() -> Tensor:
        # Addresses are taken here, so that the launch keeps alive the tensors that only it owns.
        own = (sums.data_ptr(), arrived.data_ptr())
        nvrtc.launch(kernel, (tiles, parts), tiling.threads, *pointers, *own, *sizes, shared_bytes=tiling.shared_bytes)
        return c_MN

    return launch


def bind_by_size(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """`bind` with the tiling and the parts of K that `choose` gives for this device. Errors: as `bind`."""
    import torch

    (m, k), n = a_MK.shape, b_KN.shape[1]
    processors = torch.cuda.get_device_properties(a_MK.device).multi_processor_count if a_MK.is_cuda else 132
    return bind(a_MK, b_KN, *choose(m, n, k, processors))
