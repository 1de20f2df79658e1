"""One thread a device: takes work from the queue, holds the device's lock, talks to the worker, replaces it."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from kernelviz.core.errors import KernelvizError
from kernelviz.core.events import CaseDone, CaseStep, DeviceBusy, Event, RunQueued, WorkerStarting
from kernelviz.core.problem import Method, Problem
from kernelviz.core.result import Failure, Result, Stage
from kernelviz.core.run import Device, Environment
from kernelviz.ops import catalogue
from kernelviz.ops.outcome import failed
from kernelviz.worker.attempt import Attempt, Ending
from kernelviz.worker.limits import Deadlines, Limits
from kernelviz.worker.lock import DeviceLock
from kernelviz.worker.process import WorkerDied, WorkerProcess
from kernelviz.worker.protocol import (
    Calibrate,
    Cancel,
    Hello,
    Launch,
    Measure,
    Open,
    Request,
    TaskDone,
    TaskFailed,
    Told,
)
from kernelviz.worker.queue import FairQueue
from kernelviz.worker.sources import Stamp, stamp

SESSION = "kernelviz.measure.session:open_session"
START_AGAIN_S = 15.0
"""A worker that could not start is not started again for this long: a sweep of 100 problems tells one reason once."""

STOPPED = "the server was stopped"

_log = logging.getLogger(__name__)

ItemEnd = Literal["finished", "cancelled", "interrupted"]


class Sink(Protocol):
    """Who is told what becomes of an item. Called in the supervisor's thread."""

    @property
    def cancelled(self) -> bool:
        """Has the end of the run been asked for? True stays True."""
        ...

    def begun(self, environment: Environment) -> None:
        """The worker is ready, the item is next."""
        ...

    def tell(self, event: Event) -> None: ...

    def ended(self, end: ItemEnd, message: str) -> None:
        """Nothing more will come of this item."""
        ...


@dataclass(frozen=True, kw_only=True)
class Item:
    """What is queued: one problem of a run, a calibration (problem None), or a launch (`calls` > 0).

    `known_baseline`: the baseline's result of an earlier time, when it is not among the variants (a resumed run)."""

    run_id: str
    owner: str
    sink: Sink
    problem: Problem | None = None
    variants: tuple[str, ...] = ()
    baseline: str = ""
    method: Method = field(default_factory=Method)
    plugins: tuple[str, ...] = ()
    calls: int = 0
    known_baseline: Result | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerState:
    """What the health route shows of a device. `state`: no worker, starting, ready, waiting (for the lock), working."""

    state: Literal["none", "starting", "ready", "waiting", "working"]
    run_id: str | None
    queued: int
    workers_started: int
    last_trouble: str


class Supervisor:
    """Owns the worker of one device. Methods may be called from any thread."""

    def __init__(
        self,
        device: Device,
        *,
        session: str = SESSION,
        limits: Limits | None = None,
        lock_directory: Path | None = None,
    ) -> None:
        self.device = device
        self._session = session
        self._limits = limits or Limits()
        self._lock_directory = lock_directory
        self._lock: DeviceLock | None = None
        self._queue: FairQueue[Item] = FairQueue()
        self._tasks = itertools.count(1)
        self._guarded = threading.Lock()  # for the next three, which other threads read or set
        self._current: Item | None = None
        self._closing = False
        self._process: WorkerProcess | None = None
        self._environment: Environment | None = None
        self._plugins: tuple[str, ...] = ()
        self._stamp: Stamp = frozenset()
        self._why_new = "the first of this session"
        self._started = 0
        self._state: Literal["none", "starting", "ready", "waiting", "working"] = "none"
        self._trouble = ""
        self._trouble_at_s = -START_AGAIN_S
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
        with self._guarded:
            if self._process is not None:
                self._process.wake()
        return removed

    def state(self) -> WorkerState:
        with self._guarded:
            return WorkerState(
                state=self._state,
                run_id=self._current.run_id if self._current else None,
                queued=len(self._queue),
                workers_started=self._started,
                last_trouble=self._trouble,
            )

    def close(self) -> None:
        """Kill the worker and end; what is queued or being done is told to be interrupted."""
        left = self._queue.close()
        with self._guarded:
            self._closing = True
            if self._process is not None:
                self._process.wake()
        if self._thread is not threading.current_thread():
            self._thread.join(self._limits.end_s + 5.0)
        for item in left:
            self._end(item, "interrupted", STOPPED)

    # In the supervisor's thread from here on.

    def _run(self) -> None:
        try:
            while (item := self._queue.take()) is not None:
                with self._guarded:
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
                    self._drop("the last task broke off")
                finally:
                    with self._guarded:
                        self._current = None
                        self._state = "ready" if self._process is not None else "none"
                    self._end(item, end, message)
        finally:
            self._drop("closing", wait_s=self._limits.end_s)
            if self._lock is not None:
                self._lock.close()

    def _end(self, item: Item, end: ItemEnd, message: str) -> None:
        try:
            item.sink.ended(end, message)
        except Exception:
            _log.exception("run %s could not be told of its end", item.run_id)

    def _do(self, item: Item) -> tuple[ItemEnd, str]:
        """One item under the device's lock."""
        with self._guarded:
            self._state = "waiting"
        try:
            if self._lock is None:
                self._lock = DeviceLock(self.device.uuid, self._lock_directory)
            got = self._lock.acquire(lambda holder: item.sink.tell(DeviceBusy(holder=str(holder))), self._stopping)
        except KernelvizError as error:
            return self._fail(item, Failure(stage="unavailable", message=str(error)))
        if not got:
            return self._given_up(item)
        try:
            if item.problem is not None and not item.calls:
                return self._measure(item, item.problem)
            return self._once(item)
        finally:
            self._lock.release()

    def _fail(self, item: Item, failure: Failure) -> tuple[ItemEnd, str]:
        """Every case of the item fails for the same reason."""
        if item.problem is not None:
            self._tell_failures(item, item.problem, dict.fromkeys(item.variants, failure))
        return "finished", "" if item.variants else failure.message

    def _tell_failures(self, item: Item, problem: Problem, failures: dict[str, Failure]) -> None:
        op = catalogue().get(problem.op)
        for variant, failure in failures.items():
            item.sink.tell(CaseDone(result=failed(op, problem, variant, failure)))

    def _given_up(self, item: Item) -> tuple[ItemEnd, str]:
        if self._closing:
            return "interrupted", STOPPED
        self._fail(item, Failure(stage="cancelled", message="cancelled before it was measured"))
        return "cancelled", ""

    @property
    def _cancelled(self) -> bool:
        return self._current is not None and self._current.sink.cancelled

    def _stopping(self) -> bool:
        return self._cancelled or self._closing

    def _measure(self, item: Item, problem: Problem) -> tuple[ItemEnd, str]:
        """All variants of a problem, in as many tries as crashes and hangs make necessary."""
        tries = deque([Attempt(problem, item.variants, item.baseline)])
        known = item.known_baseline
        while tries:
            attempt = tries.popleft()
            attempt.known = known
            if self._closing:
                return "interrupted", STOPPED
            if self._cancelled:
                ending = Ending(stage="cancelled", message="cancelled before it was measured")
            else:
                ending = self._try(item, attempt)
            if self._closing and attempt.left:
                return "interrupted", STOPPED
            known = attempt.known
            failures, following = attempt.conclude(ending)
            self._tell_failures(item, problem, failures)
            tries.extendleft(reversed(following))
        return ("cancelled", "") if self._cancelled else ("finished", "")

    def _try(self, item: Item, attempt: Attempt) -> Ending:
        request = Measure(
            task=next(self._tasks),
            problem=attempt.problem,
            variants=attempt.asked,
            baseline=item.baseline,
            method=item.method,
        )
        budget_s = item.method.budget_s * max(1, len(attempt.variants))
        return self._converse(item, request, budget_s, attempt.heard)

    def _once(self, item: Item) -> tuple[ItemEnd, str]:
        """A calibration or a launch: it has no cases, so its trouble is the message of its end."""
        request: Request
        if item.problem is None:
            request = Calibrate(task=next(self._tasks))
        else:
            request = Launch(task=next(self._tasks), problem=item.problem, variant=item.variants[0], calls=item.calls)
        ending = self._converse(item, request, self._limits.case_s, lambda event: event)
        if self._closing:
            return "interrupted", STOPPED
        if self._cancelled:
            return "cancelled", ""
        return "finished", ending.message if ending.stage else ""

    def _converse(
        self, item: Item, request: Request, budget_s: float, heard: Callable[[Event], Event | None]
    ) -> Ending:
        """Hand one task to a worker that is ready and pass on what it tells, until it ends or must be ended."""
        process, trouble = self._ready(item)
        if process is None:
            stage: Stage = "cancelled" if self._cancelled else "unavailable"
            return Ending(stage=stage, message=trouble, started=False)
        with self._guarded:
            self._state = "working"
        try:
            process.send(request)
            ending = self._listen(item, process, request, budget_s, heard)
        except WorkerDied:
            ending = Ending(stage="crash", message=process.fate(), replace="the last one died")
        if ending.replace is not None and not self._closing:
            self._trouble = ending.message or ending.replace
            self._drop(ending.replace)
            self._spawn(item.plugins)  # it gets ready while the results are stored and shown
        elif self._process is not None:
            process.trim_log()
        return ending

    def _listen(
        self,
        item: Item,
        process: WorkerProcess,
        request: Request,
        budget_s: float,
        heard: Callable[[Event], Event | None],
    ) -> Ending:
        task = getattr(request, "task", 0)
        deadlines = Deadlines(self._limits, budget_s, time.monotonic())
        cancel_until_s: float | None = None
        while True:
            now_s = time.monotonic()
            if self._closing:
                return Ending(stage="cancelled", message=STOPPED, replace="closing")
            if self._cancelled and cancel_until_s is None:
                process.send(Cancel(task=task))
                cancel_until_s = now_s + self._limits.cancel_s
            left_s = deadlines.left_s(now_s) if cancel_until_s is None else cancel_until_s - now_s
            if left_s <= 0 and cancel_until_s is not None:
                return Ending(stage="cancelled", message="cancelled", replace="a cancelled task did not end")
            if left_s <= 0:
                message = "\n".join(filter(None, (deadlines.message(now_s), process.log_tail())))
                return Ending(stage="timeout", message=message, replace="the last one hung")
            match process.receive(left_s):
                case Told(event=event) as told if told.task == task:
                    step = event.step if isinstance(event, CaseStep) else None
                    deadlines.event(step, time.monotonic())
                    passed_on = heard(event)
                    if passed_on is not None:
                        item.sink.tell(passed_on)
                case TaskDone() as done if done.task == task:
                    # A cancelled session may leave cases untold; they are cancelled, not lost.
                    if cancel_until_s is not None:
                        return Ending(stage="cancelled", message="cancelled", replace=done.spoilt)
                    return Ending(replace=done.spoilt)
                case TaskFailed() as told_failed if told_failed.task == task:
                    replace = told_failed.spoilt or ("the last task raised" if told_failed.stage == "crash" else None)
                    return Ending(stage=told_failed.stage, message=told_failed.message, replace=replace)
                case _:
                    pass  # woken, or something of an earlier task

    def _ready(self, item: Item) -> tuple[WorkerProcess | None, str]:
        """A worker with an open session for the item, or None and why there is none."""
        now_stamp = stamp(item.plugins)
        if self._process is not None:
            if not self._process.alive():
                self._trouble = self._process.fate()
                self._drop("the last one died while it was idle")
            elif item.plugins != self._plugins:
                self._drop("other plug-ins")
            elif now_stamp != self._stamp:
                self._drop("files of ops or plug-ins have changed")
        if self._process is None:
            if time.monotonic() - self._trouble_at_s < START_AGAIN_S and now_stamp == self._stamp:
                return None, self._trouble
            self._spawn(item.plugins)
        process = self._process
        if process is None:
            return None, self._trouble
        if self._environment is None:
            item.sink.tell(WorkerStarting(reason=self._why_new))
            trouble = self._greeted(process)
            if trouble is not None:
                if not self._stopping():  # a cancelled start goes on, for the next one
                    self._drop("the last one could not start")
                return None, trouble
        if self._environment is not None:
            item.sink.begun(self._environment)
        return process, ""

    def _greeted(self, process: WorkerProcess) -> str | None:
        """Wait for Hello; why it did not come, or None."""
        with self._guarded:
            self._state = "starting"
        until_s = time.monotonic() + self._limits.start_s
        try:
            while not self._stopping():
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    self._trouble = f"the worker was not ready after {self._limits.start_s:.3g} s\n{process.log_tail()}"
                    break
                match process.receive(left_s):
                    case Hello(environment=environment):
                        self._environment = environment
                        return None
                    case TaskFailed(message=message):
                        self._trouble = message
                        break
                    case _:
                        pass
            else:
                return "cancelled before it was measured"
        except WorkerDied:
            self._trouble = process.fate()
        self._trouble_at_s = time.monotonic()
        return self._trouble

    def _spawn(self, plugins: tuple[str, ...]) -> None:
        """Start a worker; it opens its session by itself, Hello is read when it is needed."""
        self._plugins, self._stamp, self._environment = plugins, stamp(plugins), None
        held = [self._lock.held_fd()] if self._lock is not None else []
        try:
            process = WorkerProcess(held_fds=held)
        except OSError as error:
            self._trouble, self._trouble_at_s = f"no worker can be started: {error}", time.monotonic()
            return
        with self._guarded:
            self._process = process
            self._started += 1
        try:
            process.send(Open(session=self._session, device=self.device.id, plugins=plugins))
        except WorkerDied:
            self._trouble, self._trouble_at_s = process.fate(), time.monotonic()
            self._drop("the last one could not start")

    def _drop(self, why: str, wait_s: float = 0.0) -> None:
        self._why_new = why
        with self._guarded:
            process, self._process, self._environment = self._process, None, None
        if process is not None:
            process.end(wait_s)

    def _tell_positions(self) -> None:
        """Tell every run that waits how many problems of others come before it, when that has changed."""
        with self._guarded:
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
