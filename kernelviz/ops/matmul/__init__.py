"""Matrix products: of two matrices in all formats, and of groups of rows with a weight each."""

from __future__ import annotations

from kernelviz.ops.matmul.groups_op import GROUPED_MATMUL
from kernelviz.ops.matmul.op import OPS as MATMUL_OPS
from kernelviz.ops.matmul.op_fp8 import FP8_OPS

OPS = (*MATMUL_OPS, *FP8_OPS, GROUPED_MATMUL)
