"""Variants bound to the tensors of one problem, kept so that a repeated point costs milliseconds."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from kernelviz.core.errors import DoesNotFit
from kernelviz.core.problem import Problem
from kernelviz.core.result import Accuracy, Preparation
from kernelviz.measure.check import Comparison, Reference
from kernelviz.measure.tensors import allocate, as_tuple, check_specs, fill, unchanged
from kernelviz.measure.timer import DeviceTimer, Timed
from kernelviz.ops import Launch, Op, Variant

TIMED_SEED = 0
"""The inputs that are timed are the fill of this seed."""


class WrongOutput(Exception):
    """A variant whose outputs have the wrong number, shape or dtype: it cannot even be compared."""


@dataclass(slots=True)
class BoundVariant:
    """A variant ready to be timed, with what its gate found."""

    variant: Variant
    timed: Timed
    preparation: Preparation
    accuracy: Accuracy


@dataclass(slots=True)
class BoundProblem:
    """The inputs of one problem on the device, and the variants bound to them."""

    op: Op
    problem: Problem
    device: torch.device
    inputs: tuple[Tensor, ...]
    needed_bytes: int
    variants: dict[str, BoundVariant] = field(default_factory=dict)
    _references: dict[int, Reference] = field(default_factory=dict)

    @classmethod
    def allocate(cls, op: Op, problem: Problem, device: torch.device, free_bytes: int, name: str) -> BoundProblem:
        """Inputs filled with the timed seed. Raises DoesNotFit before anything is allocated."""
        needed = op.needed_bytes(problem)
        if needed > free_bytes:
            raise DoesNotFit(needed, free_bytes, name)
        inputs = allocate(op.inputs, problem, device)
        fill(inputs, problem, TIMED_SEED)
        return cls(op, problem, device, inputs, needed)

    def bind(self, variant: Variant) -> tuple[Launch, Preparation]:
        """Bind and call once. Raises whatever the variant raises; WrongOutput for outputs that cannot be compared."""
        keywords = {}
        if "compute" in inspect.signature(variant.bind).parameters:
            keywords["compute"] = self.problem.compute
        begun = time.perf_counter()
        launch = variant.bind(*self.inputs, **keywords)
        self._wait()
        bound = time.perf_counter()
        outputs = as_tuple(launch())
        self._wait()
        first = time.perf_counter()
        fault = check_specs(self.op, self.problem, outputs)
        if fault is not None:
            raise WrongOutput(fault)
        return launch, Preparation(bind_s=bound - begun, first_call_s=first - bound)

    def restore(self, variant: Variant) -> Callable[[], None] | None:
        """What puts back the inputs that the variant declares it changes, or None."""
        changed = [t for spec, t in zip(self.op.inputs, self.inputs, strict=True) if spec.name in variant.mutates]
        if not changed:
            return None
        pristine = [t.clone() for t in changed]

        def put_back() -> None:
            for tensor, kept in zip(changed, pristine, strict=True):
                tensor.copy_(kept)

        return put_back

    def check(self, variant: Variant, timed: Timed, seeds: int) -> Accuracy:
        """Refill the same buffers, replay the timed call, compare; for each seed, the timed one last."""
        found = Comparison()
        for seed in reversed(range(seeds)):
            fill(self.inputs, self.problem, seed)
            reference = self._reference(seed)
            outputs = timed.run_once()
            found.add(reference, outputs)
            changed = [self.op.inputs[i].name for i in unchanged(self.inputs, self.problem, seed)]
            undeclared = [name for name in changed if name not in variant.mutates]
            if undeclared:
                found.messages.append(f"it changes its input {', '.join(undeclared)} without declaring it")
                fill(self.inputs, self.problem, seed)
        fill(self.inputs, self.problem, TIMED_SEED)
        return found.accuracy(self.op.rule)

    def _reference(self, seed: int) -> Reference:
        """The reference of the inputs as they are now, which the caller filled with `seed`."""
        if seed not in self._references:
            self._references[seed] = Reference(self.op, self.problem, self.inputs)
        return self._references[seed]

    def prepare(self, variant: Variant, timer: DeviceTimer, seeds: int, checking: Callable[[], None]) -> BoundVariant:
        """Bind, make ready for timing and put through the gate."""
        launch, preparation = self.bind(variant)
        timed = timer.prepare(launch, self.restore(variant))
        checking()
        begun = time.perf_counter()
        accuracy = self.check(variant, timed, seeds)
        preparation = Preparation(
            bind_s=preparation.bind_s, first_call_s=preparation.first_call_s, check_s=time.perf_counter() - begun
        )
        bound = BoundVariant(variant, timed, preparation, accuracy)
        self.variants[variant.name] = bound
        return bound

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
