"""A run while it is measured: what the worker tells is stored first, then told to the followers."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from kernelviz.bench.event_log import EventLog
from kernelviz.core import CaseDone, Environment, Event, Failure, Plan, Problem, Result, RunEnded, Status
from kernelviz.core.chunks import parts
from kernelviz.core.merge import merge_later_result
from kernelviz.core.problem import case_key
from kernelviz.core.reasons import CancelledBefore
from kernelviz.ops import Op
from kernelviz.ops.catalog.outcome import failed
from kernelviz.store import Store
from kernelviz.worker.request import Request, RequestEnd
from kernelviz.worker.supervisor import concerned

_log = logging.getLogger(__name__)

_TOGETHER = 500
"""So many results are stored at a time: 20,000 in one transaction would keep every other writer waiting for seconds."""


class LiveRun:
    """The sink of all items of one run. Thread-safe."""

    def __init__(
        self,
        run_id: str,
        plan: Plan,
        op: Op,
        store: Store,
        log: EventLog,
        known: Environment,
        timed: Iterable[str] = (),
    ) -> None:
        """`timed`: keys of the cases that have a correct time already."""
        self.run_id, self.plan, self.log = run_id, plan, log
        self._op, self._store, self._environment = op, store, known
        self._positions = {case.key: i for i, case in enumerate(plan.cases())}
        self._lock = threading.Lock()
        self._putting = threading.Lock()
        self._left = 0
        self._closed = False
        self._timed = set(timed)
        self._begun = False
        self._cancelled = False
        self._interrupted = ""
        self._discarded = False
        self.abandon: Callable[[], Iterable[Request]] = tuple
        """Takes what is still queued of this run out of its queue; set by who queued it."""
        self.conclude: Callable[[], object] = lambda: None
        """What is to be kept when the run has come to its end, beside its results; set by who queued it."""
        self._began_s: float | None = None

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def expect(self, requests: int) -> None:
        """So many requests will end; call it before they are queued."""
        with self._lock:
            self._left = requests
        if requests == 0:
            self._end("finished", "")

    def begun(self, environment: Environment) -> None:
        if self._began_s is None:
            self._began_s = time.monotonic()
        complete = msgspec.structs.replace(environment, roofs=self._store.roofs.newest(environment.device.uuid))
        if not self._begun:
            self._begun = True
            self._store.runs.set_status(self.run_id, "running")
        if complete != self._environment:
            self._store.runs.set_environment(self.run_id, complete)
            self._environment = complete

    def tell(self, event: Event) -> None:
        if isinstance(event, CaseDone):
            self.put([event.result])
        else:
            self.log.append(event)

    def put(self, results: list[Result]) -> None:
        """Store, then tell. A case that has a result already gets the new one, or what that adds to it."""
        for some in parts(results, _TOGETHER):
            # Whoever cancels and the supervisor put at the same time: what one has read must still stand when it is written.
            with self._putting:
                self._put(some)

    def _put(self, results: Sequence[Result]) -> None:
        keys = [r.case.key for r in results]
        known = self._store.results.of_cases(self.run_id, keys)
        merged: dict[str, Result] = {}
        for key, result in zip(keys, results, strict=True):
            earlier = merged.get(key) or known.get(key)
            merged[key] = result if earlier is None else merge_later_result(earlier, result)
        self._store.results.put(self.run_id, [(self._positions[key], r) for key, r in merged.items()])
        for key, result in merged.items():
            if result.timing is not None:
                self._timed.add(key)
            else:
                self._timed.discard(key)
            self.log.append(CaseDone(result=result))

    def timed(self, problem: Problem, variant: str) -> Result | None:
        """The stored result of a case that has a correct time; None for any other."""
        key = case_key(problem, variant)
        return self._store.results.get(self.run_id, key) if key in self._timed else None

    def timed_variants(self, problem: Problem, variants: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the variants that have a correct time of the problem."""
        return tuple(v for v in variants if case_key(problem, v) in self._timed)

    def ended(self, end: RequestEnd, message: str) -> None:
        if self._began_s is not None:
            spent_s, self._began_s = time.monotonic() - self._began_s, None
            self._add_spent(spent_s)
        if end == "interrupted" and not self._interrupted:
            self._interrupted = message or "interrupted"
            self._count(len(list(self.abandon())))
        self._count(1)

    def _add_spent(self, spent_s: float) -> None:
        try:
            self._store.runs.add_device_time(self.run_id, spent_s)
        except Exception:  # a cost that nobody knows must not end the run
            _log.exception("what run %s took could not be stored", self.run_id)

    def cancel(self) -> None:
        """What is queued is cancelled now, what is being measured after its current block."""
        self._cancelled = True
        removed = list(self.abandon())
        try:
            self.put(
                self._given_up(
                    (request.problem, v) for request in removed if request.problem for v in concerned(request)
                )
            )
        finally:
            self._count(len(removed))

    def _given_up(self, cases: Iterable[tuple[Problem, str]]) -> list[Result]:
        failure = Failure(stage="cancelled", reasons=(CancelledBefore(),))
        results: list[Result] = []
        # Reading a variant's source for its digest takes 0.2 ms and more: once for all its cases.
        alike: dict[tuple[str | None, str], Result] = {}
        for problem, variant in cases:
            known = alike.get((problem.direction, variant))
            if known is None:
                known = alike[problem.direction, variant] = failed(self._op, problem, variant, failure)
            results.append(msgspec.structs.replace(known, problem=problem, cost=self._op.cost_of(problem)))
        return results

    def break_off(self, message: str) -> None:
        """It could not be begun: nothing more of it will be measured."""
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
        try:
            self._store.runs.remove(self.run_id)
        except Exception:  # it stays in the list of runs, where it can be deleted by hand
            _log.exception("run %s could not be removed", self.run_id)

    def _count(self, ended: int) -> None:
        with self._lock:
            self._left -= ended
            last = ended > 0 and self._left == 0
        if last and self._interrupted and not self._cancelled:
            self._end("interrupted", self._interrupted)
        elif last:
            self._end("cancelled" if self._cancelled else "finished", "")

    def _end(self, status: Status, message: str) -> None:
        self._close(status, message)
        with self._lock:
            self._closed = True
            discarded = self._discarded  # also while the end was being stored
        if discarded:
            self._remove()

    def _close(self, status: Status, message: str) -> None:
        try:
            if status == "finished":
                self.conclude()
            self._store.runs.set_status(self.run_id, status)
        except Exception as error:  # the followers must learn of the end, whatever became of the disk
            _log.exception("the end of run %s could not be stored", self.run_id)
            status, message = "interrupted", message or str(error)
            self._set_interrupted()
        self.log.append(RunEnded(status=status, message=message))

    def _set_interrupted(self) -> None:
        """Once more, since a run that is left as running can neither be resumed nor deleted (but see Runner.settle)."""
        try:
            self._store.runs.set_status(self.run_id, "interrupted")
        except Exception:
            _log.exception("run %s could not be marked as interrupted", self.run_id)
