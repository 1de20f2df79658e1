"""Matrix product with weights of 4 bits and activations of 16 bits."""

from __future__ import annotations

from kernelviz.ops.w4a16_matmul.op import OPS

__all__ = ["OPS"]
