"""Cumulative sum of a vector."""

from __future__ import annotations

from kernelviz.ops.cumsum.op import OPS

__all__ = ["OPS"]
