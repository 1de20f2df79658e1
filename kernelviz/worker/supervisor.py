"""One thread per device: takes groups from the queue, holds the device lock, keeps a worker, replaces it when it must.

A variant that crashes, hangs or breaks the context costs its own case; the others of the problem are measured by a fresh
worker, which is started the moment the old one is found dead.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import kernelviz.ops
from kernelviz.core.errors import DeviceError
from kernelviz.core.events import CaseDone, DeviceBusy, Event, WorkerStarting
from kernelviz.core.result import Failure
from kernelviz.core.run import Device, Environment
from kernelviz.ops import Op, catalogue
from kernelviz.ops.outcome import failed
from kernelviz.worker.attempt import Attempt, Deadlines, follow
from kernelviz.worker.child import REAL_SESSION
from kernelviz.worker.lock import DeviceLock
from kernelviz.worker.process import Worker, WorkerGone
from kernelviz.worker.protocol import Calibrate, Describe, Described, Hello, Launch, Measure, NoSession, PluginVariant, Task
from kernelviz.worker.queue import FairQueue, Group, Job


class Supervisor:
    """Owns a device: its queue, its lock and its worker. Thread-safe."""

    def __init__(
        self,
        device: Device,
        *,
        session: str = REAL_SESSION,
        plugins: tuple[str, ...] = (),
        deadlines: Deadlines | None = None,
        on_environment: Callable[[Environment], None] = lambda _: None,
    ) -> None:
        self.device, self.session, self.plugins = device, session, plugins
        self.deadlines = deadlines or Deadlines()
        self.queue = FairQueue()
        self.environment: Environment | None = None
        self._on_environment = on_environment
        self._worker: Worker | None = None
        self._greeted = False
        self._current: Job | None = None
        self._state = "idle, no worker"
        self._closing = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    # What other threads call

    def submit(self, job: Job) -> None:
        """Queue a job; its thread starts with the first."""
        self.queue.put(job)
        with self._starting:
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._serve, name=f"kernelviz {self.device.id}", daemon=True)
                self._thread.start()

    def cancel(self, job: Job) -> None:
        """End a job after its current block; one that waits ends when its turn comes, at once if nothing runs."""
        job.cancelled = True
        self._wake()

    def state(self) -> dict[str, object]:
        """For the health route."""
        worker = self._worker
        return {
            "device": self.device.id,
            "name": self.device.name,
            "state": self._state,
            "worker_alive": worker is not None and worker.alive,
            "worker_pid": worker.pid if worker else None,
            "measuring": self._current.id if self._current else None,
            "waiting": self.queue.waiting(),
        }

    def close(self) -> None:
        """Stop the thread and end the worker with everything that it started."""
        self._closing = True
        self.queue.close()
        self._wake()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(10)
        self._end_worker()

    # The device's thread

    def _serve(self) -> None:
        while (taken := self.queue.take()) is not None:
            job, group = taken
            message = ""
            if group is not None:
                self._current = job
                try:
                    message = self._locked(job, group)
                except Exception as error:
                    message = f"{type(error).__name__}: {error}"
                    job.groups.clear()
                finally:
                    self._current = None
                    self._state = "idle" if self._worker is not None else "idle, no worker"
            if self._closing:
                return
            if group is None or not job.groups or message:
                job.groups.clear()
                job.ended(message)

    def _locked(self, job: Job, group: Group) -> str:
        """Do one group while holding the device; a message when the job cannot go on."""
        lock = DeviceLock(self.device.uuid)
        told = ""

        def waiting(holder: str) -> bool:
            nonlocal told
            self._state = f"waiting for {holder}"
            if holder != told:
                told = holder
                job.tell(DeviceBusy(holder=holder))
            return not (job.cancelled or self._closing)

        if not lock.acquire(waiting):
            return ""
        try:
            if group.problem is None:
                return self._calibrate(job)
            return self._measure(job, group)
        finally:
            lock.release()

    def _calibrate(self, job: Job) -> str:
        worker = self._ready(job)
        self._state = "calibrating"
        if isinstance(worker, str):
            return worker
        attempt = self._follow(worker, Calibrate(), job)
        self._settle(attempt)
        return attempt.failure.message if attempt.failure and not job.cancelled else ""

    def _measure(self, job: Job, group: Group) -> str:
        assert group.problem is not None
        ops = catalogue()
        op = ops.get(group.problem.op)
        batches = [list(group.variants)]
        while batches and not self._closing:
            batch = batches.pop(0)
            if job.cancelled:
                return ""
            worker = self._ready(job)
            if isinstance(worker, str):
                return worker
            self._state = f"measuring {group.problem.key}"
            task = Measure(problem=group.problem, variants=tuple(batch), baseline=job.baseline, method=job.method)
            attempt = self._follow(worker, task, job)
            self._settle(attempt)
            batches = [*self._left(job, group, batch, attempt, op), *batches]
        return ""

    def _left(self, job: Job, group: Group, batch: list[str], attempt: Attempt, op: Op | None) -> list[list[str]]:
        """Batches still to be measured after an attempt; tells the failure of the case that is to blame."""
        missing = [v for v in batch if v not in attempt.done]
        if attempt.failure is None and not (attempt.spoilt and missing):
            return []
        failure = attempt.failure or Failure(stage="crash", message=f"the worker was lost: {attempt.spoilt}")
        measuring = attempt.blamed is not None and attempt.blamed.step == "measuring"
        if measuring and len(missing) > 1 and failure.stage != "cancelled":
            # In a round any of them may have done it: each is tried again, alone.
            return [[v] for v in missing]
        blamed = attempt.blamed.case.variant if attempt.blamed else (missing[0] if missing else None)
        if attempt.failure is None and attempt.done:
            # The process was spoilt by a case that has told its failure; the others are measured elsewhere.
            blamed = None
        assert group.problem is not None
        if blamed is not None and blamed in missing:
            job.tell(CaseDone(result=failed(op, group.problem, blamed, failure)))
            missing.remove(blamed)
        if not missing or failure.stage == "cancelled":
            return []
        # Ratios need shared rounds, so what was measured before the crash is measured again beside the rest.
        return [[v for v in batch if v != blamed and (v in missing or v == job.baseline)]]

    # The worker

    def _ready(self, job: Job) -> Worker | str:
        """A worker that is open for the job's plug-ins, or why there is none."""
        plugins = tuple(dict.fromkeys((*self.plugins, *job.plugins)))
        reason = self._unfit(plugins)
        if reason is not None:
            job.tell(WorkerStarting(reason=reason))
            self._end_worker()
            self._start(plugins)
        worker = self._worker
        assert worker is not None
        if self._greeted:
            return worker
        self._state = "starting a worker"
        try:
            greeting = self._greeting(worker)
        except WorkerGone as gone:
            self._end_worker()
            return f"the worker {gone.how} while starting"
        if isinstance(greeting, str):
            self._end_worker()
            return greeting
        self._greeted = True
        self.environment = greeting.environment
        self._on_environment(greeting.environment)
        return worker

    def _greeting(self, worker: Worker) -> Hello | str:
        until = time.monotonic() + self.deadlines.starting_s
        while (left := until - time.monotonic()) > 0 and not self._closing:
            message = self._received(worker, left)
            match message:
                case Hello():
                    return message
                case NoSession(message=text):
                    return text
                case _:
                    continue
        return f"the worker did not start within {self.deadlines.starting_s:.0f} s; its last words: {worker.log_tail()}"

    def _unfit(self, plugins: tuple[str, ...]) -> str | None:
        worker = self._worker
        if worker is None:
            return "the first measurement starts a worker"
        if not worker.alive:
            return "the worker is gone"
        if worker.plugins != plugins:
            return "other plug-ins are asked for"
        if _changed_since(worker.started_s, plugins):
            return "files of ops or plug-ins have changed"
        return None

    def _start(self, plugins: tuple[str, ...]) -> None:
        self._worker, self._greeted = Worker(self.session, self.device.id, plugins), False

    def _end_worker(self) -> None:
        worker, self._worker, self._greeted = self._worker, None, False
        if worker is not None:
            worker.end()

    def _settle(self, attempt: Attempt) -> None:
        """After an attempt that broke or spoilt the worker: end it and start the next at once, in the background."""
        if (attempt.failure is not None or attempt.spoilt is not None) and not self._closing:
            plugins = self._worker.plugins if self._worker else self.plugins
            self._end_worker()
            self._start(plugins)

    def _follow(self, worker: Worker, task: Task, job: Job) -> Attempt:
        return follow(worker, task, self.deadlines, job.tell, lambda: job.cancelled or self._closing, self._wake_read)

    def _received(self, worker: Worker, timeout_s: float) -> object:
        message = worker.receive(timeout_s, self._wake_read)
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_read, 4096)
        return message

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"x")


def _changed_since(started_s: float, plugins: tuple[str, ...]) -> bool:
    """Whether a file of ops or of a plug-in was written after that time (about 0.2 ms)."""
    root = Path(kernelviz.ops.__file__).parent
    files = [p for p in root.rglob("*") if p.suffix in (".py", ".cu", ".cpp")] + [Path(p) for p in plugins]
    for path in files:
        with contextlib.suppress(OSError):
            if path.stat().st_mtime > started_s:
                return True
    return False
