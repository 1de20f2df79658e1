"""Addition of rows to the rows that ids give."""

from __future__ import annotations

from kernelviz.ops.scatter_add.op import SCATTER_ADD

OPS = (SCATTER_ADD,)
