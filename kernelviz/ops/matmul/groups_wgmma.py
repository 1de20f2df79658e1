"""CUDA C++ kernel of `grouped_matmul` for Hopper's tensor cores (wgmma, TMA), bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import PTX_NAMES
from kernelviz.ops.kernels.tensor_map import Boxes, require_pitch, tensor_maps

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "groups_wgmma.cu"
ROWS, DEPTH, BOX, W_BOX, THREADS = 128, 64, 64, 128, 384
ALIGNMENT_BYTES = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The definitions of groups_wgmma.cu, which explains them.

    `fetch_bytes`: what the L2 fetches at least of a weight, 128 or 256.
    """

    columns: int = 256
    stages: int = 4
    cluster: int = 1
    c_boxes: int = 0
    halves: int = 0
    band: int = 8
    fetch_bytes: int = 256

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory: the stages, y, the barriers, and what aligns them to 1024 bytes."""
        stage = 2 * DEPTH * (ROWS + self.columns)
        boxes = 2 * BOX * BOX * (ROWS // BOX) * self.c_boxes
        return ALIGNMENT_BYTES + self.stages * (stage + 16) + boxes

    def defines(self, element: str) -> dict[str, str]:
        """The macros, for elements of this C++ type."""
        return {
            "COLUMNS": str(self.columns),
            "STAGES": str(self.stages),
            "CLUSTER": str(self.cluster),
            "C_BOXES": str(self.c_boxes),
            "HALVES": str(self.halves),
            "BAND": str(self.band),
            "ELEMENT": element,
            "ELEMENT_PTX": f'"{PTX_NAMES[element]}"',
        }


def bind(x_TK: Tensor, w_GNK: Tensor, offsets_G: Tensor, options: Options) -> Launch:
    """The products of contiguous x (T, K) and w (G, N, K) of bf16 or fp16, with int32 offsets (G,).

    Raises BadField for tensors that are not contiguous, or whose rows are no multiples of 16 bytes.
    """
    import torch

    require_contiguous(x_TK=x_TK, w_GNK=w_GNK, offsets_G=offsets_G)
    (rows, k), (groups, n) = x_TK.shape, w_GNK.shape[:2]
    require_pitch("k", k, x_TK.element_size())
    require_pitch("n", n, x_TK.element_size())
    y_TN = torch.empty((rows, n), dtype=x_TK.dtype, device=x_TK.device)
    kernel = nvrtc.kernel(
        SOURCE,
        "grouped_wgmma",
        options.defines(nvrtc.element_type(x_TK.dtype)),
        shared_bytes=options.shared_bytes,
        cluster=options.cluster,
        specific=True,
    )
    maps = tensor_maps(
        [
            Boxes(x_TK, ROWS // options.cluster),
            Boxes(w_GNK.view(groups * n, k), W_BOX, fetch_bytes=options.fetch_bytes),
            Boxes(y_TN, BOX),
        ]
    )
    # The offsets are not read here: at most so many tiles of rows, and as many blocks as are resident.
    most_row_tiles = rows // ROWS + min(groups, rows)
    clusters = most_row_tiles * -(-n // (options.columns * options.cluster))
    resident = nvrtc.resident(kernel, THREADS, cluster=options.cluster, shared_bytes=options.shared_bytes)
    blocks = min(clusters * options.cluster * (1 + options.halves), resident)
    sizes = tuple(map(ctypes.c_int, (groups, rows, n, k)))

    def launch() -> Tensor:
        pointers = (offsets_G.data_ptr(), y_TN.data_ptr())
        nvrtc.launch(
            kernel, blocks, THREADS, maps, *pointers, *sizes, cluster=options.cluster, shared_bytes=options.shared_bytes
        )
        return y_TN

    return launch
