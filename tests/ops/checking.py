"""One variant against the float64 reference, with the very gate that measuring uses: `kernelviz.measure.check`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

import torch

from kernelviz.core.problem import Problem
from kernelviz.core.result import Accuracy
from kernelviz.measure.check import Comparison, Reference
from kernelviz.measure.tensors import allocate, as_tuple, fill
from kernelviz.ops import Launch, Op, Variant


def inputs_of(op: Op, problem: Problem, seed: int = 0, device: str = "cpu") -> tuple[torch.Tensor, ...]:
    """The problem's inputs, filled as the product fills them."""
    tensors = allocate(op.inputs, problem, torch.device(device))
    fill(tensors, problem, seed)
    return tensors


def bind(variant: Variant, problem: Problem, inputs: Sequence[torch.Tensor]) -> Launch:
    keywords: Mapping[str, str | None] = (
        {"compute": problem.compute} if "compute" in inspect.signature(variant.bind).parameters else {}
    )
    return variant.bind(*inputs, **keywords)


def compare(
    op: Op, problem: Problem, inputs: Sequence[torch.Tensor], outputs: torch.Tensor | tuple[torch.Tensor, ...]
) -> Accuracy:
    """Outputs, computed elsewhere, against the reference of these inputs."""
    found = Comparison()
    found.add(Reference(op, problem, inputs), as_tuple(outputs))
    return found.accuracy(op.rule)


def checked(op: Op, variant: Variant, problem: Problem, seed: int = 0, device: str = "cpu") -> Accuracy:
    """Bind, call once, compare."""
    inputs = inputs_of(op, problem, seed, device)
    return compare(op, problem, inputs, bind(variant, problem, inputs)())
