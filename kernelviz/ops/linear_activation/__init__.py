"""A linear layer and its activation in one kernel: `linear_relu`, `linear_gelu`, `linear_silu`."""

from __future__ import annotations

from kernelviz.ops.linear_activation.op import OPS

__all__ = ["OPS"]
