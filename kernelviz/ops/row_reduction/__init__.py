"""Sum and argmax of each row of a matrix."""

from __future__ import annotations

from kernelviz.ops.row_reduction.op import ARGMAX, ROW_SUM

OPS = (ROW_SUM, ARGMAX)
