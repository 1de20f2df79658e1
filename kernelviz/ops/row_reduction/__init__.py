"""Sum and argmax of each row of a matrix."""

from __future__ import annotations

from kernelviz.ops.row_reduction.op import OPS

__all__ = ["OPS"]
