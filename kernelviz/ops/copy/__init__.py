"""Copies of a vector, whole or one element in every s."""

from __future__ import annotations

from kernelviz.ops.copy.op import OPS

__all__ = ["OPS"]
