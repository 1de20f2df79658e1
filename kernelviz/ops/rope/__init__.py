"""Rotary position embedding of queries and keys."""

from __future__ import annotations

from kernelviz.ops.rope.variants import OPS

__all__ = ["OPS"]
