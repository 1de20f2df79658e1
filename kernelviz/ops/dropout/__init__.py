"""Dropout."""

from __future__ import annotations

from kernelviz.ops.dropout.op import OPS

__all__ = ["OPS"]
