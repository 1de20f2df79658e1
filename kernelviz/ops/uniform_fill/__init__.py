"""Uniform random numbers."""

from __future__ import annotations

from kernelviz.ops.uniform_fill.op import UNIFORM_FILL

OPS = (UNIFORM_FILL,)
