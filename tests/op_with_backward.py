"""An op of the catalogue with a backward pass, which one of its variants lacks, and a variant that has something to tune."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from kernelviz.ops import Backward, Op, TensorSpec, Variant, catalogue
from kernelviz.ops.catalog.tensors import Tensors


def _bind(*inputs: object, block: int = 64, warps: int = 4) -> None:
    raise AssertionError("nothing is bound in the server")


def _reference(*inputs: object) -> Tensors:
    return ()


def ops() -> Mapping[str, Op]:
    """The catalogue; `add` has a backward pass by all variants but ``cuda_scalar``, and ``tunable`` has 8 configurations."""
    add = catalogue()["add"]
    gradient = TensorSpec(name="dout_N", axes=("n",))
    back = Backward(
        inputs=(*add.inputs, gradient),
        outputs=(TensorSpec(name="dx_N", axes=("n",)), TensorSpec(name="dy_N", axes=("n",))),
        cost=add.cost,
        reference=_reference,
        bound=add.bound,
        rule=add.rule,
    )
    tunable = Variant(
        name="tunable",
        backend="torch",
        bind=_bind,
        summary="Something to tune.",
        space={"block": (64, 128, 256, 512), "warps": (4, 8)},
    )
    variants = tuple(
        v if v.name == "cuda_scalar" else dataclasses.replace(v, directions=("forward", "backward"))
        for v in (*add.variants, tunable)
    )
    return {**catalogue(), "add": dataclasses.replace(add, backward=back, variants=variants)}
