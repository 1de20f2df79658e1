"""Normalisations with the activation behind them in one pass."""

from __future__ import annotations

from kernelviz.ops.norm_activation import batchnorm_relu, op

OPS = (op.OP, batchnorm_relu.OP)
