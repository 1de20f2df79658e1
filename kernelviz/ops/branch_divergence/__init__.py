"""Two branches of equal length that neighbouring elements take in turn: what divergence costs."""

from __future__ import annotations

from kernelviz.ops.branch_divergence.op import BRANCH_DIVERGENCE

OPS = (BRANCH_DIVERGENCE,)
