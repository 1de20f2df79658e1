"""Histogram of bytes."""

from __future__ import annotations

from kernelviz.ops.histogram.op import OPS

__all__ = ["OPS"]
