"""Tensor maps: how TMA finds a tensor in device memory, and in what boxes it copies it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kernelviz.core.errors import BadField, DeviceError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

BOX_ROW_BYTES = 128
"""The width of all boxes here, which is also the widest that TMA swizzles."""
PITCH_BYTES = 16
"""TMA needs rows that begin at multiples of 16 bytes."""
_NUMBERS = 16
"""Numbers of 64 bits in a tensor map."""
_ELEMENTS = {1: "UINT8", 2: "UINT16", 4: "UINT32"}
"""By bytes an element. Integers, so that no bits are changed."""


class Mapped(Protocol):
    """A tensor, and the boxes in which TMA copies it."""

    @property
    def device(self) -> torch.device: ...

    def encoded(self) -> list[int]:
        """The map as the driver encodes it, 16 numbers of 64 bits. Errors: DeviceError where the driver refuses it."""
        ...


@dataclass(frozen=True, slots=True)
class Boxes:
    """A contiguous matrix in boxes of `rows` rows and 128 bytes of columns, or of `columns` columns if that is less.

    `swizzle`: TMA exchanges the 16-byte parts of a row of a box, so that the same columns of eight rows lie in different banks.
    Rows of a narrower box that is swizzled are 128 bytes apart in shared memory, too.
    `fetch_bytes`: what the L2 fetches at least, 128 or 256. With 256, products of 16 and 64 rows took 1 to 7 % longer on an H200,
    4096³ 0.4 %.
    """

    matrix: Tensor
    rows: int
    swizzle: bool = True
    fetch_bytes: int = 128
    columns: int | None = None

    @property
    def device(self) -> torch.device:
        return self.matrix.device

    def encoded(self) -> list[int]:
        """As `Mapped` describes it."""
        from cuda.bindings import driver

        (height, width), itemsize = self.matrix.shape, self.matrix.element_size()
        status, encoded = driver.cuTensorMapEncodeTiled(
            getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_ELEMENTS[itemsize]}"),
            2,
            self.matrix.data_ptr(),
            [driver.cuuint64_t(width), driver.cuuint64_t(height)],
            [driver.cuuint64_t(width * itemsize)],
            [driver.cuuint32_t(self.columns or BOX_ROW_BYTES // itemsize), driver.cuuint32_t(self.rows)],
            [driver.cuuint32_t(1), driver.cuuint32_t(1)],
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{'128B' if self.swizzle else 'NONE'}"),
            getattr(driver.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_L2_{self.fetch_bytes}B"),
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
        return accepted(status, encoded, f"{height} × {width}")


def require_pitch(axis: str, size: int, itemsize_bytes: int) -> None:
    """Raises BadField where rows of `size` elements do not begin at multiples of 16 bytes."""
    elements = PITCH_BYTES // itemsize_bytes
    if size % elements:
        raise BadField(
            f"size {axis}",
            size,
            f"TMA needs rows of a multiple of {PITCH_BYTES} bytes, so a multiple of {elements} elements",
        )


def tensor_maps(tensors: Sequence[Mapped]) -> ctypes.Array[ctypes.c_uint64]:
    """The maps of these tensors, one after the other, for a kernel whose parameter is `Maps<N>` (headers/tma.cuh).

    Zeros for a tensor that is not on a GPU, where nothing is launched and no driver encodes a map. Errors: DeviceError where
    the driver refuses one.
    """
    numbers = [n for one in tensors for n in (one.encoded() if one.device.type == "cuda" else [0] * _NUMBERS)]
    return (ctypes.c_uint64 * len(numbers))(*numbers)


def accepted(status: Any, encoded: Any, what: str) -> list[int]:
    """The numbers of a map that the driver encoded. Raises DeviceError, which says of what, where it refused."""
    from cuda.bindings import driver

    if status != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"the driver does not accept a tensor map of {what}: {status.name}")
    return [int(number) for number in encoded.opaque]
