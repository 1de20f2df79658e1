"""Cross-entropy of logits and labels."""

from __future__ import annotations

from kernelviz.ops.cross_entropy.op import OPS

__all__ = ["OPS"]
