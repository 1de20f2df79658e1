"""Normalisations of rows: rmsnorm, layernorm, and rmsnorm after a residual sum."""

from __future__ import annotations

from kernelviz.ops.normalisation.op import ADD_RMSNORM, LAYERNORM, RMSNORM

OPS = (RMSNORM, LAYERNORM, ADD_RMSNORM)
