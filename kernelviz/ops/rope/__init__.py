"""Rotary position embedding of queries and keys."""

from __future__ import annotations

from kernelviz.ops.rope.op import ROPE

OPS = (ROPE,)
