"""Normalisations with the activation behind them in one pass."""

from __future__ import annotations

from kernelviz.ops.norm_activation import batchnorm_relu, layernorm_gelu

OPS = (layernorm_gelu.OP, batchnorm_relu.OP)
