"""Variants bound to the tensors of one problem. They stay bound, so that measuring a problem again takes milliseconds."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import msgspec
import torch
from torch import Tensor

from kernelviz.core import (
    Accuracy,
    CodeContent,
    CompiledCode,
    DoesNotFit,
    PeakMemory,
    Preparation,
    Problem,
    StaleTuning,
    Tuned,
    UsageError,
)
from kernelviz.core.inspection import MemoryMoment, MemoryState
from kernelviz.core.problem import TIMED_SEED, problem_of_seed
from kernelviz.core.reasons import MutatedInput, NoLaunch, Refused, Remembered, Unfinished, Unwritten
from kernelviz.measure.compiled_code.capture import Capture
from kernelviz.measure.gate import host_calls
from kernelviz.measure.gate.check import CACHED_BYTES, Comparison, Reference
from kernelviz.measure.gate.diagnosis import diagnosis
from kernelviz.measure.session.inputs import allocate, as_tuple, check_seeds, check_specs, fill, unchanged
from kernelviz.measure.session.peak_memory import memory_meter, memory_now
from kernelviz.measure.session.restore import Restore, remember
from kernelviz.measure.timing.host import HostTimed
from kernelviz.measure.timing.timer import BoundLaunch, DeviceTimer, Timed
from kernelviz.ops import Launch, Op, Variant, refresh

MAX_BUFFERS = 60
"""A short call is timed on at most this many copies of its tensors. An add of 2^20 took 4.05-4.23 us depending on addresses."""
BUFFERS_BYTES, FREE_SHARE, DEVICE_SHARE = 2 * 2**30, 1 / 16, 1 / 72
"""All copies of a problem's tensors take at most this much, and these shares of the free and of all memory of the device: large
tensors cover so many addresses that few copies are enough. Each variant has outputs of its own for all copies, so these limits
decide how many problems can stay bound. With 2 GiB, a sweep of softmax over nine sizes with six variants takes about 41 GiB. An
H200 keeps that bound; an H100 (80 GB) did not, and took 11 s instead of 1.6 s. 2 GiB are about 1/72 of an H200, so that such a
sweep takes the same share of every card."""
REFERENCE_SHARE = 1 / 24
"""The reference of a seed is cached while it takes at most this share of the free memory: cumsum of 2^28 by four variants took
12.6 s on an H200 when each variant computed the reference again."""
_APART_BYTES = 2**21
"""The minimum size of a tensor's memory, because smaller tensors would share pages of 2 MiB."""


def copies_bytes(device: torch.device, spare_bytes: int) -> int:
    """The bytes that all copies of a problem's tensors may take, of `spare_bytes` that are free; 0 on a processor."""
    if device.type != "cuda":
        return 0
    device_bytes = torch.cuda.get_device_properties(device).total_memory
    return min(BUFFERS_BYTES, int(FREE_SHARE * spare_bytes), int(DEVICE_SHARE * device_bytes))


class NotBound(Refused):
    """Binding a variant did not return a function that launches it."""


class WrongOutput(Refused):
    """A variant returned outputs of the wrong number, type, shape, dtype or strides, so that they cannot be compared."""


def configured(op: Op, name: str, tuned: Mapping[str, Tuned]) -> Variant:
    """The variant with this name. A variant with tunable parameters gets the configuration in its name, the tuned one or the
    default. Errors: UnknownName, BadField."""
    variant = op.variant_named(name)
    if not variant.space or variant.configuration is not None:
        return variant
    known = tuned.get(name)
    usable = known is not None and stale(variant, known) is None
    return variant.configured(known.configuration if known is not None and usable else {})


def stale(variant: Variant, known: Tuned) -> StaleTuning | None:
    """Why the tuned configuration of this variant is not used, or None. Another source may have another best configuration."""
    if known.source_digest != variant.source_digest():
        return StaleTuning(run_id=known.run_id, another="source")
    try:
        variant.configured(known.configuration)
    except UsageError:
        return StaleTuning(run_id=known.run_id, another="space")
    return None


@dataclass(slots=True)
class Answer:
    """The result of a call for one fill of its inputs.

    `values` are the `outputs`, or copies of them if the inputs were filled again because the call changed them. `undeclared`
    are the inputs that the call changed without declaring it.
    """

    outputs: tuple[Tensor, ...]
    values: tuple[Tensor, ...]
    undeclared: tuple[str, ...]


@dataclass(slots=True)
class BoundVariant:
    """A variant ready to be timed, with the accuracy from its check, and what compilers made for it."""

    variant: Variant
    timed: Timed
    preparation: Preparation
    accuracy: Accuracy
    memory: PeakMemory
    code: tuple[CompiledCode, ...] = ()
    memory_states: tuple[MemoryState, ...] = ()
    warm: Timed | None = None


class BoundProblem:
    """The inputs of one problem on the device, filled with the timed seed, and the variants bound to them."""

    def __init__(
        self,
        op: Op,
        problem: Problem,
        device: torch.device,
        free_bytes: int,
        name: str,
        inputs: tuple[Tensor, ...] | None = None,
    ) -> None:
        """Allocate the inputs on the device called `name`, or use these. Raises DoesNotFit before anything is allocated."""
        self.op, self.problem, self.device = op, problem, device
        self.needed_bytes = op.needed_bytes(problem)
        if self.needed_bytes > free_bytes:
            raise DoesNotFit(self.needed_bytes, free_bytes, name)
        self.inputs = allocate(op.inputs, problem, device) if inputs is None else inputs
        fill(op, self.inputs, problem, TIMED_SEED)
        one_buffer = max(op.tensor_bytes(problem), _APART_BYTES * (len(op.inputs) + len(op.outputs)))
        spare_bytes = free_bytes - self.needed_bytes
        self.buffers = max(1, min(MAX_BUFFERS, copies_bytes(device, spare_bytes) // one_buffer))
        self.more_inputs: list[tuple[Tensor, ...]] = []
        self.variants: dict[str, BoundVariant] = {}
        self._most_reference_bytes = max(CACHED_BYTES, int(REFERENCE_SHARE * spare_bytes))
        self._references: dict[int, Reference] = {}
        self.memory_now = memory_now(device)
        self._inputs_change = False
        """Whether a variant was bound that changes inputs, so that the calls of other variants find other numbers."""

    def bind(
        self, variant: Variant, inputs: tuple[Tensor, ...], before_call: Callable[[], None] = lambda: None
    ) -> tuple[Launch, Preparation]:
        """Bind and call once. `before_call` is called between the two.

        Raises whatever the variant raises; NotBound; WrongOutput for outputs that cannot be compared.
        """
        keywords = variant.keywords(self.problem)
        begun = time.perf_counter()
        launch = variant.bind(*inputs, **keywords)
        if not callable(launch):
            raise NotBound(NoLaunch(type=type(launch).__name__))
        self.wait()
        refresh(launch)
        self.wait()
        bound = time.perf_counter()
        before_call()
        begun_call = time.perf_counter()
        outputs = as_tuple(launch())
        self.wait()
        first = time.perf_counter()
        self._check_specs(outputs)
        spent = Preparation(bind_s=bound - begun, first_call_s=first - begun_call)
        return launch, msgspec.structs.replace(spent, search_s=bound - begun) if variant.searches else spent

    def _check_specs(self, outputs: tuple[Tensor, ...]) -> None:
        fault = check_specs(self.op, self.problem, outputs)
        if fault is not None:
            raise WrongOutput(fault)

    def bound_alone(self, variant: Variant) -> Launch:
        """A bound call that keeps this problem's inputs.

        A call of CUDA C++ has only their addresses, so it must not be used longer than they are. Raises what `bind` raises.
        """
        launch, inputs = self.bind(variant, self.inputs)[0], self.inputs

        def call() -> Tensor | tuple[Tensor, ...]:
            assert inputs
            return launch()

        return call

    def restore(self, variant: Variant, inputs: tuple[Tensor, ...]) -> Restore | None:
        """The `Restore` of the inputs that the variant declares it changes, or None."""
        changed = [t for spec, t in zip(self.op.inputs, inputs, strict=True) if spec.name in variant.mutates]
        return Restore(changed) if changed else None

    def memory_state(self, moment: MemoryMoment) -> MemoryState:
        """The memory of the device that is allocated and reserved now."""
        allocated_bytes, reserved_bytes = self.memory_now()
        return MemoryState(moment=moment, allocated_bytes=allocated_bytes, reserved_bytes=reserved_bytes)

    def answer(
        self,
        variant: Variant,
        timed: Timed,
        seed: int,
        *,
        fill_again: bool = False,
        around: Callable[[MemoryMoment], object] = lambda moment: None,
    ) -> Answer:
        """Fill the same buffers with `seed`, replay the timed call, and return its outputs.

        A call may change inputs from which the reference has yet to be computed: where the reference is too large for the
        cache, or with `fill_again`, such inputs are then filled again. `around` is called directly before and after the call.
        """
        fill(self.op, self.inputs, self.problem, seed)
        remember(timed)
        reference = self.reference(seed)
        # Computed and cached before the call, which may change the inputs from which it is computed.
        reference.prepare()
        refresh(timed.launches[0].launch)
        around("before_call")
        values = outputs = timed.run_once()
        around("after_call")
        changed = [self.op.inputs[i].name for i in unchanged(self.op, self.inputs, self.problem, seed)]
        if changed and (fill_again or not reference.cached):
            values = tuple(t.clone() for t in outputs)
            fill(self.op, self.inputs, self.problem, seed)
        return Answer(outputs, values, tuple(name for name in changed if name not in variant.mutates))

    def check(self, variant: Variant, timed: Timed, seeds: int) -> Accuracy:
        """Compare the answers of the timed call with the reference, for each seed, the timed seed last. Raises WrongOutput.

        Only the timed seed has the data of the problem where they could hide a wrong kernel (`inputs.problem_of_seed`).
        """
        comparison = Comparison()
        wrong: tuple[int, tuple[Tensor, ...]] | None = None
        for seed in reversed(check_seeds(self.problem, seeds)):
            answer, reference = self.answer(variant, timed, seed), self.reference(seed)
            self._check_specs(answer.outputs)
            comparison.add(reference, answer.values)
            if wrong is None and comparison.inexact and reference.cached:
                wrong = seed, tuple(t.clone() for t in answer.values)
            if answer.undeclared:
                comparison.reasons.append(MutatedInput(inputs=answer.undeclared))
            del answer  # its tensors must be free for the next call
        if wrong is not None:
            self.diagnose(comparison, *wrong)
        for inputs in (self.inputs, *self.more_inputs):
            fill(self.op, inputs, self.problem, TIMED_SEED)
        for bound_launch in timed.launches:
            refresh(bound_launch.launch)
        remember(timed)
        return comparison.accuracy(self.op.rule)

    def _host_cheat(self, timed: Timed) -> Unfinished | Remembered | None:
        """What the call does on a processor to look fast, which no tracer shows there."""
        if not isinstance(timed, HostTimed):
            return None

        def launch() -> tuple[Tensor, ...]:
            timed.outputs = as_tuple(timed.launch())
            return timed.outputs

        def write(values: Sequence[Tensor]) -> None:
            for tensor, value in zip(self.inputs, values, strict=True):
                tensor.copy_(value)
            remember(timed)
            refresh(timed.launch)

        return host_calls.cheat_of(host_calls.HostCall(launch, timed.clear, self.inputs, write))

    def timed_accuracy(self, bound: BoundVariant) -> Accuracy:
        """The accuracy of what the timed calls on a processor left in their outputs, if it is wrong, or else that of the check.

        A call that works only at times leaves outputs unwritten: of every call a sample is examined, and the outputs of the last
        one are compared with the reference. Nothing is known if another variant changes the inputs between the calls of this one.
        """
        if self._inputs_change or not isinstance(bound.timed, HostTimed) or not bound.accuracy.passed:
            return bound.accuracy
        if bound.timed.unwritten:
            unwritten = Unwritten(elements=bound.timed.unwritten)
            return msgspec.structs.replace(
                bound.accuracy, passed=False, unwritten=unwritten.elements, reasons=(unwritten,)
            )
        fault = check_specs(self.op, self.problem, bound.timed.outputs)
        if fault is not None:  # a call that returns other tensors after some calls
            return msgspec.structs.replace(bound.accuracy, passed=False, reasons=(fault,))
        reference = self.reference(TIMED_SEED)
        if not reference.cached:
            return bound.accuracy
        comparison = Comparison()
        comparison.add(reference, bound.timed.outputs)
        last = comparison.accuracy(self.op.rule)
        return bound.accuracy if last.passed else last

    def diagnose(self, comparison: Comparison, seed: int, outputs: tuple[Tensor, ...]) -> None:
        """Add the known cause of these wrong outputs for the fill of that seed to the reasons, where there is one."""
        fill(self.op, self.inputs, self.problem, seed)
        other_references = {s: r for s, r in self._references.items() if s != seed}
        cause = diagnosis(self.op, problem_of_seed(self.problem, seed), self.inputs, outputs, other_references)
        if cause is not None:
            comparison.reasons.insert(0, cause)

    def reference(self, seed: int) -> Reference:
        """The reference of the inputs as they are now, which the caller filled with `seed`."""
        if seed not in self._references:
            of_seed = problem_of_seed(self.problem, seed)
            self._references[seed] = Reference(self.op, of_seed, self.inputs, self._most_reference_bytes)
        return self._references[seed]

    def forget_references(self) -> None:
        """Drop the cached references; another variant computes them again. Bound variants stay."""
        self._references.clear()

    def prepare(
        self,
        variant: Variant,
        timer: DeviceTimer,
        seeds: int,
        checking: Callable[[], None],
        captured: Callable[[tuple[CodeContent, ...]], None] = lambda contents: None,
        untimed: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> BoundVariant:
        """Bind the variant, prepare it for timing and check it.

        `captured` is called with the contents of the artifacts that compilers made, `checking` before the check. `untimed` is
        open while nothing is timed by which a figure is made: compilers may run then.
        """
        meter = memory_meter(self.device)
        states = [self.memory_state("before_bind")]
        with untimed(), Capture(variant) as capture:

            def bound_now() -> None:
                capture.bound()
                states.append(self.memory_state("after_bind"))

            (launch, preparation), bind_bytes = meter.peak(lambda: self.bind(variant, self.inputs, bound_now))
            states.append(self.memory_state("after_first_call"))
        call_bytes = meter.peak(launch)[1]
        code, contents = capture.code()
        if contents:
            captured(contents)
        bound_launch = BoundLaunch(launch, self.restore(variant, self.inputs))
        timed = timer.prepare(bound_launch, self._more_launches(variant))
        checking()
        begun = time.perf_counter()
        with untimed():
            accuracy = self.check(variant, timed, seeds)
        cheat = self._host_cheat(timed) if accuracy.passed else None
        if cheat is not None:
            accuracy = msgspec.structs.replace(accuracy, passed=False, reasons=(cheat,))
        preparation = msgspec.structs.replace(preparation, check_s=time.perf_counter() - begun)
        if accuracy.passed:
            timer.refine(timed)
        self._inputs_change |= bool(variant.mutates) or any(isinstance(r, MutatedInput) for r in accuracy.reasons)
        memory = PeakMemory(bind_bytes=bind_bytes, call_bytes=call_bytes)
        bound = BoundVariant(variant, timed, preparation, accuracy, memory, code, tuple(states))
        self.variants[variant.name] = bound
        return bound

    def already_bound(self, variant: Variant) -> BoundVariant | None:
        """The bound variant; None where it is not bound, or bound with another configuration (which is then dropped)."""
        existing = self.variants.get(variant.name)
        if existing is not None and existing.variant.configuration != variant.configuration:
            del self.variants[variant.name]
            return None
        return existing

    def drop(self, names: Iterable[str]) -> bool:
        """Drop the variants bound under these names, with their graphs and outputs; return whether there were any.

        A configuration of a tuning is measured once: a hundred of them, with two copies each of outputs of 256 MiB, would hold
        50 GiB.
        """
        return bool([name for name in names if self.variants.pop(name, None) is not None])

    def _more_launches(self, variant: Variant) -> Iterator[BoundLaunch]:
        """The variant bound to the problem's further copies of its inputs, which are allocated one by one on demand."""
        for number in range(self.buffers - 1):
            if number == len(self.more_inputs):
                copies = allocate(self.op.inputs, self.problem, self.device, _APART_BYTES)
                fill(self.op, copies, self.problem, TIMED_SEED)
                self.more_inputs.append(copies)  # only when filled: `fill` may run out of memory
                # Freed when the next copy is allocated, so that copies are not directly adjacent.
                self._spacer = torch.empty((1 + 5 * number % 13) * 2**21, dtype=torch.uint8, device=self.device)
            inputs = self.more_inputs[number]
            yield BoundLaunch(self.bind(variant, inputs)[0], self.restore(variant, inputs))

    def wait(self) -> None:
        """Wait until the device is idle."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
