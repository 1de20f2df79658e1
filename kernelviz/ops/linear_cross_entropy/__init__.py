"""Cross-entropy of a linear layer: the losses of hidden states against a vocabulary, where the logits need not be stored."""

from __future__ import annotations

from kernelviz.ops.linear_cross_entropy.op import OPS

__all__ = ["OPS"]
