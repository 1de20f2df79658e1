"""Matrix product."""

from __future__ import annotations

from kernelviz.ops.matmul.op import OPS

__all__ = ["OPS"]
