"""Chains of element-wise steps, relu(x · s + b) applied k times."""

from __future__ import annotations

from kernelviz.ops.pointwise_chain.op import POINTWISE_CHAIN, POINTWISE_CHAIN_SCALAR

OPS = (POINTWISE_CHAIN, POINTWISE_CHAIN_SCALAR)
