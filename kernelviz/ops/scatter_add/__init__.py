"""Addition of rows to the rows that ids name."""

from __future__ import annotations

from kernelviz.ops.scatter_add.op import OPS

__all__ = ["OPS"]
