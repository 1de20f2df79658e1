"""Rows of a table, selected by ids."""

from __future__ import annotations

from kernelviz.ops.embedding.op import OPS

__all__ = ["OPS"]
