"""The CUDA C++ ladder of `matmul` in fp32 with ordinary multiply-adds, from one element a thread to cuBLAS's way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.variant import Configuration, Launch, variant
from kernelviz.ops.kernels.limits import MULTIPROCESSORS
from kernelviz.ops.matmul.fp32_async import SHORTEST_PART, Tiling
from kernelviz.ops.matmul.variants import cuda_naive, cuda_tiled, siboehm

if TYPE_CHECKING:
    from torch import Tensor

_FP32: dict[str, Any] = {"backend": "cuda", "needs": ("nvrtc", "cuda"), "dtypes": ("fp32",), "computes": ("ieee",)}


def _bind(name: str, a_MK: Tensor, b_KN: Tensor) -> Launch:
    from kernelviz.ops.matmul import fp32

    return fp32.bind(name, a_MK, b_KN)


# 0.27 s at 4096³ on an H200, 6 times as slow as the next variant.
@variant(**_FP32, only_when_named=True)
def cuda_rows_across_threads(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, one thread per element; neighbouring threads take neighbouring rows, so a warp's load of A is 32 transactions."""
    return _bind("matmul_rows_across_threads", a_MK, b_KN)


@variant(**_FP32, published=siboehm(2.84, over="cuda_tiled"))
def cuda_register_column(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, eight rows of one column per thread: an element of B is used eight times from a register."""
    return _bind("matmul_register_column", a_MK, b_KN)


@variant(**_FP32, published=siboehm(1.88, over="cuda_register_column"))
def cuda_register_tile(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, 8×8 elements per thread: 16 loads from shared memory feed 64 multiply-adds."""
    return _bind("matmul_register_tile", a_MK, b_KN)


@variant(**_FP32, published=siboehm(1.14, over="cuda_register_tile"), techniques=("vec16",))
def cuda_register_vec16(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, loads and stores of 16 bytes; the tile of A is transposed on its way to shared memory."""
    return _bind("matmul_vec16", a_MK, b_KN)


# The source has a rung between the two, tuned tile sizes, which gained 1.08; this is the gain over the rung before that.
@variant(**_FP32, published=siboehm(1.19, over="cuda_register_vec16"), techniques=("vec16",))
def cuda_warp_tile(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, a tile per warp, whose threads read shared memory without bank conflicts."""
    return _bind("matmul_warp_tile", a_MK, b_KN)


@variant(**_FP32, techniques=("vec16",))
def cuda_double_buffer(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, two tiles of each factor: the next one is loaded while this one is multiplied."""
    return _bind("matmul_double_buffer", a_MK, b_KN)


SPACE = {
    "bm": (128, 256, 64, 32),
    "bn": (256, 128, 64),
    "bk": (8, 16, 32),
    "tm": (8, 16),
    "tn": (16, 8),
    "stretch": (8, 1, 4),
    "stages": (3, 4, 2),
    "parts": (1, 2, 4, 8, 16),
}
"""A block's tile of C and its step along K, a thread's tile of C and the order of its multiply-adds, how many steps shared memory
holds, and parts of K."""
RESIDENT_BYTES = 227 * 1024
"""Shared memory of a multiprocessor with compute capability 9.0."""
MOST_TILES_OF_A_MULTIPROCESSOR = 12
"""With more of them the load is as even with larger tiles, which need fewer loads for each multiply-add."""


def admits(configuration: Configuration, problem: Problem) -> str | None:
    """Why a configuration is not measured: it cannot be compiled, or another one is better for certain at this size."""
    parts, sizes = configuration["parts"], problem.sizes
    tiling = Tiling(**{key: value for key, value in configuration.items() if key != "parts"})
    defect = tiling.defect()
    if defect is not None:
        return defect
    if tiling.resident_blocks * (tiling.shared_bytes + 1024) > RESIDENT_BYTES:
        return f"shared memory holds fewer than the {tiling.resident_blocks} blocks that the registers hold"
    if tiling.bm >= 2 * max(sizes["m"], 32) or tiling.bn >= 2 * max(sizes["n"], 64):
        return f"half of a tile of {tiling.bm} × {tiling.bn} would be outside of the product"
    if 4 * min(tiling.bm, tiling.bn) <= max(tiling.bm, tiling.bn) and sizes["m"] >= 128 <= sizes["n"]:
        return f"{tiling.bm} × {tiling.bn} elements need more loads than a squarer tile of as many"
    if tiling.stretch == 4 and tiling.tm * tiling.tn > 64:
        return "the compiler finds fewer operands to use again than with another order"
    if tiling.stages == 2 and replace(tiling, stages=3).defect() is None:
        return "there is room for a third stage"
    tiles = tiling.tiles(sizes["m"], sizes["n"])
    if tiling.bm * tiling.bn < 128 * 128 and tiles > MOST_TILES_OF_A_MULTIPROCESSOR * MULTIPROCESSORS:
        return f"{tiles:,} tiles are more than {MOST_TILES_OF_A_MULTIPROCESSOR} a multiprocessor: larger ones load less"
    if tiling.tm * tiling.tn == 64 and tiles > MULTIPROCESSORS:
        return "64 sums a thread need more loads than 128"
    if parts > 1 and parts * tiles > 4 * MULTIPROCESSORS * tiling.resident_blocks:
        return f"{tiles:,} tiles are enough without {parts} parts of K"
    if parts > 1 and sizes["k"] < parts * SHORTEST_PART:
        return f"parts of K would have fewer than {SHORTEST_PART} elements"
    return None


@variant(**_FP32, techniques=("vec16", "cp_async"))
def cuda_async_copy(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, cp.async copies two tiles ahead, past the registers, while a third one is multiplied."""
    from kernelviz.ops.matmul import fp32_async

    return fp32_async.bind(a_MK, b_KN, Tiling(tm=8))


@variant(**_FP32, techniques=("vec16", "cp_async"), space=SPACE, admits=admits)
def cuda_larger_thread_tile(
    a_MK: Tensor,
    b_KN: Tensor,
    *,
    bm: int = 128,
    bn: int = 256,
    bk: int = 8,
    tm: int = 8,
    tn: int = 16,
    stretch: int = 8,
    stages: int = 3,
    parts: int = 1,
) -> Launch:
    """CUDA C++, 8×16 elements per thread: 6 loads of 16 bytes feed 128 multiply-adds, where 8×8 need 4 for 64."""
    from kernelviz.ops.matmul import fp32_async

    return fp32_async.bind(a_MK, b_KN, Tiling(bm=bm, bn=bn, bk=bk, tm=tm, tn=tn, stretch=stretch, stages=stages), parts)


@variant(**_FP32, techniques=("vec16", "cp_async"))
def cuda_tile_by_size(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, tiles and parts of K by size, so that small products use every SM; parts are added in a fixed order."""
    from kernelviz.ops.matmul import fp32_async

    return fp32_async.bind_by_size(a_MK, b_KN)


FP32_VARIANTS = (
    cuda_rows_across_threads,
    cuda_naive,
    cuda_tiled,
    cuda_register_column,
    cuda_register_tile,
    cuda_register_vec16,
    cuda_warp_tile,
    cuda_double_buffer,
    cuda_async_copy,
    cuda_larger_thread_tile,
    cuda_tile_by_size,
)
