"""Sum of each column of a matrix."""

from __future__ import annotations

from kernelviz.ops.column_reduction.op import COLUMN_SUM

OPS = (COLUMN_SUM,)
