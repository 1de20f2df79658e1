"""One variant against the float64 reference, with the very gate that measuring uses: `kernelviz.measure.gate.check`."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from kernelviz.core.problem import Problem
from kernelviz.core.result import Accuracy
from kernelviz.measure.gate.check import Comparison, Reference
from kernelviz.measure.session.inputs import allocate, as_tuple, check_specs, fill
from kernelviz.ops import Launch, Op, Variant, refresh


def inputs_of(op: Op, problem: Problem, seed: int = 0, device: str = "cpu") -> tuple[torch.Tensor, ...]:
    """The problem's inputs, filled as the product fills them."""
    directed = op.of(problem)
    tensors = allocate(directed.inputs, problem, torch.device(device))
    fill(directed, tensors, problem, seed)
    return tensors


def bind(variant: Variant, problem: Problem, inputs: Sequence[torch.Tensor]) -> Launch:
    """The variant's launch in the problem's direction."""
    directed = variant.of_backward() if problem.direction == "backward" else variant
    launch = directed.bind(*inputs, **directed.keywords(problem))
    refresh(launch)
    return launch


def compare(
    op: Op, problem: Problem, inputs: Sequence[torch.Tensor], outputs: torch.Tensor | tuple[torch.Tensor, ...]
) -> Accuracy:
    """Outputs, computed elsewhere, against the reference of these inputs."""
    return judged(Reference(op.of(problem), problem, inputs), outputs)


def reference_of(op: Op, problem: Problem, inputs: Sequence[torch.Tensor]) -> Reference:
    """The reference of these inputs as they are now, whatever a call will write into them."""
    found = Reference(op.of(problem), problem, tuple(t.clone() for t in inputs))
    found.prepare()
    return found


def reasons_of(accuracy: Accuracy) -> str:
    """Why an accuracy check did not pass, as facts, or nothing."""
    return "" if accuracy.passed else "; ".join(map(repr, accuracy.reasons)) or "no reason is given"


def judged(reference: Reference, outputs: torch.Tensor | tuple[torch.Tensor, ...]) -> Accuracy:
    found, given = Comparison(), as_tuple(outputs)
    fault = check_specs(reference.op, reference.problem, given)
    assert fault is None, fault
    found.add(reference, given)
    return found.accuracy(reference.op.rule)


def checked(op: Op, variant: Variant, problem: Problem, seed: int = 0, device: str = "cpu") -> Accuracy:
    """Bind, call once, compare. The reference is computed first: some variants write into their inputs."""
    inputs = inputs_of(op, problem, seed, device)
    directed = op.of(problem)
    launch = bind(variant, problem, inputs)
    fill(directed, inputs, problem, seed)  # binding may have called it
    refresh(launch)
    return judged(reference_of(op, problem, inputs), launch())
