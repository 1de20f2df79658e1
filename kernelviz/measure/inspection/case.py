"""Inspection of one case: make the call over newly filled inputs, and describe its inputs and outputs.

Nothing is timed. Later timings are not affected, because the inputs hold the timed fill again at the end.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from kernelviz.core import CallKind, Environment, Inspection, Step, TensorFacts, timestamps
from kernelviz.core.reasons import MutatedInput, Reason
from kernelviz.measure.gate.check import Comparison
from kernelviz.measure.gate.element_errors import errors_of
from kernelviz.measure.inspection.tensor_facts import facts_of
from kernelviz.measure.session.binding import TIMED_SEED, BoundProblem, Restore
from kernelviz.measure.session.contract import Stop
from kernelviz.measure.session.inputs import as_tuple, check_specs, fill, unchanged
from kernelviz.measure.timing.host import poison
from kernelviz.ops import Launch, Variant, refresh

Progress = Callable[[Step, float | None], None]
"""Called when the case enters a step, with the fraction that is done."""
SEEDS = 3
"""Number of fills that are checked, as in a usual run (core.problem.Method)."""


@dataclass(slots=True)
class _Call:
    """The call to make: `run` poisons its outputs, restores the inputs that it changes, calls and waits."""

    kind: CallKind
    launch: Launch
    run: Callable[[], tuple[Tensor, ...]]
    restore: Restore | None


def inspect(
    bound: BoundProblem,
    variant: Variant,
    environment: Environment,
    progress: Progress,
    stop: Stop,
) -> Inspection | None:
    """The inspection of the case; None when stopped. Raises whatever the variant raises in its bind or call."""
    progress("compiling" if variant.slow_compile or variant.backend in ("triton", "cuda") else "binding", None)
    fill(bound.op, bound.inputs, bound.problem, TIMED_SEED)  # the last call timed may have changed them
    call = _call(bound, variant)
    try:
        return _inspected(bound, variant, call, environment, progress, stop)
    finally:
        fill(bound.op, bound.inputs, bound.problem, TIMED_SEED)
        refresh(call.launch)
        if call.restore is not None:
            call.restore.remember()


def _call(bound: BoundProblem, variant: Variant) -> _Call:
    """The timed call where the variant is bound; else the variant bound now, with the timed fill in its inputs."""
    existing = bound.already_bound(variant)
    if existing is not None:
        bound_launch = existing.timed.launches[0]
        restore = bound_launch.restore
        return _Call(
            "timed", bound_launch.launch, existing.timed.run_once, restore if isinstance(restore, Restore) else None
        )
    launch = variant.bind(*bound.inputs, **variant.keywords(bound.problem))
    refresh(launch)
    restore = bound.restore(variant, bound.inputs)
    return _Call("eager", launch, _Eager(launch, restore, bound.device), restore)


class _Eager:
    """A bound call, made eagerly over poisoned outputs: a call that allocates gets the block that was poisoned and freed."""

    def __init__(self, launch: Launch, restore: Restore | None, device: torch.device) -> None:
        self._launch, self._restore, self._device = launch, restore, device
        self._outputs = as_tuple(launch())

    def __call__(self) -> tuple[Tensor, ...]:
        for tensor in self._outputs:
            poison(tensor)
        if self._restore is not None:
            self._restore()
        self._outputs = ()
        self._outputs = as_tuple(self._launch())
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return self._outputs


@dataclass(slots=True)
class _Answer:
    """The result of the call for one fill. `values` are `outputs`, or copies of them where the call changed its inputs, which
    hold the fill again; `undeclared`: inputs that it changed without declaring so."""

    outputs: tuple[Tensor, ...]
    values: tuple[Tensor, ...]
    undeclared: list[str]


def _inspected(
    bound: BoundProblem, variant: Variant, call: _Call, environment: Environment, progress: Progress, stop: Stop
) -> Inspection | None:
    for seed in reversed(range(SEEDS)):
        progress("checking", (SEEDS - 1 - seed) / (SEEDS + 1))
        if stop():
            return None
        answer = _answer(bound, variant, call, seed)
        fault = check_specs(bound.op, bound.problem, answer.outputs)
        passed, reasons = _judged(bound, answer, seed) if fault is None else (False, (fault,))
        if passed and seed != TIMED_SEED:
            continue
        progress("checking", SEEDS / (SEEDS + 1))
        return Inspection(
            problem=bound.problem,
            variant=variant.name,
            environment=environment,
            created_at=timestamps.now(),
            passed=passed,
            reasons=reasons,
            rule=bound.op.rule,
            seed=seed,
            seeds=SEEDS,
            call=call.kind,
            tensors=_tensors(bound, answer),
            errors=errors_of(bound.reference(seed), answer.values) if fault is None else (),
            source_digest=variant.source_digest(),
            configuration=None if variant.configuration is None else dict(variant.configuration),
        )
    return None


def _answer(bound: BoundProblem, variant: Variant, call: _Call, seed: int) -> _Answer:
    fill(bound.op, bound.inputs, bound.problem, seed)
    if call.restore is not None:
        call.restore.remember()
    # A small reference is computed before the call, as in the gate; a large one after it, from newly filled inputs.
    bound.reference(seed).prepare()
    refresh(call.launch)
    outputs = call.run()
    changed = [bound.op.inputs[i].name for i in unchanged(bound.op, bound.inputs, bound.problem, seed)]
    values = outputs
    if changed:
        values = tuple(t.clone() for t in outputs)
        fill(bound.op, bound.inputs, bound.problem, seed)
    return _Answer(outputs, values, [name for name in changed if name not in variant.mutates])


def _judged(bound: BoundProblem, answer: _Answer, seed: int) -> tuple[bool, tuple[Reason, ...]]:
    """Whether the call passes the gate's rule, and the gate's reasons where it does not."""
    comparison, reference = Comparison(), bound.reference(seed)
    comparison.add(reference, answer.values)
    if answer.undeclared:
        comparison.reasons.append(MutatedInput(inputs=tuple(answer.undeclared)))
    if comparison.worst > 1 and not (comparison.unwritten or comparison.not_finite) and reference.cached:
        bound.diagnose(comparison, seed, answer.values)
    accuracy = comparison.accuracy(bound.op.rule)
    return accuracy.passed, accuracy.reasons


def _tensors(bound: BoundProblem, answer: _Answer) -> tuple[TensorFacts, ...]:
    named = {spec.name: t for spec, t in zip(bound.op.inputs, bound.inputs, strict=True)}
    names = [spec.name for spec in bound.op.outputs]
    inputs = [facts_of(name, "input", tensor) for name, tensor in named.items()]
    outputs = [
        facts_of(names[i] if i < len(names) else f"output {i}", "output", values, of=output, inputs=named)
        for i, (output, values) in enumerate(zip(answer.outputs, answer.values, strict=True))
    ]
    return (*inputs, *outputs)
