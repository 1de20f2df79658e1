"""The measurement of one problem: prepare its variants, run the rounds, and emit the results."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import msgspec

from kernelviz.core import (
    Accuracy,
    Case,
    CaseDone,
    CaseStep,
    CodeCaptured,
    CodeContent,
    Conditions,
    Failure,
    Method,
    Outcome,
    Preparation,
    Problem,
    Result,
    Step,
    Timing,
    Tuned,
    timestamps,
)
from kernelviz.core.backends import BACKENDS
from kernelviz.core.reasons import (
    CancelledBefore,
    CancelledDuring,
    ImpossiblyFast,
    Reason,
    Recompiled,
    ReplacedFunctions,
    Stage,
)
from kernelviz.hardware.datasheet import datasheet
from kernelviz.measure.compile_ahead.processes import CompilesAhead
from kernelviz.measure.naive.process import naive_in_new_process
from kernelviz.measure.session import failures
from kernelviz.measure.session.binding import BoundProblem, BoundVariant, stale
from kernelviz.measure.session.contract import UNTUNED, CaseFailed, Emit, Stop
from kernelviz.measure.session.device_state import DeviceState
from kernelviz.measure.timing.compilations import compilations
from kernelviz.measure.timing.rounds import START, Rounds, Series
from kernelviz.measure.timing.secondary import Progress, SecondaryTimings
from kernelviz.measure.timing.timer import CallRaised, may_compile
from kernelviz.measure.timing.trace import TraceError, WrongWork
from kernelviz.metrics.statistics import MIN_BLOCKS
from kernelviz.ops import Op, Variant


class ProblemMeasurement:
    """The measurement of one problem: its series, its rounds and the results that it emits."""

    def __init__(
        self,
        state: DeviceState,
        op: Op,
        problem: Problem,
        baseline: str,
        method: Method,
        emit: Emit,
        stop: Stop,
        tuned: Mapping[str, Tuned] = UNTUNED,
        *,
        judged: bool = False,
        compilers: CompilesAhead | None = None,
    ) -> None:
        """`judged`: another process decides what counts, so that it does not matter what this one has become. `compilers`: the
        processes that compile ahead, which run only while nothing is timed."""
        self.judged, self.compilers = judged, compilers
        self.state, self.op, self.problem, self.baseline, self.method = state, op, problem, baseline, method
        self.emit, self.stop, self.tuned = emit, stop, tuned
        self.watch = state.watch()
        self.rounds = Rounds(state.timer, method, stop, self.watch.look)
        self.base: Series | None = None
        self.again: Series | None = None
        self.base_bound: BoundVariant | None = None
        self.alone: Series | None = None
        """The baseline's series while it has only rounds in which nothing else was measured."""
        self.raised = set[str]()
        """The variants of which a timed call raised an exception."""

    def step(self, variant: str, step: Step, fraction: float | None = None) -> None:
        self.emit(CaseStep(case=Case(problem=self.problem, variant=variant), step=step, fraction=fraction))

    def cold(self, bound: BoundProblem, variants: Sequence[Variant]) -> None:
        """Prepare the variants, measure the prepared ones in rounds with the baseline, and emit a result for each."""
        ready = self._ready(bound, variants)
        while ready and self.state.spoilt is None:
            ready = self._cold_rounds(bound, ready)

    def _cold_rounds(self, bound: BoundProblem, ready: Sequence[BoundVariant]) -> list[BoundVariant]:
        """Measure these variants in rounds, and emit a result for each. If a call raises an exception, only this variant fails,
        and the others, of which no result was emitted, are returned."""
        earlier = self.base, self.base_bound, self.again, self.alone
        marks = [(s, s.mark()) for s in (self.base, self.again) if s is not None]
        fresh = [Series(b.variant.name, b.timed) for b in ready]
        for b, one in zip(ready, fresh, strict=True):
            if b.variant.name == self.baseline and b.accuracy.passed:
                self.base, self.base_bound = one, b
                self.again = Series(f"{self.baseline} again", b.timed)
        series = fresh if self.base is None else [*(s for s in fresh if s is not self.base), self.base]
        usual = () if self.base is None else self.base.means()
        if self.alone is not None and len(series) > 1:
            # The baseline's time must come from rounds that it shares: without neighbours its calls differ by up to 1 %.
            self.alone.rewind(START)
        self.alone = self.base if len(series) == 1 else None
        # A single series has no verdict that needs a noise floor.
        again = self.again if len(series) > 1 else None
        self._launch_alike(fresh)
        before = compilations()
        try:
            self.rounds.take_stable(
                [*series, again] if again else series, self.base, again, self._progress(ready), usual
            )
        except CallRaised as error:
            self.base, self.base_bound, self.again, self.alone = earlier
            for s, mark in marks:
                s.rewind(mark)
            return self._without(ready, error)
        except Exception as error:
            self._broken(ready, error)
            return []
        self._check_functions()
        compiled = compilations() > before
        suspects = may_compile([b.timed for b in ready])
        now = self.watch.summary()
        for b, s in zip(ready, fresh, strict=True):
            if compiled and any(b.timed is one for one in suspects):
                self._fail(b.variant, "wrong", Recompiled(), b)
            else:
                if s.blocks:  # otherwise the outputs are those of the checks
                    b.accuracy = bound.timed_accuracy(b)
                self.emit(CaseDone(result=self._measured(b, s, now)))
        extended = self.base is not None and not any(s is self.base for s in fresh)
        if extended and self.base is not None and self.base_bound is not None and len(self.base.blocks) >= MIN_BLOCKS:
            # The baseline's rounds beside a slowly compiled variant extend its series: its result is emitted again.
            self.emit(CaseDone(result=self._measured(self.base_bound, self.base, now)))
        return []

    def _launch_alike(self, fresh: Sequence[Series]) -> None:
        """Let the calls of these rounds be launched in the same way where it matters; the baseline's, too, if it has no times."""
        base = None if self.base is None or any(one is self.base for one in fresh) else self.base
        measured = [] if base is None or not base.blocks else [base.timed]
        free = [] if base is None or base.blocks else [base.timed]
        self.state.timer.launch_alike([*(one.timed for one in fresh), *free], measured)

    def _without(self, ready: Sequence[BoundVariant], error: CallRaised) -> list[BoundVariant]:
        """Fail the variant whose call raised the exception, and return the others. It may be the baseline of earlier rounds."""
        base = [] if self.base_bound is None or self.base_bound in ready else [self.base_bound]
        one = next((b for b in (*ready, *base) if any(call.launch is error.launch for call in b.timed.launches)), None)
        if one is None or one in base:
            self.base = self.base_bound = self.again = self.alone = None
        if one is None:
            self._broken(ready, error)
            return []
        self._broken([one], error)
        self.raised.add(one.variant.name)
        return [b for b in ready if b is not one]

    def secondary(self, bound: BoundProblem, variants: Sequence[Variant]) -> None:
        """Measure the secondary timings of every correct variant; emit them as results without a cold time."""
        ready = [b for b in self._ready(bound, variants) if b.accuracy.passed]
        while ready and self.state.spoilt is None:
            ready = self._secondary_timings(ready)

    def _secondary_timings(self, ready: list[BoundVariant]) -> list[BoundVariant]:
        """Measure the secondary timings of these variants, and emit them. As `_cold_rounds`, it returns the others if a call
        raises an exception."""
        naive = naive_in_new_process(self.state.device.id, self.problem, self.state.plugins)
        timings = SecondaryTimings(
            self.state, self.method, self.stop, self._progress(ready), self.watch, measure_naive=naive
        )
        try:
            timing_by_variant = timings.take(ready, self.baseline)
        except CallRaised as error:
            return self._without(ready, error)
        except Exception as error:
            self._broken(ready, error)
            return []
        self._check_functions()
        now = self.watch.summary()
        for b in ready:
            name = b.variant.name
            timing, notes = timing_by_variant.get(name, Timing()), tuple(timings.notes[name])
            if name in timings.compiled:
                self._fail(b.variant, "wrong", Recompiled(), b)
            elif timing != Timing() or notes:
                seen = msgspec.structs.replace(now, notes=notes, retried_warm_blocks=timings.retried.get(name))
                self.emit(CaseDone(result=self.result(b.variant, timing, b, seen)))
        return []

    def _replaced(self) -> ReplacedFunctions | None:
        """The functions of this process that a variant has replaced, unless another process decides what counts."""
        return None if self.judged else self.state.tampered()

    def _check_functions(self) -> None:
        """Errors: CaseFailed if a call of the rounds replaced functions. Nobody knows which variant it was, so the supervisor
        measures each of them again in a process of its own."""
        replaced = self._replaced()
        if replaced is not None:
            raise CaseFailed(Failure(stage="wrong", reasons=(replaced,)))

    def _ready(self, bound: BoundProblem, variants: Sequence[Variant]) -> list[BoundVariant]:
        ready: list[BoundVariant] = []
        for variant in (v for v in variants if v.name not in self.raised):
            prepared = self._prepared(bound, variant)
            if self.state.spoilt is not None:
                break
            if prepared is not None:
                ready.append(prepared)
        return ready

    def _broken(self, ready: Sequence[BoundVariant], error: Exception) -> None:
        """Fail all variants of the rounds that an error ended.

        If the process can no longer be used, the error is raised. It is not known which variant broke the context, so the
        supervisor measures the cases again in new processes.
        """
        self.state.note(error)
        if self.state.spoilt is not None:
            raise error
        for b in ready:
            self.emit(CaseDone(result=self.result(b.variant, failures.failure(error), b)))

    def _prepared(self, bound: BoundProblem, variant: Variant) -> BoundVariant | None:
        """The variant ready for rounds, or None when it failed (its result is emitted then)."""
        if self.stop():
            self._fail(variant, "cancelled", CancelledBefore())
            return None
        existing = bound.already_bound(variant)
        if existing is not None:
            return existing
        refused = variant.refuses(self.problem)
        if refused is not None:  # only this process knows what a plug-in says of its configurations
            self._fail(variant, "unavailable", refused)
            return None
        self.step(
            variant.name, "compiling" if variant.slow_compile or BACKENDS[variant.backend].compiler else "binding"
        )
        calling = False

        def checking() -> None:
            nonlocal calling
            calling = True
            self.step(variant.name, "checking")

        def captured(contents: tuple[CodeContent, ...]) -> None:
            self.emit(CodeCaptured(case=Case(problem=self.problem, variant=variant.name), contents=contents))

        untimed: Callable[[], AbstractContextManager[object]] = nullcontext
        if self.compilers is not None:
            untimed = self.compilers.running
            work = self.problem, variant.name, self.tuned.get(variant.name)
            self.compilers.wait(work, self.stop, self.emit)
        begun = time.perf_counter()
        try:
            prepared = bound.prepare(variant, self.state.timer, self.method.seeds, checking, captured, untimed)
        except Exception as error:
            self.state.note(error)
            self._replaced()  # an exception may follow from it
            if isinstance(error, TraceError) and not isinstance(error, WrongWork):
                raise  # not the variant's fault: a new process measures it again
            spent = Preparation(bind_s=time.perf_counter() - begun)
            result = self.result(variant, failures.failure(error))
            self.emit(CaseDone(result=result if calling else msgspec.structs.replace(result, preparation=spent)))
            return None
        fault = self.state.timer.refused() or self._replaced()
        if fault is not None:
            del bound.variants[variant.name]
            self._fail(variant, "wrong", fault, prepared)
            return None
        return prepared

    def _fail(self, variant: Variant, stage: Stage, reason: Reason, bound: BoundVariant | None = None) -> None:
        """Emit the variant's failure for this reason."""
        self.emit(CaseDone(result=self.result(variant, Failure(stage=stage, reasons=(reason,)), bound)))

    def _progress(self, ready: Sequence[BoundVariant]) -> Progress:
        """A function that reports the fraction of the measurement for all these variants, which begins now, or for one."""

        def progress(fraction: float, only: BoundVariant | None = None) -> None:
            for b in ready if only is None else (only,):
                self.step(b.variant.name, "measuring", fraction)

        progress(0.0)
        return progress

    def _measured(self, bound: BoundVariant, series: Series, now: Conditions) -> Result:
        if len(series.blocks) < MIN_BLOCKS and self.stop() and series.stopped is None:
            cut_short = CancelledDuring(blocks=len(series.blocks), needed=MIN_BLOCKS)
            return self.result(bound.variant, Failure(stage="cancelled", reasons=(cut_short,)), bound)
        timer = self.state.timer
        cold = series.figure(timer, timer.describe(series.timed))
        again = self.again if bound.variant.name == self.baseline and self.again and self.again.blocks else None
        timing = Timing(
            device_cold_s=cold,
            # With one kernel a call, the busy time equals the span, so its samples are not stored twice.
            busy_s=series.figure(timer, "sum of kernel durations", busy=True)
            if len(series.timed.kernels) > 1
            else None,
            again_s=again.figure(timer, timer.describe(again.timed)) if again is not None else None,
        )
        clocks = sorted(b.clock_hz for b in series.blocks if b.clock_hz)
        conditions = msgspec.structs.replace(
            now,
            sm_clock_hz=clocks[len(clocks) // 2] if clocks else now.sm_clock_hz,
            retried_blocks=series.retried,
            notes=(*series.notes(), *series.stop_note(self.method)),
        )
        outcome = self._judged(timing, bound.accuracy, conditions.sm_clock_hz)
        return self.result(bound.variant, outcome, bound, conditions)

    def _judged(self, timing: Timing, accuracy: Accuracy, clock_hz: float | None) -> Outcome:
        if not accuracy.passed:
            return Failure(stage="wrong", reasons=accuracy.reasons, message=accuracy.message, timing=timing)
        floor = self._least_possible_s(clock_hz)
        cold = timing.device_cold_s
        if floor is not None and cold is not None and cold.estimate < floor:
            too_fast = ImpossiblyFast(time_s=cold.estimate, least_s=floor, device=self.state.device.name)
            return Failure(stage="impossible", reasons=(too_fast,), timing=timing)
        return timing

    def _least_possible_s(self, clock_hz: float | None) -> float | None:
        """(unique reads + writes beyond the L2) / data-sheet bandwidth, or flop / data-sheet peak; None when unknown."""
        sheet = datasheet(self.state.device.name) if self.state.device.kind == "cuda" else None
        if sheet is None:
            return None
        cost = self.op.cost_of(self.problem)
        cache = self.state.device.last_level_cache_bytes or 0
        least = (cost.read_bytes + max(0, cost.written_bytes - cache)) / sheet.bandwidth_bytes_per_s
        peak = sheet.peaks.get(self.problem.precision)
        rate = peak.at(clock_hz) if peak else None
        return max(least, cost.work_flop / rate) if rate else least

    def result(
        self,
        variant: Variant,
        outcome: Outcome,
        bound: BoundVariant | None = None,
        conditions: Conditions | None = None,
    ) -> Result:
        known = self.tuned.get(variant.name)
        why_not = stale(variant, known) if known is not None and variant.space else None
        if why_not is not None:
            conditions = conditions or Conditions()
            conditions = msgspec.structs.replace(conditions, notes=(*conditions.notes, why_not))
        return Result(
            problem=self.problem,
            variant=variant.name,
            outcome=outcome,
            accuracy=bound.accuracy if bound else None,
            cost=self.op.cost_of(self.problem),
            conditions=conditions,
            kernels=bound.timed.kernels if bound else (),
            preparation=bound.preparation if bound else None,
            memory=bound.memory if bound else msgspec.UNSET,
            backend=variant.backend,
            source_digest=variant.source_digest(),
            configuration=None if variant.configuration is None else dict(variant.configuration),
            tuned_by=known.run_id if known is not None and variant.space and why_not is None else None,
            measured_at=timestamps.now("seconds"),
            code=bound.code if bound and bound.code else msgspec.UNSET,
        )
