"""Tensor maps of images and filters: how TMA finds what a filter sees of neighbouring pixels, and one tap of many filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.kernels.tensor_map import accepted

if TYPE_CHECKING:
    import torch
    from torch import Tensor

CHANNELS = 64
"""Of a copy: 128 bytes of 16-bit elements, the most that TMA swizzles."""
MOST_STRIDE = 8
"""TMA's largest step from one element to the next (CUDA driver API, cuTensorMapEncodeIm2col, elementStrides)."""
MOST_SIDE = 255
"""Corners of the box in which a filter's upper left pixel lies are from -128 to 127 in a tensor of four dimensions."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Contiguous images (N, H, W, C) of 16-bit elements, seen by a filter of `side` × `side` with padding of side // 2.

    A copy has 64 channels of one tap at `pixels` neighbouring positions, each `stride` pixels from the one before.
    """

    images_NHWC: Tensor
    pixels: int
    side: int
    stride: int

    @property
    def device(self) -> torch.device:
        return self.images_NHWC.device

    def encoded(self) -> list[int]:
        """As `Mapped` describes it."""
        from cuda.bindings import driver

        n, h, w, c = self.images_NHWC.shape
        # The upper left pixel of the filter lies between -padding and the size + padding - (side - 1).
        lower, upper = -(self.side // 2), self.side // 2 - (self.side - 1)
        status, encoded = driver.cuTensorMapEncodeIm2col(
            driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT16,
            4,
            self.images_NHWC.data_ptr(),
            [driver.cuuint64_t(size) for size in (c, w, h, n)],
            [driver.cuuint64_t(2 * elements) for elements in (c, w * c, h * w * c)],
            [lower, lower],
            [upper, upper],
            CHANNELS,
            self.pixels,
            [driver.cuuint32_t(step) for step in (1, self.stride, self.stride, 1)],
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
        what = f"{n} images of {h} × {w} × {c} for filters of {self.side} × {self.side} with stride {self.stride}"
        return accepted(status, encoded, what)


@dataclass(frozen=True, slots=True)
class Taps:
    """Contiguous filters (K, R, R, C) of 16-bit elements. A copy has 64 channels of one tap of `filters` filters."""

    filters_KRRC: Tensor
    filters: int

    @property
    def device(self) -> torch.device:
        return self.filters_KRRC.device

    def encoded(self) -> list[int]:
        """As `Mapped` describes it."""
        from cuda.bindings import driver

        k, r, _, c = self.filters_KRRC.shape
        status, encoded = driver.cuTensorMapEncodeTiled(
            driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT16,
            3,
            self.filters_KRRC.data_ptr(),
            [driver.cuuint64_t(size) for size in (c, r * r, k)],
            [driver.cuuint64_t(2 * elements) for elements in (c, r * r * c)],
            [driver.cuuint32_t(size) for size in (CHANNELS, 1, self.filters)],
            [driver.cuuint32_t(1)] * 3,
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
        return accepted(status, encoded, f"{k} filters of {r} × {r} × {c}")


def require_filter(side: int, stride: int) -> None:
    """Raises BadField for a filter or a stride that TMA cannot address."""
    if side > MOST_SIDE:
        raise BadField("size r", side, f"TMA takes filters of at most {MOST_SIDE} × {MOST_SIDE}")
    if stride > MOST_STRIDE:
        raise BadField("size s", stride, f"TMA takes a stride of at most {MOST_STRIDE}")
