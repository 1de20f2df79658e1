"""Transposition of a matrix."""

from __future__ import annotations

from kernelviz.ops.transpose.op import TRANSPOSE

OPS = (TRANSPOSE,)
