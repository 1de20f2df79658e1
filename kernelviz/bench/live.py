"""What is under way on a device: a run, calibration, selftest or inspection. Results are stored before followers are told."""

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from kernelviz.bench.event_log import EventLog
from kernelviz.bench.stored_roofs import stored_roofs
from kernelviz.core import (
    LIVING,
    Case,
    CaseCounters,
    CaseDone,
    Check,
    CheckDone,
    CodeCaptured,
    Counters,
    CountersDone,
    Environment,
    Event,
    Failure,
    Inspection,
    InspectionDone,
    Problem,
    Result,
    RoofDone,
    Run,
    RunEnded,
    Selftest,
    Status,
    Timeline,
    TimelineDone,
    UnknownRun,
    timestamps,
)
from kernelviz.core.chunks import parts
from kernelviz.core.merge import merge_later_result
from kernelviz.core.problem import case_key
from kernelviz.core.reasons import CancelledBefore
from kernelviz.core.uncounted import Uncounted
from kernelviz.ops import Op
from kernelviz.ops.catalog.outcome import failed
from kernelviz.store import Store
from kernelviz.worker.request import Request, RequestEnd, concerned

_log = logging.getLogger(__name__)

# Results that are stored in one transaction: with 20,000, every other writer would wait for seconds.
_RESULTS_AT_A_TIME = 500


_shared = threading.Lock()
# A lock is removed when no thread uses it.
_locks: weakref.WeakValueDictionary[tuple[str, str], threading.RLock] = weakref.WeakValueDictionary()


@contextmanager
def run_lock(store_url: str, run_id: str) -> Iterator[None]:
    """Keep other threads of this process, also of other runners, from beginning that run of that store meanwhile."""
    with _shared:
        mine = _locks.setdefault((store_url, run_id), threading.RLock())
    with mine:
        yield


@contextmanager
def logged(name: str, problem: str) -> Iterator[None]:
    """Log an error instead of raising it. For the end of a run: its followers must learn of it, whatever the disk does."""
    try:
        yield
    except Exception:
        _log.exception("%s %s", name, problem)


class Live:
    """A receiver of events (`worker.request.Sink`)."""

    def __init__(self, name: str, store: Store, log: EventLog) -> None:
        self.name, self.log, self._store = name, log, store
        self.cancelled = False
        # Removes what is still queued of it from the queue, and returns it. Set by the code that queues it.
        self.abandon: Callable[[], Iterable[Request]] = tuple


class LiveRequest(Live):
    """A calibration, selftest or inspection, which is a single request. Its results are stored by device."""

    def __init__(self, name: str, store: Store, *, stored: bool = True) -> None:
        """`stored`: whether a selftest is stored at its end. A selftest of some checks is not."""
        super().__init__(name, store, EventLog(0))
        self._stored = stored
        self._environment: Environment | None = None
        self._created_at = timestamps.now()
        self._checks: list[Check] = []
        self._timeline: Timeline | None = None
        self.inspection: Inspection | None = None  # the result of an inspection

    @property
    def selftest(self) -> Selftest | None:
        """The results of a selftest so far. None before its worker is ready."""
        if self._environment is None:
            return None
        return Selftest(
            id=self.name,
            created_at=self._created_at,
            environment=self._environment,
            checks=tuple(self._checks),
            timeline=self._timeline,
        )

    def begun(self, environment: Environment) -> None:
        self._environment, self._created_at = environment, timestamps.now()

    def tell(self, event: Event) -> None:
        match event:
            case RoofDone(roof=roof) if self._environment is not None:
                self._store.roofs.put(self._environment.device.uuid, roof)
            case CheckDone(check=check):
                self._checks.append(check)
            case TimelineDone(timeline=timeline):
                self._timeline = timeline
            case InspectionDone(inspection=inspection):
                self.inspection = inspection
                self._store.inspections.put(inspection)
        self.log.append(event)

    def ended(self, end: RequestEnd, message: str) -> None:
        """A selftest that was interrupted is stored, too, with the message as a check that failed; a cancelled one is not."""
        # A request that failed has no case to carry the reason: it counts as interrupted, and its end carries the message.
        status: Status = "interrupted" if end == "finished" and message else end
        if status == "interrupted" and self._checks:
            question = "Did the selftest come to its end?"
            self.tell(CheckDone(check=Check(name="came_to_its_end", question=question, passed=False, message=message)))
        try:
            if self._stored and self._checks and self.selftest is not None and status != "cancelled":
                self._store.selftests.put(self.selftest)
        except Exception as error:  # the followers must learn of the end, whatever the disk does
            _log.exception("%s could not be stored", self.name)
            status, message = "interrupted", message or str(error)
        self.log.append(RunEnded(status=status, message=message))

    def cancel(self) -> None:
        """End it now if it is queued, or after its current block if it is being measured."""
        self.cancelled = True
        if list(self.abandon()):
            self.log.append(RunEnded(status="cancelled"))


class LiveCounters(LiveRequest):
    """A reading of hardware counters. They are stored with the results of `run_id`, if it is given."""

    def __init__(self, name: str, store: Store, run_id: str | None, positions: Mapping[str, int]) -> None:
        """`positions`: of the cases in the plan of the run."""
        super().__init__(name, store)
        self._run_id, self._positions = run_id, positions
        self.counted: dict[str, CaseCounters] = {}
        self.uncounted: dict[str, Uncounted] = {}

    def tell(self, event: Event) -> None:
        if isinstance(event, CountersDone):
            case = event.case
            if event.uncounted is not None:
                self.uncounted[case.key] = event.uncounted
            if event.counters is not None:
                stored = self._put(case, event.counters)
                run_id = self._run_id if stored else None
                self.counted[case.key] = CaseCounters(
                    problem=case.problem, variant=case.variant, counters=event.counters, run_id=run_id
                )
        super().tell(event)

    def _put(self, case: Case, counters: Counters) -> bool:
        """Store the counters with the result of their case. False if that was removed, or is being measured again."""
        if self._run_id is None:
            return False
        with run_lock(self._store.url, self._run_id):
            try:
                under_way = self._store.runs.row(self._run_id).status in LIVING
            except UnknownRun:
                return False
            result = self._store.results.of_cases(self._run_id, (case.key,)).get(case.key)
            if under_way or result is None or result.timing is None:
                return False
            updated = msgspec.structs.replace(result, counters=counters)
            self._store.results.put(self._run_id, [(self._positions[case.key], updated)])
        return True


class LiveRun(Live):
    """A run, which consists of several requests. Thread-safe."""

    def __init__(self, run: Run, op: Op, store: Store, log: EventLog) -> None:
        super().__init__(run.id, store, log)
        self.plan, self._op, self._environment = run.plan, op, run.environment
        self._positions = {case.key: i for i, case in enumerate(run.plan.cases())}
        self._timed = frozenset(r.case.key for r in run.results if r.timing is not None)
        self._lock = threading.Lock()
        self._putting = threading.Lock()
        self._left = 0
        self._closed = self._begun = self._discarded = False
        self._interrupted = ""
        self._began_s: float | None = None
        # Stores what else results from a finished run (the best configuration of a tuning). Set by the code that queues it.
        self.conclude: Callable[[], object] = lambda: None

    def expect(self, requests: int) -> None:
        """Set how many requests will end. To be called before they are queued."""
        with self._lock:
            self._left = requests
        if requests == 0:
            self._end("finished", "")

    def begun(self, environment: Environment) -> None:
        if self._began_s is None:
            self._began_s = time.monotonic()
        complete = msgspec.structs.replace(environment, roofs=stored_roofs(self._store, environment.device).usable)
        if not self._begun:
            self._begun = True
            self._store.runs.set_status(self.name, "running")
        if complete != self._environment:
            self._store.runs.set_environment(self.name, complete)
            self._environment = complete

    def tell(self, event: Event) -> None:
        match event:
            case CaseDone(result=result):
                self.put([result])
            case CodeCaptured(contents=contents):
                self._store.code.put(contents)
            case _:
                self.log.append(event)

    def put(self, results: list[Result]) -> None:
        """Store results, then tell the followers. A result is merged with the earlier one of its case."""
        for some in parts(results, _RESULTS_AT_A_TIME):
            # A cancel and the supervisor may put at the same time; what one has read must not change before it writes.
            with self._putting:
                self._put(some)

    def _put(self, results: Sequence[Result]) -> None:
        keys = [r.case.key for r in results]
        known = self._store.results.of_cases(self.name, keys)
        merged: dict[str, Result] = {}
        for key, result in zip(keys, results, strict=True):
            earlier = merged.get(key) or known.get(key)
            merged[key] = result if earlier is None else merge_later_result(earlier, result)
        self._store.results.put(self.name, [(self._positions[key], r) for key, r in merged.items()])
        self._timed = (self._timed - merged.keys()) | {key for key, r in merged.items() if r.timing is not None}
        for result in merged.values():
            self.log.append(CaseDone(result=result))

    def timed(self, problem: Problem, variant: str) -> Result | None:
        """The stored result of a case that has a correct time. None for any other case."""
        key = case_key(problem, variant)
        return self._store.results.of_cases(self.name, (key,)).get(key) if key in self._timed else None

    def timed_variants(self, problem: Problem, variants: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the variants that have a correct time for the problem."""
        return tuple(v for v in variants if case_key(problem, v) in self._timed)

    def ended(self, end: RequestEnd, message: str) -> None:
        if self._began_s is not None:
            with logged(self.name, "has an unknown cost: its device time could not be stored"):
                self._store.runs.add_device_time(self.name, time.monotonic() - self._began_s)
            self._began_s = None
        if end == "interrupted" and not self._interrupted:
            self._interrupted = message or "interrupted"
            self._count(len(list(self.abandon())))
        self._count(1)

    def cancel(self) -> None:
        """Cancel what is queued now, and what is being measured after its current block."""
        self.cancelled = True
        removed = list(self.abandon())
        try:
            self.put(self._given_up((r.problem, v) for r in removed if r.problem for v in concerned(r)))
        finally:
            self._count(len(removed))

    def _given_up(self, cases: Iterable[tuple[Problem, str]]) -> list[Result]:
        failure = Failure(stage="cancelled", reasons=(CancelledBefore(),))
        results: list[Result] = []
        # Reading a variant's source for its digest takes 0.2 ms and more, so it is done once for all its cases.
        alike: dict[tuple[str | None, str], Result] = {}
        for problem, variant in cases:
            known = alike.get((problem.direction, variant))
            if known is None:
                known = alike[problem.direction, variant] = failed(self._op, problem, variant, failure)
            results.append(msgspec.structs.replace(known, problem=problem, cost=self._op.cost_of(problem)))
        return results

    def break_off(self, message: str) -> None:
        """End a run that could not be queued: no more of it will be measured."""
        list(self.abandon())
        self._end("interrupted", message)

    def discard(self) -> None:
        """Cancel it, and remove it for good when it has ended."""
        with self._lock:
            self._discarded = True
            closed = self._closed
        if closed:
            self._remove()
        else:
            self.cancel()

    def _remove(self) -> None:
        with logged(self.name, "could not be removed; it stays in the list of runs, where it can be deleted"):
            self._store.runs.remove(self.name)

    def _count(self, ended: int) -> None:
        with self._lock:
            self._left -= ended
            last = ended > 0 and self._left == 0
        if last and self._interrupted and not self.cancelled:
            self._end("interrupted", self._interrupted)
        elif last:
            self._end("cancelled" if self.cancelled else "finished", "")

    def _end(self, status: Status, message: str) -> None:
        try:
            if status == "finished":
                self.conclude()
            self._store.runs.set_status(self.name, status)
        except Exception as error:  # the followers must learn of the end, whatever the disk does
            _log.exception("the end of run %s could not be stored", self.name)
            status, message = "interrupted", message or str(error)
            # Once more, since a run that is left as running can neither be resumed nor deleted (but see Runner.settle).
            with logged(self.name, "could not be marked as interrupted"):
                self._store.runs.set_status(self.name, status)
        self.log.append(RunEnded(status=status, message=message))
        with self._lock:
            self._closed = True
            discarded = self._discarded  # also while the end was being stored
        if discarded:
            self._remove()
