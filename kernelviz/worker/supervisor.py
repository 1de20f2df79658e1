"""One thread a device: it takes requests from the queue, holds the device's lock, and passes the work to the worker."""

import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from kernelviz.core import (
    Case,
    CaseDone,
    CaseStep,
    Counters,
    CountersDone,
    Device,
    DeviceBusy,
    Event,
    Failure,
    KernelvizError,
    Problem,
    Result,
    RunQueued,
    WorkerStarting,
)
from kernelviz.core.reasons import CancelledBefore, NoResult, NotJudged, ServerStopped
from kernelviz.metrics.judgement import is_contradicted, judged_result
from kernelviz.ops import catalogue
from kernelviz.ops.catalog.outcome import failed
from kernelviz.text import describe_failure, describe_reason
from kernelviz.worker.attempt import Attempt, Ending
from kernelviz.worker.conversation import converse
from kernelviz.worker.counting import Count, count
from kernelviz.worker.device_lock import DeviceLock
from kernelviz.worker.judge_slot import JudgeSlot
from kernelviz.worker.limits import Limits
from kernelviz.worker.protocol import Measure, Selftest, Work
from kernelviz.worker.queue import FairQueue
from kernelviz.worker.request import Request, RequestEnd, concerned
from kernelviz.worker.worker_slot import SESSION, WorkerSlot
from kernelviz.worker.worker_state import State, WorkerState

STOPPED = str(describe_reason(ServerStopped()))

JUDGED_TIMES = 3
"""How often a variant is measured whose time the judge contradicts."""
_APART = "each variant of this run is measured in a process of its own"

_log = logging.getLogger(__name__)
_CANCELLED = Failure(stage="cancelled", reasons=(CancelledBefore(),))


class Supervisor:
    """Does the requests of one device, one after the other. Methods may be called from any thread."""

    def __init__(
        self,
        device: Device,
        *,
        session: str = SESSION,
        limits: Limits | None = None,
        lock_directory: Path | None = None,
        prepare: bool = False,
    ) -> None:
        """`prepare`: start a worker before there is a request, unless another process measures on the device now."""
        self.device = device
        self._prepare = prepare
        self._limits = limits or Limits()
        self._lock_directory = lock_directory
        self._lock: DeviceLock | None = None
        self._queue = FairQueue()
        self._slot = WorkerSlot(device.id, session, self._limits)
        self._work_ids = itertools.count(1)
        self._shared = threading.Lock()  # for the next four
        self._current: Request | None = None
        self._closing = False
        self._state: State = "none"
        self._reported_ahead: dict[str, int] = {}
        self._judge = JudgeSlot(device.id, self._limits, copied=session == SESSION)
        self._thread = threading.Thread(target=self._run, name=f"supervisor {device.id}", daemon=True)
        self._thread.start()

    def submit(self, requests: Sequence[Request]) -> None:
        """Queue requests; each request's sink receives its events."""
        if not self._queue.put(requests):
            for request in requests:
                self._end(request, "interrupted", STOPPED)
        self._tell_positions()

    def cancel(self, run_id: str) -> list[Request]:
        """Take the run's requests out of the queue and return them. A request that is being done, whose sink already reports
        that it is cancelled, ends after its current block."""
        removed = self._queue.remove(run_id)
        self._slot.wake()
        self._tell_positions()  # the runs after it start sooner
        return removed

    def state(self) -> WorkerState:
        with self._shared:
            return WorkerState(
                state=self._state,
                run_id=self._current.run_id if self._current else None,
                owner=self._current.owner if self._current else None,
                queued=self._queue.urgent(),
                workers_started=self._slot.started,
                last_trouble="" if self._slot.trouble is None else str(describe_failure(self._slot.trouble)),
            )

    def ahead_of(self, owner: str) -> int:
        """The number of requests that are done before a new one of that owner, with the one that is being done."""
        with self._shared:
            return self._queue.ahead_of(owner) + (self._current is not None)

    def close(self) -> None:
        """Kill the worker and end the thread; requests that are queued or being done end as interrupted."""
        left = self._queue.close()
        with self._shared:
            self._closing = True
        self._slot.wake()
        if self._thread is not threading.current_thread():
            self._thread.join(self._limits.end_s + 5.0)
        for request in left:
            self._end(request, "interrupted", STOPPED)

    # In the supervisor's thread from here on.

    def _start_early(self) -> None:
        """Start a worker without a request. It creates a CUDA context, which would disturb a measurement of another process."""
        try:
            self._lock = self._lock or DeviceLock(self.device.uuid, self._lock_directory)
            if not self._lock.acquire(lambda holder: None, lambda: True):
                return
        except KernelvizError:  # a request that needs the lock reports it
            return
        try:
            self._slot.guard_fds = (self._lock.lock_fd(),)
            self._enter("starting")
            ready = self._slot.ready((), lambda reason: None, lambda: self._closing)
            self._enter("none" if ready is None else "ready")
        finally:
            self._lock.release()

    def _run(self) -> None:
        try:
            if self._prepare:
                self._start_early()
            while (request := self._queue.take()) is not None:
                with self._shared:
                    self._current = request
                ended: tuple[RequestEnd, str] = ("interrupted", "")
                try:
                    self._tell_positions()
                    ended = self._do(request)
                except Exception as error:
                    # A fault of this module or of the sink (a full disk): this run ends, and the next request is tried.
                    _log.exception("run %s ended with an error", request.run_id)
                    message = str(error) if isinstance(error, KernelvizError) else f"{type(error).__name__}: {error}"
                    ended = ("interrupted", message)
                    self._slot.end("the previous request ended with an error")
                finally:
                    with self._shared:
                        self._current = None
                        self._state = "ready" if self._slot.present else "none"
                    self._end(request, *ended)
        finally:
            self._slot.end("closing", self._limits.end_s)
            self._judge.end()
            if self._lock is not None:
                self._lock.close()

    def _end(self, request: Request, end: RequestEnd, message: str) -> None:
        try:
            request.sink.ended(end, message)
        except Exception:
            _log.exception("run %s could not be informed of its end", request.run_id)

    def _do(self, request: Request) -> tuple[RequestEnd, str]:
        """Do one request under the device's lock."""
        self._enter("waiting")
        try:
            if self._lock is None:
                self._lock = DeviceLock(self.device.uuid, self._lock_directory)
            got = self._lock.acquire(lambda holder: request.sink.tell(DeviceBusy(holder=str(holder))), self._stopping)
        except KernelvizError as error:
            return self._fail(request, Failure(stage="unavailable", message=str(error)))
        if not got and self._closing:
            return "interrupted", STOPPED
        if not got:
            self._fail(request, _CANCELLED)
            return "cancelled", ""
        if self._lock.lock_changed_hands and self.device.kind == "cuda":
            # Their CUDA context is newer than the worker's, which makes the worker's short kernels read longer (device_state.py).
            self._slot.end("another process has measured on this GPU meanwhile")
        self._slot.guard_fds = (self._lock.lock_fd(),)
        if not request.method.untrusted:
            self._judge.end()
        try:
            if isinstance(request.work, Count):
                return self._count(request, request.work)
            return self._measure(request, request.problem) if request.problem else self._once(request, request.work)
        finally:
            self._lock.release()

    def _fail(self, request: Request, failure: Failure) -> tuple[RequestEnd, str]:
        """Report the same failure for every case of the request."""
        if request.problem is not None:
            self._tell_failures(request, request.problem, dict.fromkeys(concerned(request), failure))
        return "finished", "" if request.variants else str(describe_failure(failure))

    def _tell_failures(self, request: Request, problem: Problem, failures: dict[str, Failure]) -> None:
        for variant, failure in failures.items():
            request.sink.tell(CaseDone(result=failed(catalogue().get(problem.op), problem, variant, failure)))

    def _cancelled(self) -> bool:
        return self._current is not None and self._current.sink.cancelled

    def _stopping(self) -> bool:
        return self._cancelled() or self._closing

    def _measure(self, request: Request, problem: Problem) -> tuple[RequestEnd, str]:
        """Measure all variants of a problem, in as many attempts as crashes and hangs make necessary."""
        variants = request.variants if request.timed_variants is None else request.timed_variants()
        untrusted = request.method.untrusted
        groups = [(v,) for v in variants] if untrusted else [variants] if variants else []
        attempts = deque(Attempt(problem, group, request.baseline) for group in groups)
        known = request.known_baseline() if request.known_baseline is not None and not untrusted else None
        while attempts:
            attempt = attempts.popleft()
            attempt.known = known
            if self._closing:
                return "interrupted", STOPPED
            run = self._run_judged if untrusted else self._run_attempt
            ending = Ending(failure=_CANCELLED) if self._cancelled() else run(request, attempt)
            if self._closing and attempt.left:
                return "interrupted", STOPPED
            known = None if untrusted else attempt.known
            failures, following = attempt.conclude(ending)
            self._tell_failures(request, problem, failures)
            attempts.extendleft(reversed(following))
        return ("cancelled", "") if self._cancelled() else ("finished", "")

    def _run_attempt(self, request: Request, attempt: Attempt) -> Ending:
        work = Measure(
            problem=attempt.problem,
            variants=attempt.measured_variants,
            baseline=request.baseline,
            method=request.method,
            tuned=dict(request.tuned),
            run_id=request.run_id,
            upcoming=() if request.upcoming is None else request.upcoming(),
            following=request.following,
        )
        budget_s = request.method.longest_s(max(1, len(attempt.variants)))
        return self._converse(request, work, budget_s, attempt.heard)

    def _run_judged(self, request: Request, attempt: Attempt) -> Ending:
        """Measure one variant in a new worker whose result counts only as far as the judge confirms it.

        A time that the judge contradicts is measured again: beside other work, a machine may have become slower in between.
        """
        ending, final = self._judged_once(request, attempt)
        for _ in range(JUDGED_TIMES - 1):
            if final is None or not is_contradicted(final) or self._stopping():
                break
            ending, final = self._judged_once(request, attempt)
        if final is not None and (passed_on := attempt.heard(CaseDone(result=final))) is not None:
            request.sink.tell(passed_on)
        return ending

    def _judged_once(self, request: Request, attempt: Attempt) -> tuple[Ending, Result | None]:
        """How the work ended, and the result by the judge; None where the worker sent none."""
        self._slot.end(_APART)
        workers_end = self._judge.begin(attempt.problem, self._stopping)
        if workers_end is None:
            failure = Failure(stage="unavailable", reasons=(NotJudged(),), message=self._judge.trouble)
            return Ending(failure=_CANCELLED if self._cancelled() else failure, started=False), None
        with workers_end:
            self._slot.start(request.plugins, workers_end.fileno())
        unjudged: Result | None = None

        def heard(event: Event) -> Event | None:
            nonlocal unjudged
            if not isinstance(event, CaseDone):
                return attempt.heard(event)
            if event.result.case == Case(problem=attempt.problem, variant=attempt.variants[0]):
                unjudged = event.result
            return None

        work = Measure(
            problem=attempt.problem,
            variants=attempt.variants,
            baseline=attempt.variants[0],
            method=request.method,
            tuned=dict(request.tuned),
            judged=True,
        )
        ending = self._converse(request, work, request.method.longest_s(1), heard)
        self._slot.end(_APART)
        judged = self._judge.finding(self._stopping)
        if unjudged is None or ending.failure is not None:
            return ending, None
        op = catalogue().get(attempt.problem.op)
        cost = None if op is None else op.cost_of(attempt.problem)
        evidence = (judged.times_s, judged.copy_s, judged.accuracy, judged.error)
        return ending, judged_result(unjudged, *evidence, self.device.kind, cost, self._judge.exchange_s)

    def _count(self, request: Request, work: Count) -> tuple[RequestEnd, str]:
        """Read hardware counters. ncu uses the GPU in processes of its own, after which the worker's short kernels would take
        longer (docs/measuring.md), so the worker ends first and a new one starts afterwards."""
        had_worker = self._slot.present
        self._slot.end("ncu has used the device in processes of its own", self._limits.end_s)
        self._enter("working")
        cases = {variant: Case(problem=work.problem, variant=variant) for variant in work.variants}
        for case in cases.values():
            request.sink.tell(CaseStep(case=case, step="measuring"))
        guard_fds = self._slot.guard_fds
        counted = count(work, self.device.id, request.plugins, stop=self._stopping, guard_fds=guard_fds)
        for variant, answer in counted.items():
            counters, uncounted = (answer, None) if isinstance(answer, Counters) else (None, answer)
            request.sink.tell(CountersDone(case=cases[variant], counters=counters, uncounted=uncounted))
        if self._closing:
            return "interrupted", STOPPED
        if had_worker:
            self._slot.start(request.plugins)  # it gets ready while the counters are stored and displayed
        return ("cancelled", "") if self._cancelled() else ("finished", "")

    def _once(self, request: Request, work: Work) -> tuple[RequestEnd, str]:
        """Do a calibration, a selftest or an inspection: it has no cases, so its failure becomes the message of its end."""
        # A check of the selftest makes a hundred comparisons before it sends an event.
        budget_s = self._limits.case_s * (5 if isinstance(work, Selftest) else 1)
        ending = self._converse(request, work, budget_s, lambda event: event)
        if self._closing:
            return "interrupted", STOPPED
        if self._cancelled():
            return "cancelled", ""
        return "finished", str(describe_failure(ending.failure)) if ending.failure else ""

    def _converse(
        self,
        request: Request,
        work: Work,
        budget_s: float,
        heard: Callable[[Event], Event | None],
    ) -> Ending:
        """Pass work to a worker that is ready, and replace the worker afterwards when it cannot be used for the next work."""

        def starting(reason: str) -> None:
            self._enter("starting")
            request.sink.tell(WorkerStarting(reason=reason))

        def tell(event: Event) -> None:
            if (passed_on := heard(event)) is not None:
                request.sink.tell(passed_on)

        ready = self._slot.ready(request.plugins, starting, self._stopping)
        if ready is None:
            if self._cancelled():
                return Ending(failure=_CANCELLED, started=False)
            trouble = self._slot.trouble or Failure(stage="crash", reasons=(NoResult(),))
            return Ending(failure=msgspec.structs.replace(trouble, stage="unavailable"), started=False)
        process, environment = ready
        request.sink.begun(environment)
        self._enter("working")
        numbered = msgspec.structs.replace(work, work_id=next(self._work_ids))
        ending = converse(process, numbered, self._limits, budget_s, tell, self._cancelled, lambda: self._closing)
        if ending.replace is None:
            process.trim_log()
        elif not self._closing:
            self._slot.trouble = ending.case_failure
            self._slot.end(ending.replace)
            self._slot.start(request.plugins)  # it gets ready while the results are stored and displayed
        return ending

    def _enter(self, state: State) -> None:
        with self._shared:
            self._state = state

    def _tell_positions(self) -> None:
        """Inform every waiting run of how many requests of other runs come before it, if that number has changed."""
        with self._shared:
            current = self._current
            waiting = [
                (request, before + (current is not None))
                for request, before in self._queue.waiting()
                if current is None or request.run_id != current.run_id
            ]
            changed = [(r, ahead) for r, ahead in waiting if self._reported_ahead.get(r.run_id) != ahead]
            self._reported_ahead = {request.run_id: ahead for request, ahead in waiting}
        for request, ahead in changed:
            try:
                request.sink.tell(RunQueued(ahead=ahead))
            except Exception:
                _log.exception("run %s could not be informed of its place in the queue", request.run_id)
