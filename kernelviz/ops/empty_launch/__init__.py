"""Launches of kernels that do almost nothing."""

from __future__ import annotations

from kernelviz.ops.empty_launch.op import OPS

__all__ = ["OPS"]
