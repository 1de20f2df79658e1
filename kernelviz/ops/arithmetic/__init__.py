"""Elementwise sum, product and quotient."""

from __future__ import annotations

from kernelviz.ops.arithmetic.op import OPS

__all__ = ["OPS"]
