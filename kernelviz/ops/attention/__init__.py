"""Attention of whole sequences: each query weighs the values of all keys, or of those up to its own position."""

from __future__ import annotations

from kernelviz.ops.attention.op import ATTENTION, CAUSAL_ATTENTION
from kernelviz.ops.attention.varlen_op import VARLEN_ATTENTION

OPS = (ATTENTION, CAUSAL_ATTENTION, VARLEN_ATTENTION)
