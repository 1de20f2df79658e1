"""CUDA C++ kernels of `transpose`, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.op import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
TILE = 32
THREADS = 256


def empty_transposed(x_MN: Tensor) -> Tensor:
    """Memory for the result, (N, M)."""
    import torch

    return torch.empty((x_MN.shape[1], x_MN.shape[0]), dtype=x_MN.dtype, device=x_MN.device)


def bind_elements(name: str, x_MN: Tensor, *, padding: int = 1) -> Launch:
    """`transpose_naive` (8 rows of 32 elements a block) or `transpose_tile` (32 rows); raises BadField for strided inputs."""
    require_contiguous(x_MN=x_MN)
    out_NM = empty_transposed(x_MN)
    m, n = x_MN.shape
    kernel = nvrtc.kernel(SOURCE, name, {"ELEMENT": nvrtc.element_type(x_MN.dtype), "PADDING": str(padding)})
    tiles_n = -(-n // TILE)
    blocks = -(-m // (8 if name == "transpose_naive" else TILE)) * tiles_n
    arguments = (x_MN.data_ptr(), out_NM.data_ptr(), ctypes.c_longlong(m), ctypes.c_longlong(n), ctypes.c_uint(tiles_n))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, *arguments)
        return out_NM

    return launch


def tile_of(m: int, n: int, itemsize_bytes: int, processors: int) -> tuple[int, int]:
    """16-byte words of a tile along m and along n: 16 × 16 blocks of words, another shape for a narrow matrix, 8 × 8 for one
    of which the GPU would have fewer tiles than two a processor, 4 × 8 (one warp) where it would have fewer of those, too.

    32 × 8 where rows of y are no whole words, whose tiles read a block more along m: 3440 against 3203 GB/s (8191 × 16384 in
    bf16).

    >>> [tile_of(m, n, 2, 132) for m, n in ((4096, 4096), (2**20, 16), (16, 2**20), (256, 256), (4095, 4096))]
    [(16, 16), (128, 2), (2, 128), (4, 8), (32, 8)]
    """
    width = 16 // itemsize_bytes
    down, across = -(-m // width), -(-n // width)
    words_n = next((w for w in (2, 4, 8) if w >= across), 16)
    words_m = next((w for w in (2, 4, 8) if w >= down), 16)
    most = 256 if down * across >= 2 * processors * 256 else 64
    if words_n < 16 and words_n * 8 < most:
        return most // words_n, words_n
    if words_m < 16 and words_m * 8 < most:
        return words_m, most // words_m
    if most == 64:
        return (8, 8) if m % width or down * across >= 2 * processors * 64 else (4, 8)
    return (32, 8) if m % width else (16, 16)


def bind_words(x_MN: Tensor, *, words: tuple[int, int] | None = None) -> Launch:
    """16-byte words both ways, whatever the lengths of rows; elements for views that do not start on 16 bytes.

    Raises BadField for a matrix that is not contiguous.
    """
    require_contiguous(x_MN=x_MN)
    (m, n), width = x_MN.shape, 16 // x_MN.element_size()
    if x_MN.data_ptr() % 16 or m * n < width:
        return bind_elements("transpose_tile", x_MN)
    out_NM = empty_transposed(x_MN)
    words_m, words_n = words or tile_of(m, n, x_MN.element_size(), multiprocessors(x_MN.device))
    defines = {"ELEMENT": nvrtc.element_type(x_MN.dtype), "WORDS_M": str(words_m), "WORDS_N": str(words_n)}
    defines |= {"M_REST": str(m % width), "N_REST": str(n % width)}
    kernel = nvrtc.kernel(SOURCE, "transpose_words", defines)
    tiles_n = -(-n // (words_n * width))
    # Where rows of y start inside of a word, its last elements may be left to one more row of tiles.
    blocks = -(-(m + (width - 1 if m % width else 0)) // (words_m * width)) * tiles_n
    threads = words_m * words_n + (32 if m % width else 0)
    sizes = (ctypes.c_longlong(m), ctypes.c_longlong(n), ctypes.c_int(tiles_n))
    arguments = (x_MN.data_ptr(), out_NM.data_ptr(), *sizes)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, *arguments)
        return out_NM

    return launch
