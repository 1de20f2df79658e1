"""Tensor maps of tensors of four dimensions: how TMA finds heads of sequences in device memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelviz.ops.kernels.tensor_map import accepted

if TYPE_CHECKING:
    import torch
    from torch import Tensor

BOX_COLUMNS = 64
"""Elements of 16 bits in the 128 bytes that TMA swizzles."""


@dataclass(frozen=True, slots=True)
class HeadBoxes:
    """A tensor (batch, position, head, dimension) of 16-bit elements in boxes of `rows` positions of a head and 64 elements.

    The dimension is contiguous; all other strides are multiples of 16 bytes. Boxes are swizzled by 128 bytes.
    """

    tensor: Tensor
    rows: int

    @property
    def device(self) -> torch.device:
        return self.tensor.device

    def encoded(self) -> list[int]:
        """The map, whose boxes are addressed by (element, position, head, batch). Errors: as `Mapped` describes."""
        from cuda.bindings import driver

        tensor = self.tensor
        batches, positions, heads, dimension = tensor.shape
        batch_stride, position_stride, head_stride, _ = (2 * stride for stride in tensor.stride())
        status, encoded = driver.cuTensorMapEncodeTiled(
            driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT16,
            4,
            tensor.data_ptr(),
            [driver.cuuint64_t(size) for size in (dimension, positions, heads, batches)],
            [driver.cuuint64_t(stride) for stride in (position_stride, head_stride, batch_stride)],
            [driver.cuuint32_t(size) for size in (BOX_COLUMNS, self.rows, 1, 1)],
            [driver.cuuint32_t(1)] * 4,
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
        return accepted(status, encoded, " × ".join(map(str, tensor.shape)))
