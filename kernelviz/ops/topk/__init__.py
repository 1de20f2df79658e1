"""The k largest elements of each row."""

from __future__ import annotations

from kernelviz.ops.topk.op import OPS

__all__ = ["OPS"]
