"""Conversions between number formats."""

from __future__ import annotations

from kernelviz.ops.cast.op import OPS

__all__ = ["OPS"]
