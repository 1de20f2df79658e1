"""Normalisation of rows: rmsnorm, layernorm, and rmsnorm behind a residual sum."""

from __future__ import annotations

from kernelviz.ops.normalisation import add_rmsnorm, layernorm, rmsnorm

OPS = (rmsnorm.OP, layernorm.OP, add_rmsnorm.OP)
