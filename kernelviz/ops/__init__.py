"""What can be measured: one folder for each family, with a tuple ``OPS`` of ops and their variants.

There is no registry. `catalogue()` reads the OPS of every folder and returns a mapping, so that a reload or a plug-in
leaves no stale or duplicate entry. Importing this package or any family's ``__init__`` loads neither torch nor triton.
"""

from __future__ import annotations

from kernelviz.ops.catalog.discovery import catalogue, op_named, with_plugins
from kernelviz.ops.catalog.op import Backward, Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Tensors, TensorSpec
from kernelviz.ops.catalog.variant import Launch, PublishedGain, Staged, Variant, refresh, variant

__all__ = [
    "Axis",
    "Backward",
    "Launch",
    "Op",
    "Preset",
    "PublishedGain",
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
