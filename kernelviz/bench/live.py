"""A run while it is measured: what the worker tells is stored first, then told to the followers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

import msgspec

from kernelviz.bench.eventlog import EventLog
from kernelviz.core.events import CaseDone, Event, RunEnded
from kernelviz.core.joining import with_later
from kernelviz.core.problem import Plan, Problem, case_key
from kernelviz.core.result import Failure, Result
from kernelviz.core.run import Environment, Status
from kernelviz.ops import Op
from kernelviz.ops.outcome import failed
from kernelviz.store import Store
from kernelviz.worker.item import Item, ItemEnd

_log = logging.getLogger(__name__)


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
        standing: Iterable[str] = (),
    ) -> None:
        """`standing`: keys of the cases that have a correct time already."""
        self.run_id, self.plan, self.log = run_id, plan, log
        self._op, self._store, self._environment = op, store, known
        self._positions = {case.key: i for i, case in enumerate(plan.cases())}
        self._lock = threading.Lock()
        self._left = 0
        self._standing = set(standing)
        self._begun = False
        self._cancelled = False
        self._interrupted = ""
        self._discarded = False
        self.abandon: Callable[[], Iterable[Item]] = tuple
        """Takes what is still queued of this run out of its queue; set by who queued it."""
        self.conclude: Callable[[], object] = lambda: None
        """What is to be kept when the run has come to its end, beside its results; set by who queued it."""
        self._held_since_s: float | None = None

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def expect(self, items: int) -> None:
        """So many items will end; call it before they are queued."""
        with self._lock:
            self._left = items
        if items == 0:
            self._close("finished", "")

    def begun(self, environment: Environment) -> None:
        if self._held_since_s is None:
            self._held_since_s = time.monotonic()
        complete = msgspec.structs.replace(environment, roofs=self._store.roofs(environment.device.uuid))
        if not self._begun:
            self._begun = True
            self._store.set_status(self.run_id, "running")
        if complete != self._environment:
            self._store.set_environment(self.run_id, complete)
            self._environment = complete

    def tell(self, event: Event) -> None:
        if isinstance(event, CaseDone):
            self.put([event.result])
        else:
            self.log.append(event)

    def put(self, results: list[Result]) -> None:
        """Store, then tell. A case that has a result already gets the new one, or what that adds to it."""
        known = [(r, self._store.result(self.run_id, r.case.key)) for r in results]
        joined = [r if earlier is None else with_later(earlier, r) for r, earlier in known]
        if joined:
            self._store.put_results(self.run_id, [(self._positions[r.case.key], r) for r in joined])
        for result in joined:
            if result.timing is not None:
                self._standing.add(result.case.key)
            else:
                self._standing.discard(result.case.key)
            self.log.append(CaseDone(result=result))

    def timed(self, problem: Problem, variant: str) -> Result | None:
        """The stored result of a case that has a correct time; None for any other."""
        key = case_key(problem, variant)
        return self._store.result(self.run_id, key) if key in self._standing else None

    def standing(self, problem: Problem, variants: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the variants that have a correct time of the problem."""
        return tuple(v for v in variants if case_key(problem, v) in self._standing)

    def ended(self, end: ItemEnd, message: str) -> None:
        if self._held_since_s is not None:
            held_s, self._held_since_s = time.monotonic() - self._held_since_s, None
            self._add_spent(held_s)
        if end == "interrupted" and not self._interrupted:
            self._interrupted = message or "interrupted"
            self._count(len(list(self.abandon())))
        self._count(1)

    def _add_spent(self, held_s: float) -> None:
        try:
            self._store.add_spent(self.run_id, held_s)
        except Exception:  # a cost that nobody knows must not end the run
            _log.exception("what run %s took could not be stored", self.run_id)

    def cancel(self) -> None:
        """What is queued is cancelled now, what is being measured after its current block."""
        self._cancelled = True
        removed = list(self.abandon())
        failure = Failure(stage="cancelled", message="cancelled before it was measured")
        try:
            self.put(
                [failed(self._op, item.problem, v, failure) for item in removed if item.problem for v in item.variants]
            )
        finally:
            self._count(len(removed))

    def discard(self) -> None:
        """Cancel it, and remove it for good when it has ended."""
        with self._lock:
            self._discarded = True
            ended = self._left == 0
        if ended:
            self._remove()
        else:
            self.cancel()

    def _remove(self) -> None:
        try:
            self._store.remove(self.run_id)
        except Exception:  # it stays in the list of runs, where it can be deleted by hand
            _log.exception("run %s could not be removed", self.run_id)

    def _count(self, ended: int) -> None:
        with self._lock:
            self._left -= ended
            last = ended > 0 and self._left == 0
            discarded = self._discarded
        if last and self._interrupted and not self._cancelled:
            self._close("interrupted", self._interrupted)
        elif last:
            self._close("cancelled" if self._cancelled else "finished", "")
        if last and discarded:
            self._remove()

    def _close(self, status: Status, message: str) -> None:
        try:
            if status == "finished":
                self.conclude()
            self._store.set_status(self.run_id, status)
        except Exception as error:  # the followers must learn of the end, whatever became of the disk
            _log.exception("the end of run %s could not be stored", self.run_id)
            status, message = "interrupted", message or str(error)
        self.log.append(RunEnded(status=status, message=message))
