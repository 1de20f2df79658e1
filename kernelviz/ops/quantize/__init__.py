"""Quantisation of rows to 8 bits, alone and behind a normalisation."""

from __future__ import annotations

from kernelviz.ops.quantize.rmsnorm_rows import RMSNORM_QUANTIZE_FP8
from kernelviz.ops.quantize.op import QUANTIZE_FP8, QUANTIZE_INT8

OPS = (QUANTIZE_FP8, QUANTIZE_INT8, RMSNORM_QUANTIZE_FP8)
