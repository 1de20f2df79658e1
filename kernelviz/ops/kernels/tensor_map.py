"""Tensor maps: how TMA finds a matrix in device memory, and in what boxes it copies it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField, DeviceError

if TYPE_CHECKING:
    from torch import Tensor

BOX_ROW_BYTES = 128
"""The width of all boxes here, which is also the widest that TMA swizzles."""
PITCH_BYTES = 16
"""TMA needs rows that begin at multiples of 16 bytes."""
_ELEMENTS = {1: "UINT8", 2: "UINT16", 4: "UINT32"}
"""By bytes an element. Integers, so that no bits are changed."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """A contiguous matrix in boxes of `rows` rows and 128 bytes of columns.

    `swizzle`: TMA exchanges the 16-byte parts of a row of a box, so that the same columns of eight rows lie in different banks.
    `fetch_bytes`: what the L2 fetches at least, 128 or 256. With 256, products of 16 and 64 rows took 1 to 7 % longer on an H200,
    4096³ 0.4 %.
    """

    matrix: Tensor
    rows: int
    swizzle: bool = True
    fetch_bytes: int = 128

    @property
    def columns(self) -> int:
        return BOX_ROW_BYTES // self.matrix.element_size()


def require_pitch(axis: str, size: int, itemsize_bytes: int) -> None:
    """Raises BadField where rows of `size` elements do not begin at multiples of 16 bytes."""
    elements = PITCH_BYTES // itemsize_bytes
    if size % elements:
        raise BadField(
            f"size {axis}",
            size,
            f"TMA needs rows of a multiple of {PITCH_BYTES} bytes, so a multiple of {elements} elements",
        )


def tensor_maps(boxes: Sequence[Boxes]) -> Tensor:
    """The tensor maps of these matrices, of 128 bytes each, one after the other in memory of the first one's device.

    Zeros for matrices that are not on a GPU, where nothing is launched and no driver encodes a map. Errors: DeviceError where
    the driver refuses one.
    """
    import torch

    device = boxes[0].matrix.device
    parts = [part for one in boxes for part in (_encoded(one) if device.type == "cuda" else [0] * 16)]
    return torch.tensor(parts, dtype=torch.uint64).to(device)


def _encoded(boxes: Boxes) -> list[int]:
    from cuda.bindings import driver

    matrix = boxes.matrix
    (height, width), itemsize = matrix.shape, matrix.element_size()
    status, encoded = driver.cuTensorMapEncodeTiled(
        getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_ELEMENTS[itemsize]}"),
        2,
        matrix.data_ptr(),
        [driver.cuuint64_t(width), driver.cuuint64_t(height)],
        [driver.cuuint64_t(width * itemsize)],
        [driver.cuuint32_t(boxes.columns), driver.cuuint32_t(boxes.rows)],
        [driver.cuuint32_t(1), driver.cuuint32_t(1)],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{'128B' if boxes.swizzle else 'NONE'}"),
        getattr(driver.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_L2_{boxes.fetch_bytes}B"),
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if status != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"the driver does not accept a tensor map of {height} × {width}: {status.name}")
    return [int(part) for part in encoded.opaque]
