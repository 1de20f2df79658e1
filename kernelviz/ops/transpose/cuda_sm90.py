"""The kernel of `transpose` that uses the tensor memory accelerator, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import DeviceError
from kernelviz.ops.catalog.op import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.transpose import cuda

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_sm90.cu"
ROW_BYTES = 128
"""Of a box; it has as many rows as elements a row."""
BOXES = (4, 2)
"""Boxes of a block along m and n: with fewer, asking does not pay (2 × 2 boxes of fp32 moved 2672 GB/s, 4 × 2 moved 3719)."""


def bind_tma(x_MN: Tensor, *, boxes: tuple[int, int] = BOXES) -> Launch:
    """Tiles fetched and stored by the accelerator; `cuda_vec16`'s kernel where rows are no whole 16-byte words, or too few
    or short for a box.

    Raises BadField for a matrix that is not contiguous, DeviceError where the driver refuses the shape.
    """
    import torch

    require_contiguous(x_MN=x_MN)
    (m, n), itemsize = x_MN.shape, x_MN.element_size()
    side = ROW_BYTES // itemsize
    if m * itemsize % 16 or n * itemsize % 16 or x_MN.data_ptr() % 16 or min(m, n) < side:
        return cuda.bind_words(x_MN)
    down, across = boxes
    out_NM = cuda.empty_transposed(x_MN)
    defines = {
        "ELEMENT": nvrtc.element_type(x_MN.dtype),
        "BOXES_M": str(down),
        "BOXES_N": str(across),
    }
    shared = down * across * side * ROW_BYTES
    kernel = nvrtc.kernel(SOURCE, "transpose_tma", defines, shared_bytes=shared)
    # Where there is no GPU nothing is launched, and no driver is there to ask.
    words = [*tensor_map(x_MN, side), *tensor_map(out_NM, side)] if x_MN.is_cuda else [0] * 32
    maps = torch.tensor(words, dtype=torch.uint64, device=x_MN.device)
    tiles_n = -(-n // (across * side))
    blocks = -(-m // (down * side)) * tiles_n

    def launch() -> Tensor:
        last = ctypes.c_int(tiles_n)
        nvrtc.launch(kernel, blocks, down * across * 64, maps.data_ptr(), last, shared_bytes=shared)
        return out_NM

    return launch


def tensor_map(x_MN: Tensor, side: int) -> list[int]:
    """The 128 bytes that describe boxes of side × side of a matrix to the accelerator, as 16 whole numbers.

    Errors: DeviceError with the driver's name for what it refuses.
    """
    from cuda.bindings import driver

    (m, n), itemsize = x_MN.shape, x_MN.element_size()
    # Whole numbers, so that no bits are changed.
    kind = "CU_TENSOR_MAP_DATA_TYPE_UINT32" if itemsize == 4 else "CU_TENSOR_MAP_DATA_TYPE_UINT16"
    status, found = driver.cuTensorMapEncodeTiled(
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
        raise DeviceError(f"the driver refuses a tensor map of {m} × {n}: {status.name}")
    return [int(word) for word in found.opaque]
