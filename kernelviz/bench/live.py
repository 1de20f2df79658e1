"""A run while it is measured: what the worker tells is stored first, then told to the followers."""

from __future__ import annotations

import datetime
import logging
import threading
from collections.abc import Callable, Iterable

import msgspec

from kernelviz.bench.eventlog import EventLog
from kernelviz.core.events import CaseDone, CheckDone, Event, RoofDone, RunEnded, TimelineTaken
from kernelviz.core.joining import with_later
from kernelviz.core.problem import Case, Plan, Problem
from kernelviz.core.result import Failure, Result
from kernelviz.core.run import Environment, Status
from kernelviz.core.selftest import Check, Selftest, Timeline
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
        self.abandon: Callable[[], Iterable[Item]] = tuple
        """Takes what is still queued of this run out of its queue; set by who queued it."""

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
        key = Case(problem=problem, variant=variant).key
        return self._store.result(self.run_id, key) if key in self._standing else None

    def standing(self, problem: Problem, variants: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the variants that have a correct time of the problem."""
        return tuple(v for v in variants if Case(problem=problem, variant=v).key in self._standing)

    def ended(self, end: ItemEnd, message: str) -> None:
        if end == "interrupted" and not self._interrupted:
            self._interrupted = message or "interrupted"
            self._count(len(list(self.abandon())))
        self._count(1)

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

    def _count(self, ended: int) -> None:
        with self._lock:
            self._left -= ended
            last = ended > 0 and self._left == 0
        if last and self._interrupted and not self._cancelled:
            self._close("interrupted", self._interrupted)
        elif last:
            self._close("cancelled" if self._cancelled else "finished", "")

    def _close(self, status: Status, message: str) -> None:
        try:
            self._store.set_status(self.run_id, status)
        except Exception as error:  # the followers must learn of the end, whatever became of the disk
            _log.exception("the end of run %s could not be stored", self.run_id)
            status, message = "interrupted", message or str(error)
        self.log.append(RunEnded(status=status, message=message))


class LiveCalibration:
    """The sink of a calibration: roofs go to the store."""

    def __init__(self, store: Store, device_uuid: str, log: EventLog) -> None:
        self.log = log
        self._store, self._device_uuid = store, device_uuid
        self.abandon: Callable[[], Iterable[Item]] = tuple
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def begun(self, environment: Environment) -> None:
        self._device_uuid = environment.device.uuid

    def tell(self, event: Event) -> None:
        if isinstance(event, RoofDone):
            self._store.put_roof(self._device_uuid, event.roof)
        self.log.append(event)

    def ended(self, end: ItemEnd, message: str) -> None:
        # A calibration that failed has no case to carry the reason: it counts as interrupted, and says why.
        status: Status = "interrupted" if end == "finished" and message else end
        self.log.append(RunEnded(status=status, message=message))

    def cancel(self) -> None:
        self._cancelled = True
        if list(self.abandon()):
            self.log.append(RunEnded(status="cancelled"))


class LiveSelftest:
    """The sink of a selftest. A whole one goes to the store when it ends; one of chosen checks is only told."""

    def __init__(self, name: str, store: Store, log: EventLog, *, kept: bool) -> None:
        self.name, self.log = name, log
        self._store, self._kept = store, kept
        self.abandon: Callable[[], Iterable[Item]] = tuple
        self._cancelled = False
        self._created_at = _now()
        self._environment: Environment | None = None
        self._checks: list[Check] = []
        self._timeline: Timeline | None = None

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    @property
    def made(self) -> Selftest | None:
        """What was found so far; None before a worker was ready."""
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
        self._environment, self._created_at = environment, _now()

    def tell(self, event: Event) -> None:
        if isinstance(event, CheckDone):
            self._checks.append(event.check)
        elif isinstance(event, TimelineTaken):
            self._timeline = event.timeline
        self.log.append(event)

    def ended(self, end: ItemEnd, message: str) -> None:
        """One that broke off is kept too, with what it broke off with as a check that failed; a cancelled one is not."""
        status: Status = "interrupted" if end == "finished" and message else end
        if status == "interrupted" and self._checks:
            self.tell(CheckDone(check=_broken_off(message)))
        try:
            if self._kept and self.made is not None and self._checks and status != "cancelled":
                self._store.put_selftest(self.made)
        except Exception as error:  # the followers must learn of the end, whatever became of the disk
            _log.exception("selftest %s could not be stored", self.name)
            status, message = "interrupted", message or str(error)
        self.log.append(RunEnded(status=status, message=message))

    def cancel(self) -> None:
        self._cancelled = True
        if list(self.abandon()):
            self.log.append(RunEnded(status="cancelled"))


def _broken_off(message: str) -> Check:
    return Check(name="came_to_its_end", question="Did the selftest come to its end?", passed=False, message=message)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
