"""Attention of one new token for each sequence, over a contiguous and over a paged KV cache."""

from __future__ import annotations

from kernelviz.ops.attention_decode.op import ATTENTION_DECODE
from kernelviz.ops.attention_decode.paged_op import PAGED_ATTENTION_DECODE

OPS = (ATTENTION_DECODE, PAGED_ATTENTION_DECODE)
