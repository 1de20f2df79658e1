"""Inspection of one case: run the call on newly filled inputs, and describe its inputs and outputs.

Nothing is timed. Later timings are not affected, because the inputs are filled with the timed seed again at the end.
"""

from collections.abc import Callable, Sequence

from torch import Tensor

from kernelviz.core import Environment, Inspection, Step, TensorFacts, timestamps
from kernelviz.core.backends import BACKENDS
from kernelviz.core.inspection import MemoryMoment, MemoryState
from kernelviz.core.problem import TIMED_SEED
from kernelviz.core.reasons import MutatedInput, Reason
from kernelviz.measure.gate.check import Comparison
from kernelviz.measure.gate.element_errors import errors_of
from kernelviz.measure.inspection.tensor_facts import facts_of
from kernelviz.measure.session.binding import Answer, BoundProblem
from kernelviz.measure.session.contract import Stop
from kernelviz.measure.session.inputs import check_specs, fill
from kernelviz.measure.session.restore import remember
from kernelviz.measure.timing.host import HostTimed
from kernelviz.measure.timing.timer import BoundLaunch, Timed
from kernelviz.ops import Variant, refresh

Progress = Callable[[Step, float | None], None]
"""A function that is called when the case enters a step, with the fraction that is done."""
SEEDS = 3
"""Number of fills that are checked, as in a usual run (core.problem.Method)."""


def inspect(
    bound: BoundProblem,
    variant: Variant,
    environment: Environment,
    progress: Progress,
    stop: Stop,
) -> Inspection | None:
    """The inspection of the case, or None if it was stopped. Errors of the variant's bind or call are passed on."""
    progress("compiling" if variant.slow_compile or BACKENDS[variant.backend].compiler else "binding", None)
    fill(bound.op, bound.inputs, bound.problem, TIMED_SEED)  # the last call timed may have changed them
    existing = bound.already_bound(variant)
    timed = _Eager(bound, variant) if existing is None else existing.timed
    states = timed.memory_states if isinstance(timed, _Eager) else existing.memory_states if existing else ()
    try:
        return _inspected(bound, variant, timed, states, environment, progress, stop)
    finally:
        fill(bound.op, bound.inputs, bound.problem, TIMED_SEED)
        refresh(timed.launches[0].launch)
        remember(timed)


class _Eager(HostTimed):
    """The variant, bound again and called eagerly with poisoned outputs.

    If the call allocates its outputs, it gets the block of memory that was poisoned and freed before.
    """

    def __init__(self, bound: BoundProblem, variant: Variant) -> None:
        before = bound.memory_state("before_bind")
        launch = variant.bind(*bound.inputs, **variant.keywords(bound.problem))
        refresh(launch)
        bound.wait()
        after = bound.memory_state("after_bind")
        super().__init__(BoundLaunch(launch, bound.restore(variant, bound.inputs)))
        bound.wait()
        self.memory_states = before, after, bound.memory_state("after_first_call")
        self._wait = bound.wait

    def run_once(self) -> tuple[Tensor, ...]:
        outputs = super().run_once()
        self._wait()
        return outputs


def _inspected(
    bound: BoundProblem,
    variant: Variant,
    timed: Timed,
    of_binding: Sequence[MemoryState],
    environment: Environment,
    progress: Progress,
    stop: Stop,
) -> Inspection | None:
    for seed in reversed(range(SEEDS)):
        progress("checking", (SEEDS - 1 - seed) / (SEEDS + 1))
        if stop():
            return None
        memory = list(of_binding)

        def read_memory(moment: MemoryMoment, memory: list[MemoryState] = memory) -> None:
            memory.append(bound.memory_state(moment))

        answer = bound.answer(variant, timed, seed, fill_again=True, around=read_memory)
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
            call="eager" if isinstance(timed, _Eager) else "timed",
            tensors=_tensors(bound, answer),
            errors=errors_of(bound.reference(seed), answer.values) if fault is None else (),
            source_digest=variant.source_digest(),
            configuration=None if variant.configuration is None else dict(variant.configuration),
            memory=tuple(memory),
        )
    return None


def _judged(bound: BoundProblem, answer: Answer, seed: int) -> tuple[bool, tuple[Reason, ...]]:
    """Whether the call passes the rule of the correctness gate, and the reasons if it does not."""
    comparison, reference = Comparison(), bound.reference(seed)
    comparison.add(reference, answer.values)
    if answer.undeclared:
        comparison.reasons.append(MutatedInput(inputs=answer.undeclared))
    if comparison.inexact and reference.cached:
        bound.diagnose(comparison, seed, answer.values)
    accuracy = comparison.accuracy(bound.op.rule)
    return accuracy.passed, accuracy.reasons


def _tensors(bound: BoundProblem, answer: Answer) -> tuple[TensorFacts, ...]:
    named = {spec.name: t for spec, t in zip(bound.op.inputs, bound.inputs, strict=True)}
    names = [spec.name for spec in bound.op.outputs]
    inputs = [facts_of(name, "input", tensor) for name, tensor in named.items()]
    outputs = [
        facts_of(names[i] if i < len(names) else f"output {i}", "output", values, of=output, inputs=named)
        for i, (output, values) in enumerate(zip(answer.outputs, answer.values, strict=True))
    ]
    return (*inputs, *outputs)
