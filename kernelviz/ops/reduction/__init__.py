"""Sum and mean of a whole vector."""

from __future__ import annotations

from kernelviz.ops.reduction.op import MEAN, SUM

OPS = (SUM, MEAN)
