"""Convolutions of images in NHWC, with "same" padding and a square filter."""

from __future__ import annotations

from kernelviz.ops.convolution.op import CONV2D, CONV_BIAS_RELU

OPS = (CONV2D, CONV_BIAS_RELU)
