"""Matrix products."""

from __future__ import annotations

from kernelviz.ops.matmul.op import OPS as MATMUL_OPS
from kernelviz.ops.matmul.op_fp8 import FP8_OPS

OPS = (*MATMUL_OPS, *FP8_OPS)

__all__ = ["OPS"]
