"""A measuring session: one device, its timer and its bound variants, for the life of one worker process."""

import gc
import traceback
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial

import torch

from kernelviz.core import (
    BadField,
    Case,
    CaseDone,
    CaseStep,
    Device,
    Environment,
    InspectionDone,
    Method,
    Problem,
    Step,
    TracerFailure,
    Tuned,
)
from kernelviz.core.configuration import base_name
from kernelviz.measure.compile_ahead.device_facts import facts_of
from kernelviz.measure.compile_ahead.messages import DeviceFacts, UpcomingCases
from kernelviz.measure.compile_ahead.processes import CompilesAhead
from kernelviz.measure.compile_ahead.selection import cases_to_compile
from kernelviz.measure.roofs import calibrate
from kernelviz.measure.session import failures
from kernelviz.measure.session.binding import BoundProblem, configured
from kernelviz.measure.session.contract import UNTUNED, CaseFailed, Emit, Stop
from kernelviz.measure.session.device_state import DeviceState
from kernelviz.measure.session.environment import device_of, environment_of
from kernelviz.measure.session.own_functions import OwnFunctions
from kernelviz.measure.session.problem_measurement import ProblemMeasurement
from kernelviz.measure.session.profiled_calls import call_profiled, mark_end
from kernelviz.measure.timing.compilations import watch_triton
from kernelviz.measure.timing.timer import BoundLaunch, DeviceTimer
from kernelviz.ops import Op, op_named, with_plugins

CACHED_SHARE = 0.35
"""Problems stay bound while they take less than this share of the device's memory. The least recently used is dropped first, but
not the one that is measured next, as a problem whose other figures follow its cold times. A
sweep of softmax (`binding.DEVICE_SHARE`) takes 0.3 of an H200, and a little more of a smaller card: small problems have as many
copies there."""
CACHED_PROBLEMS = 64


class DeviceSession:
    """Measures problems on one device; see measure.session.contract.Session."""

    def __init__(
        self,
        device: Device,
        ops: Mapping[str, Op],
        timer: DeviceTimer,
        failures: Sequence[TracerFailure] | None = None,
        functions: OwnFunctions | None = None,
        plugins: tuple[str, ...] = (),
    ) -> None:
        """`functions`: those of this process before it imported `plugins`."""
        self.device, self.ops, self.timer = device, ops, timer
        self.state = DeviceState(device, timer, self._make_room, functions=functions, plugins=plugins)
        self._torch_device = torch.device(device.id)
        self._environment = environment_of(device, failures)
        self._problems: OrderedDict[str, BoundProblem] = OrderedDict()
        self._compilers: CompilesAhead | None = None

    def compile_with(
        self, compilers: CompilesAhead, plugins: tuple[str, ...], facts: DeviceFacts | None = None
    ) -> None:
        """See Session.compile_with. `facts`: of the GPU to compile for; None: of the session's."""
        self._compilers = compilers
        compilers.begin(facts or facts_of(self._torch_device), plugins)

    def compile_ahead(self, run_id: str, upcoming: Sequence[UpcomingCases]) -> None:
        """See Session.compile_ahead."""
        if self._compilers is None:
            return
        try:
            self._compilers.expect(run_id, cases_to_compile(self.ops, upcoming))
        except Exception:  # the session compiles everything itself
            traceback.print_exc()

    def environment(self) -> Environment:
        return self._environment

    @property
    def spoilt(self) -> str | None:
        return self.state.spoilt

    def measure(
        self,
        problem: Problem,
        variants: tuple[str, ...],
        baseline: str,
        method: Method,
        emit: Emit,
        stop: Stop,
        *,
        tuned: Mapping[str, Tuned] = UNTUNED,
        following: str | None = None,
    ) -> None:
        """See Session.measure. Returns early, with cases left, when the process is spoilt."""
        if self.state.crowded():
            return
        op = op_named(problem.op, self.ops).of(problem)
        chosen = [configured(op, v, tuned) for v in variants]
        compilers = self._compilers if method.compiles_ahead else None
        measurement = ProblemMeasurement(
            self.state, op, problem, baseline, method, emit, stop, tuned, compilers=compilers
        )
        for variant in chosen:
            measurement.step(variant.name, "binding")
        try:
            with nullcontext() if compilers is None else compilers.running():
                bound = self._bound(op, problem)
        except Exception as error:
            self.state.note(error)
            for variant in chosen:
                emit(CaseDone(result=measurement.result(variant, failures.failure(error))))
            return
        if "cold" in method.figures:
            # Variants that are compiled already, or that compile quickly, are measured first.
            prompt = [v for v in chosen if not v.slow_compile or v.name == baseline or v.name in bound.variants]
            measurement.cold(bound, prompt)
            for variant in chosen:
                if variant not in prompt and self.spoilt is None:
                    measurement.cold(bound, [variant])
        if self.spoilt is None and not stop() and set(method.figures) - {"cold"}:
            measurement.secondary(bound, chosen)
        if compilers is not None and stop():
            compilers.cancel()
        if bound.drop(v.name for v in chosen if v.name != baseline and base_name(v.name) != v.name):
            self._release()
        self._trim(None if stop() else following)

    def measure_judged(
        self,
        problem: Problem,
        variant: str,
        method: Method,
        judge_fd: int,
        emit: Emit,
        stop: Stop,
        *,
        tuned: Mapping[str, Tuned] = UNTUNED,
    ) -> None:
        """See Session.measure_judged."""
        from kernelviz.measure.judge.trials import JudgeLink

        link = JudgeLink(judge_fd)
        op = op_named(problem.op, self.ops).of(problem)
        chosen = configured(op, variant, tuned)
        measurement = ProblemMeasurement(self.state, op, problem, variant, method, emit, stop, tuned, judged=True)
        measurement.step(variant, "binding")
        try:
            memory = link.memory(op, problem, self._torch_device)
            free_bytes = self._free_bytes()
            bound = BoundProblem(op, problem, self._torch_device, free_bytes, self.device.name, memory.inputs)
        except Exception as error:
            self.state.note(error)
            emit(CaseDone(result=measurement.result(chosen, failures.failure(error))))
            return
        measurement.cold(bound, [chosen])
        ready = bound.variants.get(chosen.name)
        if ready is not None and not stop():
            launch = ready.timed.launches[0].launch
            link.make_calls(launch, memory, lambda _: measurement.step(chosen.name, "checking"), stop)

    def calibrate(self, emit: Emit, stop: Stop) -> None:
        self._problems.clear()
        self._release()
        calibrate(self.device, self.timer, emit, stop)
        self._release()

    def selftest(self, emit: Emit, stop: Stop, *, only: tuple[str, ...] = (), quick: bool = False) -> None:
        """See Session.selftest."""
        from kernelviz.measure.selftest import selftest

        self._problems.clear()
        self._release()
        opened = partial(DeviceSession, self.device, timer=self.timer)
        selftest(self.state, self.ops, opened, emit, stop, only=only, quick=quick)
        self.state.share("processes of the selftest")  # ncu and the other timers ran in processes of their own

    def launch(
        self, problem: Problem, variant: str, calls: int, *, tuned: Mapping[str, Tuned] = UNTUNED, marked: bool = False
    ) -> None:
        """Bind and call once, then flush and call `calls` times with no tracer attached, for profilers such as ncu. `marked`:
        launch the end marker afterwards, also if the variant fails."""
        op = op_named(problem.op, self.ops).of(problem)
        try:
            bound = self._bound(op, problem)
            chosen = configured(op, variant, tuned)
            launch, _ = bound.bind(chosen, bound.inputs)
            call_profiled(self.timer, BoundLaunch(launch, bound.restore(chosen, bound.inputs)), calls)
            bound.wait()
        finally:
            if marked:
                mark_end(self.timer)

    def inspect(
        self, problem: Problem, variant: str, emit: Emit, stop: Stop, *, tuned: Mapping[str, Tuned] = UNTUNED
    ) -> None:
        """See Session.inspect."""
        from kernelviz.measure.inspection.case import inspect

        op = op_named(problem.op, self.ops).of(problem)
        chosen = configured(op, variant, tuned)

        def progress(step: Step, fraction: float | None) -> None:
            emit(CaseStep(case=Case(problem=problem, variant=variant), step=step, fraction=fraction))

        try:
            inspection = inspect(self._bound(op, problem), chosen, self._environment, progress, stop)
        except Exception as error:
            self.state.note(error)
            raise CaseFailed(failures.failure(error)) from error
        if inspection is not None:
            emit(InspectionDone(inspection=inspection))
        self._release()  # memory of the comparison, so that it does not count as memory of the bound problems
        self._trim()

    def _bound(self, op: Op, problem: Problem) -> BoundProblem:
        known = self._problems.get(problem.key)
        if known is not None:
            self._problems.move_to_end(problem.key)
            return known
        if op.needed_bytes(problem) > self._free_bytes():
            self._problems.clear()
            self._release()
        bound = BoundProblem(op, problem, self._torch_device, self._free_bytes(), self.device.name)
        self._problems[problem.key] = bound
        return bound

    def _free_bytes(self) -> int:
        if self._torch_device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self._torch_device)
            cached = torch.cuda.memory_reserved(self._torch_device) - torch.cuda.memory_allocated(self._torch_device)
            return int(free + cached)
        import psutil

        return int(psutil.virtual_memory().available)

    def _trim(self, following: str | None = None) -> None:
        """Drop the problems that were used least recently while together they take too much memory, but not `following`."""
        limit = CACHED_SHARE * (self.device.memory_bytes or self._free_bytes())
        droppable = [key for key in self._problems if key != following]
        while droppable and len(self._problems) > CACHED_PROBLEMS:
            del self._problems[droppable.pop(0)]
        if self._problems and self._reserved_bytes() > limit:
            for bound in self._problems.values():
                bound.forget_references()
            self._release()
        while droppable and (excess := self._reserved_bytes() - limit) > 0:
            # Many small problems at once: releasing memory takes 0.1 s, however little it is.
            while droppable and excess > 0:
                excess -= self._problems.pop(droppable.pop(0)).needed_bytes
            self._release()

    def _reserved_bytes(self) -> int:
        """Bytes that the bound problems take: on a GPU all that torch has reserved (with the graphs' memory and buffers)."""
        if self._torch_device.type == "cuda":
            return torch.cuda.memory_reserved(self._torch_device)
        return sum(b.needed_bytes for b in self._problems.values())

    def _release(self) -> None:
        gc.collect()
        if self._torch_device.type == "cuda" and not self.state.context_lost:
            torch.cuda.empty_cache()

    def _make_room(self) -> str | None:
        """After out-of-memory: drop all bound problems. Return why this process must be replaced, where that does not help."""
        self._problems.clear()
        self._release()
        if self._torch_device.type == "cuda":
            reserved = torch.cuda.memory_reserved(self._torch_device)
            if reserved > 0.5 * (self.device.memory_bytes or reserved * 2):
                return f"memory stays high after out-of-memory ({reserved / 2**30:.1f} GiB)"
        return None


def open_session(device_id: str, plugins: tuple[str, ...] = ()) -> DeviceSession:
    """Open the device and its tools. Raises UnknownName, DeviceError (with the remedy), BadField for a plug-in."""
    device = device_of(device_id)
    if device.kind == "cuda":
        from kernelviz.measure.timing.cuda import CudaTimer
        from kernelviz.measure.timing.events import EventStamps
        from kernelviz.measure.timing.kernels import Instruments
        from kernelviz.measure.timing.trace import Stamps, TracedStamps
        from kernelviz.measure.timing.tracers import open_tracer

        ops, functions = _ops_of(plugins)
        torch.cuda.set_device(torch.device(device_id))
        watch_triton()
        tools = Instruments(torch.device(device_id))
        tracer, failures = open_tracer()
        stamps: Stamps = EventStamps(tools) if tracer is None else TracedStamps(tracer)
        return DeviceSession(device, ops, CudaTimer(tools, stamps), failures, functions, plugins)
    from kernelviz.measure.timing.host import HostTimer

    ops, functions = _ops_of(plugins)
    return DeviceSession(device, ops, HostTimer(device.last_level_cache_bytes), functions=functions, plugins=plugins)


def _ops_of(plugins: tuple[str, ...]) -> tuple[Mapping[str, Op], OwnFunctions]:
    """The ops with those of plug-ins, and the functions of this process before it imported them. Errors: BadField."""
    functions = OwnFunctions()
    ops = with_plugins(plugins)
    if replaced := functions.replaced():
        raise BadField("plug-in", ", ".join(plugins), f"importing it replaced {', '.join(replaced[:3])}, which measure")
    return ops, functions
