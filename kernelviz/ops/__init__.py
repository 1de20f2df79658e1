"""What can be measured: one folder a family, each ending with ``OPS``, a tuple of ops with their variants.

There is no registry. `catalogue()` reads every folder's OPS and returns a mapping, so that a reload or a plug-in
leaves no stale or doubled entry. Importing this package or any family's ``__init__`` loads neither torch nor triton.
"""

from __future__ import annotations

from kernelviz.ops.catalog.discovery import catalogue, op_named, with_plugins
from kernelviz.ops.catalog.op import (
    Axis,
    Backward,
    Launch,
    Op,
    Preset,
    Staged,
    Tensors,
    TensorSpec,
    Variant,
    refresh,
    variant,
)

__all__ = [
    "Axis",
    "Backward",
    "Launch",
    "Op",
    "Preset",
    "Staged",
    "TensorSpec",
    "Tensors",
    "Variant",
    "catalogue",
    "op_named",
    "refresh",
    "variant",
    "with_plugins",
]
