"""A measuring session: one device, its timer and its bound variants, for the life of one worker process."""

from __future__ import annotations

import datetime
import gc
from collections import OrderedDict
from collections.abc import Mapping

import msgspec
import torch

from kernelviz.core.events import CaseDone, CaseStep, Step
from kernelviz.core.problem import Case, Method, Problem
from kernelviz.core.result import Accuracy, Conditions, Failure, Outcome, Preparation, Result, Timing
from kernelviz.core.run import Device, Environment
from kernelviz.hardware.datasheet import datasheet
from kernelviz.hardware.telemetry import conditions
from kernelviz.measure import faults
from kernelviz.measure.binding import BoundProblem, BoundVariant
from kernelviz.measure.contract import Emit, Stop
from kernelviz.measure.environment import device_of, environment_of
from kernelviz.measure.roofs import calibrate
from kernelviz.measure.rounds import Rounds, Series
from kernelviz.measure.timer import DeviceTimer
from kernelviz.measure.trace import TraceError, WrongWork
from kernelviz.metrics.statistics import MIN_BLOCKS
from kernelviz.ops import Op, Variant, op_named, with_plugins

KEPT_SHARE = 0.3
"""Bound problems are kept while they take less than this share of the device's memory, least recently used goes first."""
KEPT_PROBLEMS = 64


class DeviceSession:
    """Measures problems on one device; see measure.contract.Session."""

    def __init__(self, device: Device, ops: Mapping[str, Op], timer: DeviceTimer, tracer: str | None) -> None:
        self.device, self.ops, self.timer = device, ops, timer
        self._torch_device = torch.device(device.id)
        self._environment = environment_of(device, tracer)
        self._kept: OrderedDict[str, BoundProblem] = OrderedDict()
        self._spoilt: str | None = None

    def environment(self) -> Environment:
        return self._environment

    @property
    def spoilt(self) -> str | None:
        return self._spoilt or self.timer.worn

    def measure(
        self, problem: Problem, variants: tuple[str, ...], baseline: str, method: Method, emit: Emit, stop: Stop
    ) -> None:
        """See Session.measure. Returns early, with cases left, when the process is spoilt."""
        op = op_named(problem.op, self.ops)
        task = Task(self, op, problem, baseline, method, emit, stop)
        for name in variants:
            task.step(name, "binding")
        try:
            bound = self._bound(op, problem)
        except Exception as error:
            self._note(error)
            for name in variants:
                emit(CaseDone(result=task.result(op.variant_named(name), faults.failure(error, calling=False))))
            return
        chosen = [op.variant_named(v) for v in variants]
        # What is compiled already, and what compiles at once, is measured first.
        prompt = [v for v in chosen if not v.late or v.name in bound.variants]
        late = [v for v in chosen if v not in prompt]
        task.measure_together(bound, prompt)
        for variant in late:
            if self.spoilt is None:
                task.measure_together(bound, [variant])
        self._trim()

    def calibrate(self, emit: Emit, stop: Stop) -> None:
        self._kept.clear()
        self._release()
        calibrate(self.device, self.timer, emit, stop)
        self._release()

    def launch(self, problem: Problem, variant: str, calls: int) -> None:
        """Bind, then flush + call `calls` times with no tracer attached (to point ncu at)."""
        op = op_named(problem.op, self.ops)
        bound = self._bound(op, problem)
        chosen = op.variant_named(variant)
        launch, _ = bound.bind(chosen)
        restore = bound.restore(chosen)
        for _ in range(calls):
            if restore is not None:
                restore()
            self.timer.flush()
            launch()
        if self._torch_device.type == "cuda":
            torch.cuda.synchronize(self._torch_device)

    def conditions(self) -> Conditions:
        return conditions(self.device)

    def _bound(self, op: Op, problem: Problem) -> BoundProblem:
        found = self._kept.get(problem.key)
        if found is not None:
            self._kept.move_to_end(problem.key)
            return found
        if op.needed_bytes(problem) > self._free_bytes():
            self._kept.clear()
            self._release()
        bound = BoundProblem.allocate(op, problem, self._torch_device, self._free_bytes(), self.device.name)
        self._kept[problem.key] = bound
        return bound

    def _free_bytes(self) -> int:
        if self._torch_device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self._torch_device)
            cached = torch.cuda.memory_reserved(self._torch_device) - torch.cuda.memory_allocated(self._torch_device)
            return int(free + cached)
        import psutil

        return int(psutil.virtual_memory().available)

    def _trim(self) -> None:
        limit = KEPT_SHARE * (self.device.memory_bytes or self._free_bytes())
        while len(self._kept) > 1 and (
            len(self._kept) > KEPT_PROBLEMS or sum(b.needed_bytes for b in self._kept.values()) > limit
        ):
            self._kept.popitem(last=False)
        if len(self._kept) == 1 and next(iter(self._kept.values())).needed_bytes > limit:
            self._kept.clear()
            self._release()

    def _release(self) -> None:
        gc.collect()
        if self._torch_device.type == "cuda" and self._spoilt is None:
            torch.cuda.empty_cache()

    def _note(self, error: Exception) -> None:
        """After an error: is this process still good for the next problem?"""
        if isinstance(error, TraceError) and not isinstance(error, WrongWork):
            self._spoilt = f"the tracer lost its records: {error}"
        elif faults.sticky(error):
            self._spoilt = f"CUDA error: {faults.one_line(error, 200)}"
        elif faults.out_of_memory(error):
            self._kept.clear()
            self._release()
            if self._torch_device.type == "cuda":
                held = torch.cuda.memory_reserved(self._torch_device)
                if held > 0.5 * (self.device.memory_bytes or held * 2):
                    self._spoilt = f"memory stays high after out-of-memory ({held / 2**30:.1f} GiB)"


class Task:
    """One problem being measured: its series, its rounds and what has been told of it."""

    def __init__(
        self, session: DeviceSession, op: Op, problem: Problem, baseline: str, method: Method, emit: Emit, stop: Stop
    ) -> None:
        self.session, self.op, self.problem, self.baseline, self.method = session, op, problem, baseline, method
        self.emit, self.stop = emit, stop
        self.rounds = Rounds(session.timer, method, stop)
        self.base: Series | None = None
        self.again: Series | None = None
        self.base_bound: BoundVariant | None = None

    def step(self, variant: str, step: Step, fraction: float | None = None) -> None:
        self.emit(CaseStep(case=Case(problem=self.problem, variant=variant), step=step, fraction=fraction))

    def measure_together(self, bound: BoundProblem, variants: list[Variant]) -> None:
        """Prepare the variants, then rounds over those that stand, with the baseline; emit a result for each."""
        ready: list[BoundVariant] = []
        for variant in variants:
            prepared = self._prepared(bound, variant)
            if self.session.spoilt is not None:
                return
            if prepared is not None:
                ready.append(prepared)
        if not ready:
            return
        series: list[Series] = []
        for b in ready:
            made = Series(b.variant.name, b.timed)
            series.append(made)
            if b.variant.name == self.baseline and b.accuracy.passed:
                self.base, self.base_bound = made, b
                self.again = Series(f"{self.baseline} again", b.timed)
        fresh = list(series)
        if self.base is not None and self.again is not None:
            series = [*(s for s in series if s is not self.base), self.base]
            if len(series) > 1:  # alone, there is nothing whose verdict would need a noise floor
                series.append(self.again)
        try:
            self._take(series, fresh)
        except Exception as error:
            self.session._note(error)
            if self.session.spoilt is not None:
                # Whose work broke the context cannot be told from here; the cases are measured again elsewhere, alone
                # with the one that comes first.
                raise
            for b in ready:
                self.emit(CaseDone(result=self.result(b.variant, faults.failure(error, calling=True), b)))
            return
        now = self.session.conditions()
        for b, s in zip(ready, fresh, strict=True):
            self.emit(CaseDone(result=self._measured(b, s, now)))
        if self.base is not None and self.base_bound is not None and self.base not in fresh:
            # The baseline's rounds beside a late variant are part of its series: told again, complete.
            self.emit(CaseDone(result=self._measured(self.base_bound, self.base, now)))

    def _prepared(self, bound: BoundProblem, variant: Variant) -> BoundVariant | None:
        """The variant ready for rounds, or None when it failed (and that was told)."""
        if self.stop():
            self.emit(
                CaseDone(
                    result=self.result(variant, Failure(stage="cancelled", message="cancelled before it was measured"))
                )
            )
            return None
        kept = bound.variants.get(variant.name)
        if kept is not None:
            return kept
        self.step(variant.name, "compiling" if variant.late or variant.backend in ("triton", "cuda") else "binding")
        calling = False

        def checking() -> None:
            nonlocal calling
            calling = True
            self.step(variant.name, "checking")

        try:
            return bound.prepare(variant, self.session.timer, self.method.seeds, checking)
        except Exception as error:
            self.session._note(error)
            if isinstance(error, TraceError) and not isinstance(error, WrongWork):
                raise  # no fault of the variant: it is measured again by a fresh process
            self.emit(CaseDone(result=self.result(variant, faults.failure(error, calling=calling))))
            return None

    def _take(self, series: list[Series], fresh: list[Series]) -> None:
        for s in fresh:
            self.step(s.name, "measuring", 0.0)

        def progress(fraction: float) -> None:
            for s in fresh:
                self.step(s.name, "measuring", fraction)

        again = self.again if self.again in series else None
        self.rounds.take(series, self.base, again, progress)

    def _measured(self, bound: BoundVariant, series: Series, now: Conditions) -> Result:
        if len(series.blocks) < MIN_BLOCKS and self.stop():
            failed = Failure(stage="cancelled", message=f"cancelled after {len(series.blocks)} of {MIN_BLOCKS} blocks")
            return self.result(bound.variant, failed, bound)
        timer = self.session.timer
        cold = series.figure(timer, timer.describe(series.timed))
        again = self.again if bound.variant.name == self.baseline and self.again and self.again.blocks else None
        several = len(series.timed.kernels) > 1
        timing = Timing(
            device_cold_s=cold,
            # One kernel a call: busy is the span, whose samples are not stored twice.
            busy_s=series.figure(timer, "sum of kernel durations", busy=True) if several else None,
            again_s=again.figure(timer, timer.describe(again.timed)) if again is not None else None,
        )
        conditions = self._conditions(series, now)
        outcome = self._judged(timing, bound.accuracy, conditions.sm_clock_hz)
        return self.result(bound.variant, outcome, bound, conditions)

    def _judged(self, timing: Timing, accuracy: Accuracy, clock_hz: float | None) -> Outcome:
        if not accuracy.passed:
            return Failure(stage="wrong", message=accuracy.message, timing=timing)
        floor = self._least_possible_s(clock_hz)
        cold = timing.device_cold_s
        if floor is not None and cold is not None and cold.estimate < floor:
            message = (
                f"{cold.estimate * 1e6:.3g} us is less than the {floor * 1e6:.3g} us that the data sheet of "
                f"{self.session.device.name} allows for this traffic and work; the call cannot have done it"
            )
            return Failure(stage="impossible", message=message, timing=timing)
        return timing

    def _least_possible_s(self, clock_hz: float | None) -> float | None:
        """(unique reads + writes beyond the L2) / data-sheet bandwidth, or flop / data-sheet peak; None when unknown."""
        sheet = datasheet(self.session.device.name) if self.session.device.kind == "cuda" else None
        if sheet is None:
            return None
        cost = self.op.cost_of(self.problem)
        cache = self.session.device.last_level_cache_bytes or 0
        least = (cost.read_bytes + max(0, cost.written_bytes - cache)) / sheet.bandwidth_bytes_per_s
        peak = sheet.peaks.get(self.problem.precision)
        return max(least, cost.work_flop / peak.at(clock_hz)) if peak else least

    def _conditions(self, series: Series, now: Conditions) -> Conditions:
        clocks = sorted(b.clock_hz for b in series.blocks if b.clock_hz)
        notes = list(series.timed.notes)
        if series.slow_clock:
            notes.append(
                f"{series.slow_clock} of {len(series.blocks)} blocks ran at a clock more than 1 % under the first"
            )
        return msgspec.structs.replace(
            now,
            sm_clock_hz=clocks[len(clocks) // 2] if clocks else now.sm_clock_hz,
            retried_blocks=series.retried,
            notes=tuple(notes),
        )

    def result(
        self,
        variant: Variant,
        outcome: Outcome,
        bound: BoundVariant | None = None,
        conditions: Conditions | None = None,
    ) -> Result:
        preparation: Preparation | None = bound.preparation if bound else None
        return Result(
            problem=self.problem,
            variant=variant.name,
            outcome=outcome,
            accuracy=bound.accuracy if bound else None,
            cost=self.op.cost_of(self.problem),
            conditions=conditions,
            kernels=bound.timed.kernels if bound else (),
            preparation=preparation,
            backend=variant.backend,
            source_digest=variant.source_digest(),
            measured_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )


def open_session(device_id: str, plugins: tuple[str, ...] = ()) -> DeviceSession:
    """Open the device and its tools. Raises UnknownName, DeviceError (with the remedy), BadField for a plug-in."""
    device = device_of(device_id)
    ops = with_plugins(plugins)
    if device.kind == "cuda":
        from kernelviz.measure.cuda import CudaTimer
        from kernelviz.measure.instruments import Instruments
        from kernelviz.measure.trace import open_tracer

        torch.cuda.set_device(torch.device(device_id))
        tracer, line = open_tracer()
        return DeviceSession(device, ops, CudaTimer(Instruments(torch.device(device_id)), tracer), line)
    from kernelviz.measure.host import HostTimer

    return DeviceSession(device, ops, HostTimer(device.last_level_cache_bytes), None)
