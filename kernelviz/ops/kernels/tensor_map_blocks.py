"""Tensor maps of tensors of four dimensions: how TMA finds heads of sequences in device memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelviz.core.errors import DeviceError

if TYPE_CHECKING:
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


def head_maps(boxes: Sequence[HeadBoxes]) -> Tensor:
    """The tensor maps of these tensors, of 128 bytes each, one after the other in memory of the first one's device.

    A box is addressed by (element, position, head, batch). Zeros for tensors that are not on a GPU, where nothing is launched.
    Errors: DeviceError where the driver refuses one.
    """
    import torch

    device = boxes[0].tensor.device
    parts = [part for one in boxes for part in (_encoded(one) if device.type == "cuda" else [0] * 16)]
    return torch.tensor(parts, dtype=torch.uint64).to(device)


def _encoded(boxes: HeadBoxes) -> list[int]:
    from cuda.bindings import driver

    tensor = boxes.tensor
    batches, positions, heads, dimension = tensor.shape
    batch_stride, position_stride, head_stride, _ = (2 * stride for stride in tensor.stride())
    status, encoded = driver.cuTensorMapEncodeTiled(
        driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT16,
        4,
        tensor.data_ptr(),
        [driver.cuuint64_t(size) for size in (dimension, positions, heads, batches)],
        [driver.cuuint64_t(stride) for stride in (position_stride, head_stride, batch_stride)],
        [driver.cuuint32_t(size) for size in (BOX_COLUMNS, boxes.rows, 1, 1)],
        [driver.cuuint32_t(1)] * 4,
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if status != driver.CUresult.CUDA_SUCCESS:
        shape = " × ".join(map(str, tensor.shape))
        raise DeviceError(f"the driver does not accept a tensor map of {shape}: {status.name}")
    return [int(part) for part in encoded.opaque]
