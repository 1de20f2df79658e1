"""Softmax of rows."""

from __future__ import annotations

from kernelviz.ops.softmax.op import OPS

__all__ = ["OPS"]
