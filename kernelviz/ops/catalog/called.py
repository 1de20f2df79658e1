"""The problem that tensors state: sizes by the shapes of an op's inputs, and the number format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kernelviz.core.dtypes import DTYPES
from kernelviz.core.errors import BadField
from kernelviz.core.problem import Direction, Problem
from kernelviz.ops.catalog.op import Op

_NAMES = {f"torch.{known.torch_name}": name for name, known in DTYPES.items()}


class HasShape(Protocol):
    """A tensor, as far as its shape and format are needed."""

    @property
    def shape(self) -> Sequence[int]: ...

    @property
    def dtype(self) -> object: ...


def problem_of_tensors(
    op: Op,
    inputs: Sequence[HasShape],
    sizes: Mapping[str, int],
    *,
    compute: str | None = None,
    direction: Direction = "forward",
) -> Problem:
    """The problem of a call with these inputs. `sizes`: of the axes that no input has as a dimension, such as k of `topk`.

    Errors: BadField for another number of inputs, and for a shape or a format that does not fit.
    """
    specs = op.inputs if direction == "forward" or op.backward is None else op.backward.inputs
    names = ", ".join(spec.name for spec in specs)
    if len(inputs) != len(specs):
        raise BadField("inputs", len(inputs), f"{direction} {op.name} takes {len(specs)} tensors: {names}")
    known = dict(sizes)
    for spec, tensor in zip(specs, inputs, strict=True):
        if len(tensor.shape) != len(spec.axes):
            raise BadField(f"input {spec.name}", f"{len(tensor.shape)} dimensions", f"it has {len(spec.axes)}")
        for axis, size in zip(spec.axes, tensor.shape, strict=True):
            if isinstance(axis, str) and known.setdefault(axis, int(size)) != size:
                raise BadField(f"input {spec.name}", tuple(tensor.shape), f"its size {axis} is {known[axis]} elsewhere")
    own = next((_NAMES.get(str(t.dtype)) for spec, t in zip(specs, inputs, strict=True) if spec.dtype is None), None)
    problem = op.problem(known, own or op.dtypes[0], compute=compute, direction=direction)
    for spec, tensor in zip(specs, inputs, strict=True):
        if tuple(tensor.shape) != spec.shape(problem.sizes):
            raise BadField(f"input {spec.name}", tuple(tensor.shape), f"it must be {spec.shape(problem.sizes)}")
        wanted = f"torch.{DTYPES[spec.dtype or problem.dtype].torch_name}"
        if str(tensor.dtype) != wanted:
            raise BadField(f"input {spec.name}", str(tensor.dtype), f"it must be {wanted}")
    return problem
