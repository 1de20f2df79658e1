"""Normalisations with the activation after them in one pass."""

from __future__ import annotations

from kernelviz.ops.norm_activation.op import BATCHNORM_RELU, NORM_ACTIVATION

OPS = (NORM_ACTIVATION, BATCHNORM_RELU)
