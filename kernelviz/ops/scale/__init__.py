"""Multiplication of a vector by a scalar."""

from __future__ import annotations

from kernelviz.ops.scale.op import SCALE

OPS = (SCALE,)
