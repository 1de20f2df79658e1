"""Activation functions, element by element."""

from __future__ import annotations

from kernelviz.ops.activation.op import OPS

__all__ = ["OPS"]
