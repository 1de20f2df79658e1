"""Transposition of a matrix."""

from __future__ import annotations

from kernelviz.ops.transpose.op import OPS

__all__ = ["OPS"]
