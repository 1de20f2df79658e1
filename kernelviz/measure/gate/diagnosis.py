"""Recognise two causes of wrong outputs: the answer to earlier inputs, and arithmetic in a narrower format."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from torch import Tensor

from kernelviz.core import Problem
from kernelviz.core.reasons import LowerPrecision, Stale
from kernelviz.measure.gate.check import Comparison, Reference
from kernelviz.ops import Op

ROUNDINGS = 2.0
"""The errors of a narrower format may reach this multiple of its bound, because the call also rounds its inputs to that format.
The root mean square is compared: if two large inputs nearly cancel, one error can be any multiple of the bound of their sum."""


def diagnosis(
    op: Op,
    problem: Problem,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    other_references: Mapping[int, Reference],
) -> Stale | LowerPrecision | None:
    """The known cause of wrong outputs for these inputs, or None.

    `other_references` are the references for other fills of the same buffers, by seed.
    """
    for seed, reference in other_references.items():
        if reference.cached and _worst(reference, outputs) <= 1:
            return Stale(seed=seed)
    for name, narrower in _narrower(op, problem):
        if _mean_share(Reference(op, narrower, inputs), outputs) <= ROUNDINGS:
            return LowerPrecision(precision=name)
    return None


def _worst(reference: Reference, outputs: Sequence[Tensor]) -> float:
    comparison = Comparison()
    comparison.add(reference, outputs)
    return float("inf") if comparison.not_finite or comparison.unwritten else comparison.worst


def _mean_share(reference: Reference, outputs: Sequence[Tensor]) -> float:
    """The root mean square of the errors divided by that of the bounds."""
    errors = bounds = 0.0
    for _, _, got, expected, bound in reference.parts(outputs):
        errors += float((got.double() - expected).square().sum())
        bounds += float(bound.expand_as(expected).square().sum())
    return float((errors / bounds) ** 0.5) if bounds else float("inf")


def _narrower(op: Op, problem: Problem) -> Iterator[tuple[str, Problem]]:
    """The same problem in formats or accumulations with fewer significant bits, the widest of them first."""
    if problem.compute == "fp32_accumulation":
        yield "fast_accumulation", msgspec.structs.replace(problem, compute="fast_accumulation")
    if problem.dtype != "fp32":
        return
    if problem.compute == "ieee" and "tf32" in op.computes.get("fp32", ()):
        yield "tf32", msgspec.structs.replace(problem, compute="tf32")
    for dtype in ("fp16", "bf16"):
        yield dtype, msgspec.structs.replace(problem, dtype=dtype, compute=None)
