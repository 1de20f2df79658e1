"""Matrix products: of two matrices, and of groups of rows with a weight each."""

from __future__ import annotations

from kernelviz.ops.matmul.groups_op import GROUPED_MATMUL
from kernelviz.ops.matmul.op import OPS as PRODUCTS

OPS = (*PRODUCTS, GROUPED_MATMUL)
