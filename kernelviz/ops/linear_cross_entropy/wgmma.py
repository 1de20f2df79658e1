"""CUDA C++ kernel of `linear_cross_entropy` for Hopper's tensor cores (wgmma, TMA), bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import PTX_NAMES
from kernelviz.ops.kernels.tensor_map import Boxes, require_pitch, tensor_maps
from kernelviz.ops.linear_cross_entropy.vocabulary_chunks import bind_products, scratch

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "wgmma.cu"
COMBINE_SOURCE = Path(__file__).parent / "combine.cu"
DEPTH, BOX, WARPGROUP, CONSUMERS = 64, 64, 128, 2
ALIGNMENT_BYTES = 1024
COMBINED_ROWS, COMBINING_THREADS = 32, 256


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The definitions of wgmma.cu, which explains them."""

    columns: int = 256
    stages: int = 3
    cluster: int = 1
    group: int = 16
    gradient: int = 0
    c_boxes: int = 2

    @property
    def rows(self) -> int:
        """Of a tile of logits."""
        return 64 * CONSUMERS

    @property
    def threads(self) -> int:
        return WARPGROUP * (CONSUMERS + 1)

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory: the stages, dz, the barriers, and what aligns all to 1024 bytes."""
        boxes = 2 * BOX * BOX * CONSUMERS * self.c_boxes if self.gradient else 0
        return ALIGNMENT_BYTES + self.stages * (2 * DEPTH * (self.rows + self.columns) + 16) + boxes

    def defines(self, element: str) -> dict[str, str]:
        """The macros, for elements of this C++ type."""
        return {
            "COLUMNS": str(self.columns),
            "STAGES": str(self.stages),
            "CLUSTER": str(self.cluster),
            "GROUP": str(self.group),
            "GRADIENT": str(self.gradient),
            "C_BOXES": str(self.c_boxes),
            "ELEMENT": element,
            "ELEMENT_PTX": f'"{PTX_NAMES[element]}"',
        }


def bind_loss(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, options: Options, whole_M: Tensor | None = None) -> Launch:
    """Losses (M,) of contiguous x (M, H) and w (V, H) of bf16 or fp16, and labels (M,); ln Σ exp in fp32 to `whole_M` if given.

    Raises BadField for tensors that are not contiguous, or where rows of x and w are no multiples of 16 bytes.
    """
    import torch

    require_contiguous(x_MH=x_MH, w_VH=w_VH, labels_M=labels_M)
    (m, h), v = x_MH.shape, w_VH.shape[0]
    require_pitch("h", h, x_MH.element_size())
    element = nvrtc.element_type(x_MH.dtype)
    kernel = _kernel(options, element)
    combine = nvrtc.kernel(COMBINE_SOURCE, "combine_parts", {"ELEMENT": element})
    maps = tensor_maps([Boxes(x_MH, options.rows), Boxes(w_VH, options.columns // options.cluster)])
    tiles = -(-m // (options.rows * options.cluster)), -(-v // options.columns)
    # Of each tile and row: maximum and Σ exp(z - maximum).
    parts_TM2 = torch.empty((tiles[1], m, 2), dtype=torch.float32, device=x_MH.device)
    chosen_M = torch.empty(m, dtype=torch.float32, device=x_MH.device)
    loss_M = torch.empty(m, dtype=x_MH.dtype, device=x_MH.device)
    blocks = min(_resident_clusters(kernel, options), tiles[0] * tiles[1]) * options.cluster
    sizes = tuple(map(ctypes.c_int, (m, v, h)))
    tensors = labels_M, parts_TM2, chosen_M
    whole = 0 if whole_M is None else whole_M.data_ptr()

    def launch() -> Tensor:
        pointers = (t.data_ptr() for t in tensors)
        cluster, shared_bytes = options.cluster, options.shared_bytes
        nvrtc.launch(
            kernel, blocks, options.threads, maps, *pointers, *sizes, cluster=cluster, shared_bytes=shared_bytes
        )
        results = (parts_TM2.data_ptr(), chosen_M.data_ptr(), loss_M.data_ptr(), whole)
        nvrtc.launch(combine, -(-m // COMBINED_ROWS), COMBINING_THREADS, *results, sizes[0], ctypes.c_int(tiles[1]))
        return loss_M

    return launch


def bind_backward(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Staged:
    """Gradients of x and w of bf16 or fp16, from the ln Σ exp that a forward pass wrote. Errors: as `bind_loss`."""
    import torch

    require_contiguous(dloss_M=dloss_M)
    m, h = x_MH.shape
    whole_M = torch.empty(m, dtype=torch.float32, device=x_MH.device)
    forward = bind_loss(x_MH, w_VH, labels_M, Options(), whole_M)
    options = Options(gradient=1)
    kernel = _kernel(options, nvrtc.element_type(x_MH.dtype))
    dz_MC = scratch(x_MH, w_VH.shape[0])
    maps = tensor_maps([Boxes(x_MH, options.rows), Boxes(w_VH, options.columns), Boxes(dz_MC, BOX)])
    resident = _resident_clusters(kernel, options)

    def write(first: int, columns: int) -> None:
        blocks = min(resident, -(-m // options.rows) * -(-columns // options.columns))
        pointers = (labels_M.data_ptr(), whole_M.data_ptr(), dloss_M.data_ptr())
        sizes = map(ctypes.c_int, (first, m, columns, h))
        nvrtc.launch(kernel, blocks, options.threads, maps, *pointers, *sizes, shared_bytes=options.shared_bytes)

    return Staged(forward, bind_products(x_MH, w_VH, dz_MC, write))


def _kernel(options: Options, element: str) -> Any:
    return nvrtc.kernel(
        SOURCE,
        "linear_cross_entropy",
        options.defines(element),
        shared_bytes=options.shared_bytes,
        cluster=options.cluster,
        specific=True,
    )


def _resident_clusters(kernel: Any, options: Options) -> int:
    resident = nvrtc.resident(kernel, options.threads, cluster=options.cluster, shared_bytes=options.shared_bytes)
    return max(1, resident // options.cluster)
