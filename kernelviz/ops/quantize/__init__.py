"""Quantisation of rows to 8 bits, alone and after a normalisation."""

from __future__ import annotations

from kernelviz.ops.quantize.op import QUANTIZE_FP8, QUANTIZE_INT8, RMSNORM_QUANTIZE_FP8

OPS = (QUANTIZE_FP8, QUANTIZE_INT8, RMSNORM_QUANTIZE_FP8)
