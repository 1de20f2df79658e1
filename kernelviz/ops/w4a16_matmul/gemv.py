"""The kernel of `w4a16_matmul` for at most 8 rows with ordinary multiply-adds (gemv.cu): what may be tuned, choice, launch.

Imports neither torch nor CUDA, so that a space can be listed without them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES, MULTIPROCESSORS, limits
from kernelviz.ops.w4a16_matmul.layout import require_aligned
from kernelviz.ops.w4a16_matmul.mma import REGISTERS

if TYPE_CHECKING:
    from torch import Tensor

    from kernelviz.ops.catalog.variant import Launch

SOURCE = Path(__file__).parent / "gemv.cu"
KERNEL = "w4a16_gemv"
MOST_ROWS = 8
PASS = 1024
"""Input features that a warp multiplies at a time."""
SPACE = {"features": (0, 4, 2), "warps": (0, 28, 24, 20, 19, 16, 14, 12, 8, 32)}
"""What may be tuned; 0, in both, is the choice of `choose`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """A warp computes `features` neighbouring output features at a time; a multiprocessor has one block of `warps`."""

    features: int
    warps: int

    def registers(self, m: int) -> int:
        """About how many a thread needs: for two batches of weights, numbers in fp32, and sums.

        The compiler can do with 71 for one row and 4 features, and with 168 for 8 rows (sm_90). This gives 70 and 172.
        """
        return 8 + 12 * self.features + (3 * self.features + 2) * m + 4 * (m > 4)

    def shared_bytes(self, m: int, k: int) -> int:
        """x as fp32, and two sums for each 32 numbers of it."""
        return m * -(-k // PASS) * (PASS * 4 + 256)

    def refusal(self, m: int, k: int, shared_bytes: int = MOST_SHARED_BYTES) -> str | None:
        """Why a GPU with so much shared memory for a block cannot run it, or None."""
        if (size := self.shared_bytes(m, k)) > shared_bytes:
            return f"{m} rows of x as fp32 are {size:,} bytes of shared memory; a block has at most {shared_bytes:,}"
        most = min(255, REGISTERS // (32 * self.warps) // 8 * 8)
        if (registers := self.registers(m)) > most:
            return f"about {registers} registers a thread; {self.warps} warps have {most}"
        return None

    def defines(self, element: str, m: int, n: int) -> dict[str, str]:
        """The definitions that gemv.cu is compiled with."""
        numbers = {"ROWS": m, "FEATURES": self.features, "WARPS": self.warps, "ALIGNED": int(n % 8 == 0)}
        return {"ELEMENT": element, **{name: str(number) for name, number in numbers.items()}}

    def blocks(self, n: int, multiprocessors: int) -> int:
        """Of the launch: at most one for each multiprocessor."""
        return min(multiprocessors, -(-n // self.features))

    def busy(self, n: int, multiprocessors: int) -> float:
        """The share of warps that have work, on average: all of them do as many sets of features as the one with most."""
        sets, warps = -(-n // self.features), self.blocks(n, multiprocessors) * self.warps
        return sets / (-(-sets // warps) * warps)


def choose(m: int, n: int, multiprocessors: int) -> Tile:
    """The tile with most of its warps at work, and with most warps if two are within 2 %.

    >>> [(t.features, t.warps) for t in (choose(1, n, 132) for n in (28672, 8192, 4096))]
    [(4, 28), (4, 16), (2, 16)]
    """
    tiles = [Tile(features=f, warps=w) for w in (28, 24, 20, 19, 16, 14, 12, 8) for f in (4, 2)]
    fitting = [t for t in tiles if t.refusal(m, 1) is None]
    return max(fitting, key=lambda t: round(50 * t.busy(n, multiprocessors)))


def admits(configuration: Mapping[str, int], problem: Problem) -> str | None:
    """Why a configuration is not measured: it fits no GPU, or most of its warps have no work."""
    if not all(configuration.values()):
        return "0 is the choice by size, in both parameters or in none"
    m, n, k = (problem.sizes[axis] for axis in ("m", "n", "k"))
    if m > MOST_ROWS:
        return f"more than {MOST_ROWS} rows"
    tile = Tile(**configuration)
    if (refusal := tile.refusal(m, k)) is not None:
        return refusal
    if n >= 2**12 and (busy := tile.busy(n, MULTIPROCESSORS)) < 0.6:
        return f"only {busy:.0%} of the warps have work on average"
    return None


def bind(x_MK: Tensor, w_NGB: Tensor, s_GN: Tensor, z_GH: Tensor, parameters: Mapping[str, int]) -> Launch:
    """Launch of `w4a16_gemv` over contiguous tensors. `parameters`: those of SPACE.

    Errors: BadField for tensors that are not contiguous or aligned, more than 8 rows, and rows that do not fit shared memory.
    """
    import torch

    require_contiguous(x_MK=x_MK, w_NGB=w_NGB, s_GN=s_GN, z_GH=z_GH)
    require_aligned(x_MK=x_MK, w_NGB=w_NGB, s_GN=s_GN, z_GH=z_GH)
    (m, k), n = x_MK.shape, len(w_NGB)
    if m > MOST_ROWS:
        raise BadField("size m", m, f"this kernel takes at most {MOST_ROWS} rows; choose cuda_mma or triton_fused")
    multiprocessors, shared_limit = limits(x_MK.device)
    tile = Tile(**parameters) if all(parameters.values()) else choose(m, n, multiprocessors)
    if (refusal := tile.refusal(m, k, shared_limit)) is not None:
        raise BadField("size k", k, refusal)
    shared_bytes = tile.shared_bytes(m, k)
    kernel = nvrtc.kernel(SOURCE, KERNEL, tile.defines(nvrtc.element_type(x_MK.dtype), m, n), shared_bytes=shared_bytes)
    blocks = tile.blocks(n, multiprocessors)
    y_MN = torch.empty((m, n), dtype=x_MK.dtype, device=x_MK.device)
    pointers = tuple(t.data_ptr() for t in (x_MK, w_NGB, s_GN, z_GH, y_MN))
    sizes = tuple(ctypes.c_int(number) for number in (n, k, -(-k // PASS)))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, 32 * tile.warps, *pointers, *sizes, shared_bytes=shared_bytes)
        return y_MN

    return launch
