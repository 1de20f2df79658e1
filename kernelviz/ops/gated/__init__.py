"""Gated activations and their backward passes."""

from __future__ import annotations

from kernelviz.ops.gated.op import OPS

__all__ = ["OPS"]
