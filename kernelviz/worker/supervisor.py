"""One thread a device: takes work from the queue, holds the device's lock, has it done by the worker."""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kernelviz.core.errors import KernelvizError
from kernelviz.core.events import CaseDone, DeviceBusy, Event, RunQueued, WorkerStarting
from kernelviz.core.problem import Problem
from kernelviz.core.reasons import CancelledBefore, ServerStopped
from kernelviz.core.result import Failure
from kernelviz.core.run import Device
from kernelviz.ops import catalogue
from kernelviz.ops.catalog.outcome import failed
from kernelviz.text.failures import describe_failure, describe_reason
from kernelviz.worker.attempt import Attempt, Ending, ending_of
from kernelviz.worker.conversation import converse
from kernelviz.worker.device_lock import DeviceLock
from kernelviz.worker.item import Item, ItemEnd
from kernelviz.worker.limits import Limits
from kernelviz.worker.protocol import Calibrate, Inspect, Measure, Selftest, Task
from kernelviz.worker.queue import FairQueue
from kernelviz.worker.worker_slot import Keeper

STOPPED = str(describe_reason(ServerStopped()))
SESSION = "kernelviz.measure.session.device_session:open_session"

_log = logging.getLogger(__name__)
_CANCELLED = Failure(stage="cancelled", reasons=(CancelledBefore(),))

_State = Literal["none", "starting", "ready", "waiting", "working"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerState:
    """What the health route shows of a device. `state`: no worker, starting, ready, waiting (for the lock), working. `queued`:
    without what comes when nothing else waits."""

    state: _State
    run_id: str | None
    queued: int
    workers_started: int
    last_trouble: str


def concerned(item: Item) -> tuple[str, ...]:
    """The variants that a failure of the whole item is told of: of those that do not stand, something else is known."""
    if item.standing is None or not item.variants:
        return item.variants
    standing = item.standing()
    return tuple(v for v in item.variants if v in standing)


class Supervisor:
    """Has the items of one device done, one after the other. Methods may be called from any thread."""

    def __init__(
        self,
        device: Device,
        *,
        session: str = SESSION,
        limits: Limits | None = None,
        lock_directory: Path | None = None,
    ) -> None:
        self.device = device
        self._limits = limits or Limits()
        self._lock_directory = lock_directory
        self._lock: DeviceLock | None = None
        self._queue: FairQueue[Item] = FairQueue()
        self._keeper = Keeper(device.id, session, self._limits)
        self._tasks = itertools.count(1)
        self._shared = threading.Lock()  # for the next four
        self._current: Item | None = None
        self._closing = False
        self._state: _State = "none"
        self._told_ahead: dict[str, int] = {}
        self._thread = threading.Thread(target=self._run, name=f"supervisor {device.id}", daemon=True)
        self._thread.start()

    def submit(self, items: Iterable[Item]) -> None:
        """Queue work; each item's sink is told what becomes of it."""
        listed = list(items)
        if not self._queue.put(listed):
            for item in listed:
                self._end(item, "interrupted", STOPPED)
        self._tell_positions()

    def cancel(self, run_id: str) -> list[Item]:
        """Take the run's items out of the queue and return them. The one that is being done, whose sink says by now that it
        is cancelled, ends after its current block."""
        removed = self._queue.remove(run_id)
        self._keeper.wake()
        self._tell_positions()  # who waited behind it comes sooner
        return removed

    def state(self) -> WorkerState:
        with self._shared:
            return WorkerState(
                state=self._state,
                run_id=self._current.run_id if self._current else None,
                queued=self._queue.urgent(),
                workers_started=self._keeper.started,
                last_trouble="" if self._keeper.trouble is None else str(describe_failure(self._keeper.trouble)),
            )

    def close(self) -> None:
        """Kill the worker and end; what is queued or being done is told to be interrupted."""
        left = self._queue.close()
        with self._shared:
            self._closing = True
        self._keeper.wake()
        if self._thread is not threading.current_thread():
            self._thread.join(self._limits.end_s + 5.0)
        for item in left:
            self._end(item, "interrupted", STOPPED)

    # In the supervisor's thread from here on.

    def _run(self) -> None:
        try:
            while (item := self._queue.take()) is not None:
                with self._shared:
                    self._current = item
                end: ItemEnd = "interrupted"
                message = ""
                try:
                    self._tell_positions()
                    end, message = self._do(item)
                except Exception as error:
                    # A fault of ours or of the sink (a full disk): the run ends, the next one has its chance.
                    _log.exception("run %s broke off", item.run_id)
                    message = f"{type(error).__name__}: {error}"
                    self._keeper.end("the last task broke off")
                finally:
                    with self._shared:
                        self._current = None
                        self._state = "ready" if self._keeper.present else "none"
                    self._end(item, end, message)
        finally:
            self._keeper.end("closing", self._limits.end_s)
            if self._lock is not None:
                self._lock.close()

    def _end(self, item: Item, end: ItemEnd, message: str) -> None:
        try:
            item.sink.ended(end, message)
        except Exception:
            _log.exception("run %s could not be told of its end", item.run_id)

    def _do(self, item: Item) -> tuple[ItemEnd, str]:
        """One item under the device's lock."""
        self._enter("waiting")
        try:
            if self._lock is None:
                self._lock = DeviceLock(self.device.uuid, self._lock_directory)
            got = self._lock.acquire(lambda holder: item.sink.tell(DeviceBusy(holder=str(holder))), self._stopping)
        except KernelvizError as error:
            return self._fail(item, Failure(stage="unavailable", message=str(error)))
        if not got:
            return self._given_up(item)
        if self._lock.others_came and self.device.kind == "cuda":
            # Their CUDA context is younger than our worker's, which makes its short kernels read longer (measure.site).
            self._keeper.end("another process measured on this GPU since")
        self._keeper.held_fds = (self._lock.held_fd(),)
        try:
            if item.problem is not None:
                return self._measure(item, item.problem)
            return self._once(item)
        finally:
            self._lock.release()

    def _fail(self, item: Item, failure: Failure) -> tuple[ItemEnd, str]:
        """Every case of the item fails for the same reason."""
        if item.problem is not None:
            self._tell_failures(item, item.problem, dict.fromkeys(concerned(item), failure))
        return "finished", "" if item.variants else str(describe_failure(failure))

    def _tell_failures(self, item: Item, problem: Problem, failures: dict[str, Failure]) -> None:
        op = catalogue().get(problem.op)
        for variant, failure in failures.items():
            item.sink.tell(CaseDone(result=failed(op, problem, variant, failure)))

    def _given_up(self, item: Item) -> tuple[ItemEnd, str]:
        if self._closing:
            return "interrupted", STOPPED
        self._fail(item, _CANCELLED)
        return "cancelled", ""

    def _cancelled(self) -> bool:
        return self._current is not None and self._current.sink.cancelled

    def _stopping(self) -> bool:
        return self._cancelled() or self._closing

    def _measure(self, item: Item, problem: Problem) -> tuple[ItemEnd, str]:
        """All variants of a problem, in as many tries as crashes and hangs make necessary."""
        variants = item.variants if item.standing is None else item.standing()
        tries = deque([Attempt(problem, variants, item.baseline)] if variants else [])
        known = item.known_baseline() if item.known_baseline is not None else None
        while tries:
            attempt = tries.popleft()
            attempt.known = known
            if self._closing:
                return "interrupted", STOPPED
            ending = ending_of(_CANCELLED) if self._cancelled() else self._try(item, attempt)
            if self._closing and attempt.left:
                return "interrupted", STOPPED
            known = attempt.known
            failures, following = attempt.conclude(ending)
            self._tell_failures(item, problem, failures)
            tries.extendleft(reversed(following))
        return ("cancelled", "") if self._cancelled() else ("finished", "")

    def _try(self, item: Item, attempt: Attempt) -> Ending:
        request = Measure(
            task=next(self._tasks),
            problem=attempt.problem,
            variants=attempt.asked,
            baseline=item.baseline,
            method=item.method,
            tuned=dict(item.tuned),
        )
        budget_s = item.method.budget_s * max(1, len(attempt.variants))
        return self._converse(item, request, budget_s, attempt.heard)

    def _once(self, item: Item) -> tuple[ItemEnd, str]:
        """A calibration, a selftest or an inspection: it has no cases, so its trouble is the message of its end."""
        request: Task
        if item.inspection is not None:
            asked = item.inspection
            request = Inspect(
                task=next(self._tasks), problem=asked.problem, variant=asked.variant, tuned=dict(item.tuned)
            )
        elif item.selftest is not None:
            request = Selftest(task=next(self._tasks), only=item.selftest.only, quick=item.selftest.quick)
        else:
            request = Calibrate(task=next(self._tasks))
        # A check of the selftest makes a hundred comparisons before it has anything to tell.
        budget_s = self._limits.case_s * (5 if item.selftest is not None else 1)
        ending = self._converse(item, request, budget_s, lambda event: event)
        if self._closing:
            return "interrupted", STOPPED
        if self._cancelled():
            return "cancelled", ""
        return "finished", str(describe_failure(ending.failure)) if ending.stage else ""

    def _converse(
        self,
        item: Item,
        request: Task,
        budget_s: float,
        heard: Callable[[Event], Event | None],
    ) -> Ending:
        """Have one task done by a worker that is ready, which is replaced when it cannot be used for the next."""

        def starting(reason: str) -> None:
            self._enter("starting")
            item.sink.tell(WorkerStarting(reason=reason))

        def tell(event: Event) -> None:
            passed_on = heard(event)
            if passed_on is not None:
                item.sink.tell(passed_on)

        ready = self._keeper.ready(item.plugins, starting, self._stopping)
        if ready is None:
            if self._cancelled():
                return ending_of(_CANCELLED, started=False)
            trouble = self._keeper.trouble
            reasons, message = ((), "") if trouble is None else (trouble.reasons, trouble.message)
            return Ending(stage="unavailable", reasons=reasons, message=message, started=False)
        item.sink.begun(ready.environment)
        self._enter("working")
        ending = converse(ready.process, request, self._limits, budget_s, tell, self._cancelled, lambda: self._closing)
        if ending.replace is None:
            ready.process.trim_log()
        elif not self._closing:
            self._keeper.trouble = ending.failure
            self._keeper.end(ending.replace)
            self._keeper.start(item.plugins)  # it gets ready while the results are stored and shown
        return ending

    def _enter(self, state: _State) -> None:
        with self._shared:
            self._state = state

    def _tell_positions(self) -> None:
        """Tell every run that waits how many problems of others come before it, when that has changed."""
        with self._shared:
            current = self._current
            changed: list[tuple[Item, int]] = []
            waiting: dict[str, int] = {}
            for item, before in self._queue.waiting():
                if current is None or item.run_id != current.run_id:
                    ahead = before + (current is not None)
                    waiting[item.run_id] = ahead
                    if self._told_ahead.get(item.run_id) != ahead:
                        changed.append((item, ahead))
            self._told_ahead = waiting
        for item, ahead in changed:
            try:
                item.sink.tell(RunQueued(ahead=ahead))
            except Exception:
                _log.exception("run %s could not be told of its place", item.run_id)
