"""CUDA C++ kernels of `transpose`, bound to tensors; `bind_tma` uses the tensor memory accelerator (TMA)."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import DeviceError
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
TMA_SOURCE = Path(__file__).parent / "cuda_sm90.cu"
TILE = 32
THREADS = 256
BOX_ROW_BYTES = 128
"""Row length of a TMA box, which has as many rows as elements a row."""
BOXES = (4, 2)
"""Boxes of a block along m and n: fewer do not pay for issuing them (2 × 2 boxes of fp32 moved 2672 GB/s, 4 × 2 moved 3719)."""
TALL_TILES, TALL_GAIN = (32, 40, 24, 16), 0.9
"""Vectors along m of a tile where rows of y are not whole vectors, and the part of the vectors of tiles of 32 that another height
must not reach: an estimate."""
SMALL_TILE = (8, 8)
"""16-byte vectors along m and along n of a tile of 64 threads: 64 × 64 elements in 16 bits, 32 × 32 in fp32."""


def empty_transposed(x_MN: Tensor) -> Tensor:
    """An uninitialised tensor for the result, (N, M)."""
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
    """16-byte vectors of a tile along m and along n.

    16 × 16 blocks of vectors, or another shape for a narrow matrix. 8 × 8 where the GPU would otherwise have fewer than two
    tiles for each of its `processors` SMs, 4 × 8 (one warp) where even 8 × 8 gives fewer. 32 × 8 where rows of y are not whole
    vectors, because such a tile reads one more block along m: 3440 against 3203 GB/s (8191 × 16384 in bf16); or another height
    that leaves fewer threads without rows (`tall_tile`).

    >>> [tile_of(m, n, 2, 132) for m, n in ((4096, 4096), (2**20, 16), (16, 2**20), (256, 256), (4095, 4096))]
    [(16, 16), (128, 2), (2, 128), (4, 8), (32, 8)]
    >>> [tile_of(m, 157932, 2, 132) for m in (310, 100, 517)]
    [(40, 8), (16, 16), (24, 8)]
    """
    width = 16 // itemsize_bytes
    down, across = -(-m // width), -(-n // width)
    vectors_n = next((v for v in (2, 4, 8) if v >= across), 16)
    vectors_m = next((v for v in (2, 4, 8) if v >= down), 16)
    most = 256 if down * across >= 2 * processors * 256 else 64
    if vectors_n < 16 and vectors_n * 8 < most:
        return most // vectors_n, vectors_n
    if vectors_m < 16 and vectors_m * 8 < most:
        return vectors_m, most // vectors_m
    if most == 64:
        return (8, 8) if m % width or down * across >= 2 * processors * 64 else (4, 8)
    return tall_tile(m, width) if m % width else (16, 16)


def tall_tile(m: int, width: int) -> tuple[int, int]:
    """The tile for rows of y that are not whole vectors: all rows of x if it can, else 32 × 8 or a height with fewer idle
    threads.

    A tile's rows are a multiple of eight vectors, which its swizzle needs, and each of several tiles reads one more. H200:
    310 rows of 157,932 fp16 took 90 us as tiles of 32 × 8, of which every second one has 8 of 32 vectors inside.
    """
    down = -(-(m + width - 1) // width)
    costs = {height: -(-down // height) * (height + 1) for height in TALL_TILES}
    best = min(costs, key=lambda height: costs[height])
    height = best if costs[best] < TALL_GAIN * costs[32] else 32
    return height, (16 if height == 16 else 8)


def rows_in_one_tile(m: int, width: int, vectors_m: int) -> bool:
    """Whether a tile of so many vectors has all rows of x, and of the vectors that rows of y begin in.

    >>> rows_in_one_tile(310, 8, 40), rows_in_one_tile(310, 8, 32)
    (True, False)
    """
    return m + (width - 1 if m % width else 0) <= vectors_m * width


def bind_vec16(x_MN: Tensor, *, tile: tuple[int, int] | None = None) -> Launch:
    """16-byte vectors both ways for rows of any length; single elements for views that do not start on 16 bytes.

    Raises BadField for a matrix that is not contiguous.
    """
    return bind_vectors(x_MN, tile=tile) or bind_elements("transpose_tile", x_MN)


def bind_vectors(x_MN: Tensor, *, tile: tuple[int, int] | None = None, relu: bool = False) -> Launch | None:
    """As `bind_vec16`; None for less than 16 bytes and for a view that does not start on 16 bytes.

    `relu`: the result is max(xᵀ, 0). Raises BadField for a matrix that is not contiguous.
    """
    require_contiguous(x_MN=x_MN)
    (m, n), width = x_MN.shape, 16 // x_MN.element_size()
    if x_MN.data_ptr() % 16 or m * n < width:
        return None
    out_NM = empty_transposed(x_MN)
    vectors_m, vectors_n = tile or tile_of(m, n, x_MN.element_size(), multiprocessors(x_MN.device))
    defines = {"ELEMENT": nvrtc.element_type(x_MN.dtype), "VECTORS_M": str(vectors_m), "VECTORS_N": str(vectors_n)}
    defines |= {"M_REST": str(m % width), "N_REST": str(n % width), "RELU": str(int(relu))}
    one_tile = rows_in_one_tile(m, width, vectors_m)
    # Where rows of y start inside a vector, one more row of tiles may have to write its last elements.
    down = -(-(m + (width - 1 if m % width else 0)) // (vectors_m * width))
    across = -(-n // (vectors_n * width))
    defines |= {"ONE_TILE": str(int(one_tile)), "DOWN_FIRST": str(int(down < across))}
    kernel = nvrtc.kernel(SOURCE, "transpose_vec16", defines)
    threads = vectors_m * vectors_n + (32 if m % width and not one_tile else 0)
    sizes = (ctypes.c_longlong(m), ctypes.c_longlong(n), ctypes.c_int(min(down, across)))
    blocks = down * across
    arguments = (x_MN.data_ptr(), out_NM.data_ptr(), *sizes)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, *arguments)
        return out_NM

    return launch


def bind_tma(x_MN: Tensor, *, boxes: tuple[int, int] = BOXES) -> Launch:
    """Tiles loaded and stored by TMA; the kernel of `bind_vec16` where rows are not whole 16-byte vectors, or are too few or
    too short for a box.

    Raises BadField for a matrix that is not contiguous, DeviceError if the driver does not accept the shape.
    """
    import torch

    require_contiguous(x_MN=x_MN)
    (m, n), itemsize = x_MN.shape, x_MN.element_size()
    side = BOX_ROW_BYTES // itemsize
    if m * itemsize % 16 or n * itemsize % 16 or x_MN.data_ptr() % 16 or min(m, n) < side:
        return bind_vec16(x_MN)
    down, across = boxes
    out_NM = empty_transposed(x_MN)
    defines = {
        "ELEMENT": nvrtc.element_type(x_MN.dtype),
        "BOXES_M": str(down),
        "BOXES_N": str(across),
    }
    shared = down * across * side * BOX_ROW_BYTES
    kernel = nvrtc.kernel(TMA_SOURCE, "transpose_tma", defines, shared_bytes=shared)
    # Without a GPU nothing is launched, and there is no driver to encode a map.
    map_values = [*tensor_map(x_MN, side), *tensor_map(out_NM, side)] if x_MN.is_cuda else [0] * 32
    maps = torch.tensor(map_values, dtype=torch.uint64, device=x_MN.device)
    tiles_n = -(-n // (across * side))
    blocks = -(-m // (down * side)) * tiles_n

    def launch() -> Tensor:
        last = ctypes.c_int(tiles_n)
        nvrtc.launch(kernel, blocks, down * across * 64, maps.data_ptr(), last, shared_bytes=shared)
        return out_NM

    return launch


def tensor_map(x_MN: Tensor, side: int) -> list[int]:
    """The tensor map that describes boxes of side × side of a matrix to TMA: 128 bytes as 16 integers.

    Errors: DeviceError with the name of the driver's error.
    """
    from cuda.bindings import driver

    (m, n), itemsize = x_MN.shape, x_MN.element_size()
    # Integers, so that no bits are changed.
    kind = "CU_TENSOR_MAP_DATA_TYPE_UINT32" if itemsize == 4 else "CU_TENSOR_MAP_DATA_TYPE_UINT16"
    status, encoded = driver.cuTensorMapEncodeTiled(
        getattr(driver.CUtensorMapDataType, kind),
        2,
        x_MN.data_ptr(),
        [driver.cuuint64_t(n), driver.cuuint64_t(m)],
        [driver.cuuint64_t(n * itemsize)],
        [driver.cuuint32_t(side), driver.cuuint32_t(side)],
        [driver.cuuint32_t(1), driver.cuuint32_t(1)],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if status != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"the driver does not accept a tensor map of {m} × {n}: {status.name}")
    return [int(part) for part in encoded.opaque]
