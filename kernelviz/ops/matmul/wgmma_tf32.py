"""CUDA C++ kernel of `matmul` in tf32 for Hopper's tensor cores, bound to tensors."""

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

SOURCE = Path(__file__).parent / "wgmma_tf32.cu"
DEPTH = 32
ALIGNMENT_BYTES = 1024
MOST_SUMS_OF_THREE = 64
"""With three warpgroups beside the one that copies, a thread has 160 registers, too few for 128 sums, fragments and addresses."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tf32Options:
    """The definitions of wgmma_tf32.cu, which explains them. `group` 0 is Hilbert's order."""

    rows: int = 256
    consumers: int = 2
    stages: int = 4
    cluster: int = 2
    c_boxes: int = 2
    group: int = 0

    @property
    def columns(self) -> int:
        """Of a tile of C."""
        return 64 * self.consumers

    @property
    def threads(self) -> int:
        return 128 * (self.consumers + 1)

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory: the stages with their barriers, C, and what aligns them to 1024 bytes."""
        c = 4 * self.consumers * self.c_boxes * 2 * DEPTH * DEPTH
        return ALIGNMENT_BYTES + self.stages * (4 * DEPTH * (self.rows + self.columns) + 16) + c

    def defines(self) -> dict[str, str]:
        return {
            "ROWS": str(self.rows),
            "CONSUMERS": str(self.consumers),
            "STAGES": str(self.stages),
            "CLUSTER": str(self.cluster),
            "C_BOXES": str(self.c_boxes),
            "HILBERT": str(int(self.group == 0)),
            "GROUP": str(self.group or 1),
        }


SPACE = {
    "rows": (256, 128),
    "consumers": (2, 3),
    "stages": (4, 3, 5, 6),
    "cluster": (2, 1),
    "c_boxes": (2, 1, 0),
    "group": (0, 4, 8, 16),
}


def admits(configuration: Configuration, problem: Problem) -> str | None:
    """Why a configuration is not measured: its registers, or its shared memory."""
    options = Tf32Options(**configuration)
    if options.consumers == 3 and options.rows // 2 > MOST_SUMS_OF_THREE:
        return f"a thread would hold {options.rows // 2} elements of the product, at most {MOST_SUMS_OF_THREE} fit"
    if options.shared_bytes > MOST_SHARED_BYTES:
        return f"it needs {options.shared_bytes:,} bytes of shared memory, a block has at most {MOST_SHARED_BYTES:,}"
    return None


def bind(a_MK: Tensor, b_KN: Tensor, options: Tf32Options) -> Launch:
    """The product of contiguous matrices (M, K) and (K, N) of fp32, multiplied in tf32 and added up in fp32.

    Raises BadField for matrices that are not contiguous, or whose rows are no multiples of 16 bytes.
    """
    import torch

    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    (m, k), n = a_MK.shape, b_KN.shape[1]
    require_pitch("k", k, a_MK.element_size())
    require_pitch("n", n, b_KN.element_size())
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    kernel = nvrtc.kernel(
        SOURCE,
        "matmul_tf32",
        options.defines(),
        shared_bytes=options.shared_bytes,
        cluster=options.cluster,
        specific=True,
    )
    maps = tensor_maps([Boxes(a_MK, options.rows // options.cluster), Boxes(b_KN, DEPTH), Boxes(c_MN, DEPTH)])
    tiles = -(-m // options.rows), -(-n // (options.columns * options.cluster))
    order = torch.tensor(hilbert_order(*tiles) if options.group == 0 else [0], dtype=torch.uint32).to(a_MK.device)
    resident = nvrtc.resident(kernel, options.threads, cluster=options.cluster, shared_bytes=options.shared_bytes)
    blocks = min(tiles[0] * tiles[1] * options.cluster, resident)
    sizes = tuple(map(ctypes.c_int, (m, n, k)))

    def launch() -> Tensor:
        pointers = (order.data_ptr(), c_MN.data_ptr())
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
