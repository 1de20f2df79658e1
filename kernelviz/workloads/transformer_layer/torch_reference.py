"""The proof that a layer is right: the same layer in fp32, and the largest error that is allowed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite

import torch
from torch import Tensor

from kernelviz.core import Failure
from kernelviz.core.reasons import ErrorTooLarge
from kernelviz.models.parts import LayerCall
from kernelviz.workloads.transformer_layer.torch_layer import Layer

UNIT_ROUNDING = {"bf16": 2.0**-8, "fp16": 2.0**-11}
UNITS_ALLOWED = 8
"""The largest relative L2 error of a token's output, in units of rounding: about ten roundings follow each other, and seven small
layers in either format err by 1.1 to 2.1 units. A part that is left out or wrong errs by more than 30."""
_ROWS = 8
"""So many sequences of a cache are compared at once."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The output (T, H) of the layer in fp32, and the tensors of its cache after the call, by name."""

    y_TH: Tensor
    cache: Mapping[str, Tensor]


def reference_of(layer: Layer, x_TH: Tensor) -> Reference:
    """What the same layer with the same numbers gives in fp32, with attention by its definition."""
    tf32 = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        in_fp32 = copy.deepcopy(layer).float()
        y_TH: Tensor = in_fp32(x_TH.float())
        return Reference(y_TH, dict(in_fp32.part("cache_write").named_buffers()))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = tf32


def error_of(layer: Layer, call: Callable[[Tensor], Tensor], x_TH: Tensor, reference: Reference) -> float:
    """The largest relative error of a call: of a token's output, or of a vector of the cache. The newest token of the cache is
    cleared before, so that a call that does not write it is found."""
    cache = dict(layer.part("cache_write").named_buffers())
    for tensor in cache.values():
        tensor[:, -1:] = 0
    y_TH = call(x_TH)
    pairs = [(y_TH, reference.y_TH), *((cache[name], expected) for name, expected in reference.cache.items())]
    return max(relative_error(got, expected) for got, expected in pairs)


def relative_error(got: Tensor, expected: Tensor) -> float:
    """The largest relative L2 error of a vector of the last axis; infinite if there is a number that is not finite."""
    worst = 0.0
    # A cache at once would take several times its memory.
    for rows, right in zip(*(torch.split(t, _ROWS if t.dim() > 2 else len(t)) for t in (got, expected)), strict=True):
        errors = (rows.float() - right).norm(dim=-1) / right.norm(dim=-1)
        largest = float(errors.max())
        worst = max(worst, largest if isfinite(largest) else float("inf"))
    return worst


def failure_of(error: float, call: LayerCall) -> Failure | None:
    allowed = UNITS_ALLOWED * UNIT_ROUNDING[call.dtype]
    if error <= allowed:
        return None
    return Failure(stage="wrong", reasons=(ErrorTooLarge(of_bound=error / allowed if isfinite(error) else None),))
