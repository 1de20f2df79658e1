"""What the three ops must give: exactly the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


def reference(x_VD: Tensor, ids_T: Tensor) -> Tensors:
    """The rows, element for element."""
    return (x_VD[ids_T],)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Zero, because nothing is rounded."""
    return (outputs[0].new_zeros(()).expand_as(outputs[0]),)
