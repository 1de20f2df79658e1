"""An element-wise step on a transposed view, with a contiguous result."""

from __future__ import annotations

from kernelviz.ops.reshape_elementwise.op import RESHAPE_ELEMENTWISE

OPS = (RESHAPE_ELEMENTWISE,)
