"""CUDA C++ kernel of `scaled_matmul` and `block_scaled_matmul` for Hopper's tensor cores, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.variant import Configuration, Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES
from kernelviz.ops.kernels.tensor_map import Boxes, require_pitch, tensor_maps
from kernelviz.ops.matmul.wgmma import hilbert_order

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "wgmma_fp8.cu"
ROWS, DEPTH, BOX, WARPGROUPS = 128, 128, 64, 3
ALIGNMENT_BYTES = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Fp8Options:
    """The definitions of wgmma_fp8.cu, which explains them. `group` 0 is Hilbert's order."""

    columns: int = 256
    stages: int = 4
    cluster: int = 2
    c_boxes: int = 2
    group: int = 8
    two_level: bool = False
    blocks: bool = False

    @property
    def threads(self) -> int:
        return 128 * WARPGROUPS

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory: the stages with their barriers, C, and what aligns them to 1024 bytes."""
        stage = DEPTH * (ROWS + self.columns)
        c = 2 * 2 * BOX * BOX * self.c_boxes
        return ALIGNMENT_BYTES + self.stages * (stage + 16) + c

    def defines(self) -> dict[str, str]:
        return {
            "COLUMNS": str(self.columns),
            "STAGES": str(self.stages),
            "TWO_LEVEL": str(int(self.two_level)),
            "BLOCKS": str(int(self.blocks)),
            "CLUSTER": str(self.cluster),
            "C_BOXES": str(self.c_boxes),
            "HILBERT": str(int(self.group == 0)),
            "GROUP": str(self.group or 1),
        }


def admits(configuration: Configuration, problem: Problem) -> str | None:
    """Why a configuration is not measured: its boxes of C, or its shared memory."""
    c = configuration
    options = Fp8Options(columns=c["columns"], stages=c["stages"], c_boxes=c["c_boxes"])
    if options.columns // BOX % options.c_boxes:
        return f"a tile has {options.columns // BOX} boxes of C, no multiple of {options.c_boxes}"
    if options.shared_bytes > MOST_SHARED_BYTES:
        return f"it needs {options.shared_bytes:,} bytes of shared memory, a block has at most {MOST_SHARED_BYTES:,}"
    return None


def bind(a_MK: Tensor, b_NK: Tensor, a_scale: Tensor, b_scale: Tensor, options: Fp8Options) -> Launch:
    """The scaled product of contiguous matrices (M, K) and (N, K) of e4m3, in bf16.

    Scales in fp32: one number each, or with `options.blocks` (K / 128, M) and (N / 128, K / 128), rounded up.
    Raises BadField for tensors that are not contiguous, or where rows of A, B or C are no multiples of 16 bytes.
    """
    import torch

    require_contiguous(a_MK=a_MK, b_NK=b_NK, a_scale=a_scale, b_scale=b_scale)
    (m, k), n = a_MK.shape, b_NK.shape[0]
    require_pitch("k", k, 1)
    require_pitch("n", n, 2)
    c_MN = torch.empty((m, n), dtype=torch.bfloat16, device=a_MK.device)
    kernel = nvrtc.kernel(
        SOURCE,
        "matmul_fp8",
        options.defines(),
        shared_bytes=options.shared_bytes,
        cluster=options.cluster,
        specific=True,
    )
    maps = tensor_maps([Boxes(a_MK, ROWS), Boxes(b_NK, options.columns // options.cluster), Boxes(c_MN, BOX)])
    tiles = -(-m // (ROWS * options.cluster)), -(-n // options.columns)
    order = torch.tensor(hilbert_order(*tiles) if options.group == 0 else [0], dtype=torch.uint32).to(a_MK.device)
    resident = nvrtc.resident(kernel, options.threads, cluster=options.cluster, shared_bytes=options.shared_bytes)
    blocks = min(tiles[0] * tiles[1] * options.cluster, resident)
    sizes = tuple(map(ctypes.c_int, (m, n, k)))

    def launch() -> Tensor:
        pointers = (t.data_ptr() for t in (order, a_scale, b_scale))
        nvrtc.launch(
            kernel,
            blocks,
            options.threads,
            maps,
            *pointers,
            *sizes,
            cluster=options.cluster,
            shared_bytes=options.shared_bytes,
        )
        return c_MN

    return launch
