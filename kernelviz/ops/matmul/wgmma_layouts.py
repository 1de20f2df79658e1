"""CUDA C++ kernel of matrix products with operands of either layout (wgmma, TMA), bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import limits
from kernelviz.ops.kernels.tensor_map import require_pitch, tensor_maps
from kernelviz.ops.matmul import wgmma_choice
from kernelviz.ops.matmul.wgmma import Options, hilbert_order

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "wgmma_layouts.cu"
Tile = tuple[int, int, int, int]
"""Rows, columns, blocks of a cluster and stages, as in `wgmma_choice.SPACE`; zeros for the choice by size."""
LADDER_ONLY = ("SPECIALISED", "PERSISTENT", "FUNCTION", "SPLIT_K")
"""Definitions of wgmma.cu that this kernel does not have: its blocks are always persistent, and its warps specialised. It neither
applies a function nor divides K."""


def defines(options: Options, element: str, *, a_k_contiguous: bool, b_k_contiguous: bool) -> dict[str, str]:
    """The definitions of wgmma_layouts.cu for elements of this C++ type."""
    macros = options.defines(element, b_k_contiguous=b_k_contiguous)
    macros = {name: value for name, value in macros.items() if name not in LADDER_ONLY}
    return {**macros, "A_K_CONTIGUOUS": str(int(a_k_contiguous))}


def bind_tn(a_KM: Tensor, b_KN: Tensor, tile: Tile, *, names: tuple[str, str] = ("m", "n")) -> Launch:
    """aᵀ b of contiguous matrices (K, M) and (K, N) of bf16 or fp16.

    `names`: the axes of the problem that are M and N here, for messages. Raises BadField for matrices that are not contiguous,
    or whose rows are no multiples of 16 bytes.
    """
    require_contiguous(a_KM=a_KM, b_KN=b_KN)
    require_pitch(names[0], a_KM.shape[1], a_KM.element_size())
    require_pitch(names[1], b_KN.shape[1], b_KN.element_size())
    sizes = (a_KM.shape[1], b_KN.shape[1], a_KM.shape[0])
    return _bind(a_KM, b_KN, sizes, _options(tile, sizes, a_KM), a_k_contiguous=False, b_k_contiguous=False)


def bind_nt(a_MK: Tensor, b_NK: Tensor, tile: Tile, *, names: tuple[str, str] = ("k", "n")) -> Launch:
    """a bᵀ of contiguous matrices (M, K) and (N, K) of bf16 or fp16.

    `names`: the axes of the problem that are K and N here, for messages. Raises BadField for matrices that are not contiguous,
    or where rows of a, b or the result are no multiples of 16 bytes.
    """
    require_contiguous(a_MK=a_MK, b_NK=b_NK)
    require_pitch(names[0], a_MK.shape[1], a_MK.element_size())
    require_pitch(names[1], b_NK.shape[0], b_NK.element_size())
    sizes = (a_MK.shape[0], b_NK.shape[0], a_MK.shape[1])
    return _bind(a_MK, b_NK, sizes, _options(tile, sizes, a_MK), a_k_contiguous=True, b_k_contiguous=True)


def bind_tt(a_KM: Tensor, b_NK: Tensor, tile: Tile) -> Launch:
    """aᵀ bᵀ of contiguous matrices (K, M) and (N, K) of bf16 or fp16. Errors: as `bind_nt`."""
    require_contiguous(a_KM=a_KM, b_NK=b_NK)
    require_pitch("m", a_KM.shape[1], a_KM.element_size())
    require_pitch("k", b_NK.shape[1], b_NK.element_size())
    require_pitch("n", b_NK.shape[0], b_NK.element_size())
    sizes = (a_KM.shape[1], b_NK.shape[0], a_KM.shape[0])
    return _bind(a_KM, b_NK, sizes, _options(tile, sizes, a_KM), a_k_contiguous=False, b_k_contiguous=True)


def _options(tile: Tile, sizes: tuple[int, int, int], of: Tensor) -> Options:
    """Those of the tile, or by `sizes` (M, N, K) and the multiprocessors where the tensors are."""
    if all(tile):
        return wgmma_choice.options(*tile, split_k=0)
    return wgmma_choice.choose_for_layouts(*sizes, limits(of.device)[0])


def _bind(
    a: Tensor,
    b: Tensor,
    sizes: tuple[int, int, int],
    options: Options,
    *,
    a_k_contiguous: bool,
    b_k_contiguous: bool,
) -> Launch:
    """`sizes`: M, N, K."""
    import torch

    m, n, _ = sizes
    c_MN = torch.empty((m, n), dtype=a.dtype, device=a.device)
    kernel = nvrtc.kernel(
        SOURCE,
        "matmul_wgmma_layouts",
        defines(
            options,
            nvrtc.element_type(c_MN.dtype),
            a_k_contiguous=a_k_contiguous,
            b_k_contiguous=b_k_contiguous,
        ),
        shared_bytes=options.shared_bytes,
        cluster=options.cluster,
        specific=True,
    )
    maps = tensor_maps(options.maps(a, b, c_MN, a_k_contiguous=a_k_contiguous, b_k_contiguous=b_k_contiguous))
    tiles = -(-m // (options.rows * options.cluster)), -(-n // options.columns)
    order = torch.tensor(hilbert_order(*tiles) if options.hilbert else [0], dtype=torch.uint32).to(c_MN.device)
    threads = 128 * (options.consumers + 1)
    resident = nvrtc.resident(kernel, threads, cluster=options.cluster, shared_bytes=options.shared_bytes)
    blocks = min(tiles[0] * tiles[1] * options.cluster, resident)
    arguments = tuple(map(ctypes.c_int, sizes))

    def launch() -> Tensor:
        nvrtc.launch(
            kernel,
            blocks,
            threads,
            maps,
            order.data_ptr(),
            *arguments,
            cluster=options.cluster,
            shared_bytes=options.shared_bytes,
        )
        return c_MN

    return launch
