"""The worker of a device: started when it is needed, replaced when it must be, ready before the next request."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import kernelviz.ops
from kernelviz.core import Environment, Failure
from kernelviz.core.reasons import NoWorker, WorkerNotReady
from kernelviz.measure.compile_ahead.processes import compile_processes
from kernelviz.worker.limits import Limits
from kernelviz.worker.process import WorkerDied, WorkerProcess
from kernelviz.worker.protocol import Hello, Open, WorkFailed

Stamp = frozenset[tuple[str, int, int]]
_SUFFIXES = {".py", ".cu", ".cuh", ".cpp", ".h"}
SESSION = "kernelviz.measure.session.device_session:open_session"
START_AGAIN_S = 15.0
"""A worker that could not start is not started again for this long, so that a sweep of 100 problems fails at once."""


class WorkerSlot:
    """The one worker of a device. For the supervisor's thread, except for `wake` and the counters."""

    def __init__(self, device_id: str, session: str, limits: Limits) -> None:
        self._device_id, self._session, self._limits = device_id, session, limits
        self._shared = threading.Lock()  # `wake` must not use a process that is being ended
        self._process: WorkerProcess | None = None
        self._environment: Environment | None = None
        self._plugins: tuple[str, ...] = ()
        self._stamp: Stamp = frozenset()
        self._judged = False
        self._why_new = "none was running"
        self._failed_at_s = -START_AGAIN_S
        self.guard_fds: tuple[int, ...] = ()
        """Descriptors that stay open as long as any process that a worker started still lives (the device lock's)."""
        self.started = 0
        self.trouble: Failure | None = None

    @property
    def present(self) -> bool:
        return self._process is not None

    def wake(self) -> None:
        """Wake the thread that waits for the worker."""
        with self._shared:
            if self._process is not None:
                self._process.wake()

    def ready(
        self, plugins: tuple[str, ...], starting: Callable[[str], None], stopping: Callable[[], bool]
    ) -> tuple[WorkerProcess, Environment] | None:
        """A worker with these plug-ins, and the environment of its open session; None when there is none, with the reason in
        `trouble`.

        `starting` is called with the reason why a new worker is needed, when it has to start. None also when `stopping` returned
        True meanwhile; the worker continues to start, for the next request.
        """
        now_stamp = stamp(plugins)
        self._dismiss_unfit(plugins, now_stamp)
        if self._process is None:
            if time.monotonic() - self._failed_at_s < START_AGAIN_S and now_stamp == self._stamp:
                return None
            self.start(plugins)
        process = self._process
        if process is None:
            return None
        if self._environment is None:
            starting(self._why_new)
            self._environment = self._greeting(process, stopping)
            # A judged worker is not tried again here: its connection with the judge is gone. The judge began by the same way.
            if self._environment is None and not self._judged and not stopping() and process.never_began():
                self.end(self._why_new)
                self.start(plugins)
                process = self._process
                if process is None:
                    return None
                self._environment = self._greeting(process, stopping)
        if self._environment is not None:
            return process, self._environment
        if not stopping():
            self._failed_at_s = time.monotonic()
            self.end("the previous worker could not start")
        return None

    def _dismiss_unfit(self, plugins: tuple[str, ...], now_stamp: Stamp) -> None:
        if self._process is None:
            return
        if not self._process.alive():
            self.trouble = self._process.fate()
            self.end("the previous worker ended while it was idle")
        elif plugins != self._plugins:
            self.end("the request has other plug-ins")
        elif now_stamp != self._stamp:
            self.end("files of ops or plug-ins have changed")

    def _greeting(self, process: WorkerProcess, stopping: Callable[[], bool]) -> Environment | None:
        """Wait for Hello; None when it does not come, with the reason in `trouble`."""
        until_s = time.monotonic() + self._limits.start_s
        try:
            while not stopping():
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    self.trouble = Failure(
                        stage="timeout",
                        reasons=(WorkerNotReady(seconds=self._limits.start_s),),
                        message=process.log_tail(),
                    )
                    return None
                match process.receive(left_s):
                    case Hello(environment=environment):
                        return environment
                    case WorkFailed() as reply:
                        self.trouble = reply.failure
                        return None
        except WorkerDied:
            self.trouble = process.fate()
        return None

    def start(self, plugins: tuple[str, ...], judge_fd: int | None = None) -> None:
        """Start a worker. It opens its session by itself; its Hello is read when the worker is needed. `judge_fd`: its end of a
        connection with a judge; it stays open here."""
        self._plugins, self._stamp, self._environment = plugins, stamp(plugins), None
        self._judged = judge_fd is not None
        try:
            copied = self._session == SESSION  # others, of tests, import no torch
            process = WorkerProcess(guard_fds=self.guard_fds, judge_fd=judge_fd, copied=copied)
        except OSError as error:
            self.trouble = Failure(stage="unavailable", reasons=(NoWorker(),), message=str(error))
            self._failed_at_s = time.monotonic()
            return
        with self._shared:
            self._process = process
        self.started += 1
        try:
            process.send(
                Open(
                    session=self._session,
                    device=self._device_id,
                    plugins=plugins,
                    compile_processes=0 if judge_fd is not None else self._compile_processes(),
                )
            )
        except WorkerDied:
            self.trouble, self._failed_at_s = process.fate(), time.monotonic()
            self.end("the previous worker could not start")

    def _compile_processes(self) -> int:
        """The number of processes that compile ahead: none for a processor, or for a session that does not compile."""
        return compile_processes() if self._session == SESSION and self._device_id.startswith("cuda") else 0

    def end(self, why: str, wait_s: float = 0.0) -> None:
        """End the worker and every process that it started; `why` becomes the reason for starting the next one."""
        self._why_new = why
        with self._shared:
            process, self._process, self._environment = self._process, None, None
        if process is not None:
            process.end(wait_s)


def stamp(plugins: Iterable[str]) -> Stamp:
    """Path, modification time (ns) and size of every source file of the catalogue and of these plug-ins."""
    paths = [p for root in kernelviz.ops.__path__ for p in Path(root).rglob("*") if p.suffix in _SUFFIXES]
    stats = set()
    for path in [*paths, *map(Path, plugins)]:
        with contextlib.suppress(OSError):
            status = path.stat()
            stats.add((str(path), status.st_mtime_ns, status.st_size))
    return frozenset(stats)
