"""CUDA C++ kernel of `scaled_matmul` and `block_scaled_matmul` by mma.sync, for every GPU from sm_89 on, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.variant import Configuration, Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.matmul.tiles import too_much_shared

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "mma_fp8.cu"
COLUMNS, DEPTH = 128, 128
WARP_COLUMNS, ROWS_OF_WARP = 4, 64
COPY_BYTES = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class MmaFp8Options:
    """The definitions of mma_fp8.cu, which explains them."""

    rows: int = 128
    stages: int = 3
    group: int = 8
    two_level: bool = False
    blocks: bool = False

    @property
    def threads(self) -> int:
        return 32 * WARP_COLUMNS * (self.rows // ROWS_OF_WARP)

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory. That of the default is within the 99 KiB of a block on sm_89 and sm_120."""
        return self.stages * (self.rows + COLUMNS) * DEPTH

    def tiles(self, m: int, n: int) -> int:
        return -(-m // self.rows) * -(-n // COLUMNS)

    def defines(self) -> dict[str, str]:
        return {
            "ROWS": str(self.rows),
            "COLUMNS": str(COLUMNS),
            "STAGES": str(self.stages),
            "WARP_ROWS": str(self.rows // ROWS_OF_WARP),
            "WARP_COLUMNS": str(WARP_COLUMNS),
            "GROUP": str(self.group),
            "TWO_LEVEL": str(int(self.two_level)),
            "BLOCKS": str(int(self.blocks)),
        }


SPACE = {"rows": (128, 64), "stages": (3, 2, 4, 6), "group": (8, 4, 16)}


def admits(configuration: Configuration, problem: Problem) -> str | None:
    """Why a configuration is not measured: its shared memory."""
    options = MmaFp8Options(rows=configuration["rows"], stages=configuration["stages"])
    return too_much_shared(options.shared_bytes)


def bind(a_MK: Tensor, b_NK: Tensor, a_scale: Tensor, b_scale: Tensor, options: MmaFp8Options) -> Launch:
    """The scaled product of contiguous matrices (M, K) and (N, K) of e4m3, in bf16.

    Scales in fp32: one number each, or with `options.blocks` (K / 128, M) and (N / 128, K / 128), rounded up.
    Raises BadField for tensors that are not contiguous, or where rows of A and B are no multiples of 16 bytes.
    """
    import torch

    require_contiguous(a_MK=a_MK, b_NK=b_NK, a_scale=a_scale, b_scale=b_scale)
    (m, k), n = a_MK.shape, b_NK.shape[0]
    if k % COPY_BYTES:
        raise BadField(
            "size k", k, f"cp.async copies {COPY_BYTES} bytes here, so rows must be a multiple of {COPY_BYTES} elements"
        )
    c_MN = torch.empty((m, n), dtype=torch.bfloat16, device=a_MK.device)
    kernel = nvrtc.kernel(SOURCE, "matmul_mma_fp8", options.defines(), shared_bytes=options.shared_bytes)
    blocks = options.tiles(m, n)
    sizes = tuple(map(ctypes.c_int, (m, n, k)))

    def launch() -> Tensor:
        pointers = (t.data_ptr() for t in (a_MK, b_NK, a_scale, b_scale, c_MN))
        nvrtc.launch(kernel, blocks, options.threads, *pointers, *sizes, shared_bytes=options.shared_bytes)
        return c_MN

    return launch
