"""One worker process with its guard, on the server's side: start it, exchange messages, end it, and learn how it ended."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Mapping

from kernelviz.core import Failure
from kernelviz.core.reasons import WorkerEnded, WorkerGarbled
from kernelviz.worker.guarded_module import start_guarded
from kernelviz.worker.guarded_process import GuardedProcess
from kernelviz.worker.protocol import FROM_WORKER, FromWorker, Incoming, ProtocolError, ToWorker, encode

TAIL_BYTES = 1500
"""How much of the worker's log goes into the message of a failure."""
_LONGEST_LOG_BYTES = 8 * 2**20
_SEND_S = 10.0


class WorkerDied(Exception):
    """The worker has ended, or sent a message that is not valid; `fate()` returns how it ended."""


class WorkerProcess:
    """A worker that is running. Not thread-safe, but for `wake`."""

    def __init__(self, *, guard_fds: Iterable[int] = (), judge_fd: int | None = None, copied: bool = False) -> None:
        """Start guard and worker. Raises OSError.

        `guard_fds`: descriptors that the guard keeps open until the worker's processes are gone. `judge_fd`: the worker's end of
        its connection with a judge; it stays open here. `copied`: see start_guarded.
        """
        self._socket, theirs = socket.socketpair()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        # Opened for appending, so that the worker's next line after a truncation goes to the start of the file.
        self._log = tempfile.TemporaryFile("ab+", prefix="kernelviz-worker-", buffering=0)  # noqa: SIM115
        self._incoming = Incoming(FROM_WORKER)
        self._replies: deque[FromWorker] = deque()
        self._ended = False
        self._garbled: WorkerGarbled | None = None
        sockets = [fd for fd in (theirs.fileno(), judge_fd) if fd is not None]
        try:
            self._guarded = GuardedProcess(
                lambda pipe: start_guarded(
                    "kernelviz.worker",
                    [f"{{{position}}}" for position in range(len(sockets))],
                    pipe=pipe,
                    log=self._log,
                    sockets=sockets,
                    guard_fds=guard_fds,
                    copied=copied,
                )
            )
        except BaseException:
            self._close()
            raise
        finally:
            theirs.close()

    def alive(self) -> bool:
        return not self._ended and self._guarded.poll() is None

    def never_began(self) -> bool:
        """See guarded_module.never_began."""
        return self._guarded.never_began()

    def send(self, message: ToWorker) -> None:
        """Raises WorkerDied."""
        data = memoryview(encode(message))
        until = time.monotonic() + _SEND_S
        while data:
            if not _ready({self._socket.fileno(): select.POLLOUT}, until - time.monotonic()):
                raise WorkerDied
            try:
                sent = self._socket.send(data, socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue
            except OSError:
                raise WorkerDied from None
            data = data[sent:]

    def receive(self, timeout_s: float) -> FromWorker | None:
        """The next message; None when `timeout_s` has passed or `wake` was called. Raises WorkerDied."""
        until = time.monotonic() + timeout_s
        watched = {self._socket.fileno(): select.POLLIN, self._wake_read: select.POLLIN}
        while not self._replies:
            ready = _ready(watched, until - time.monotonic())
            if self._socket.fileno() in ready:
                self._read()
            if not self._replies and self._wake_read in ready:
                os.read(self._wake_read, 512)
                return None
            if not ready:
                return None
        return self._replies.popleft()

    def wake(self) -> None:
        """Make a `receive` of another thread return."""
        with contextlib.suppress(OSError):  # a full pipe wakes the reader too; a closed pipe has no reader
            os.write(self._wake_write, b"w")

    def _read(self) -> None:
        try:
            data = self._socket.recv(1 << 18)
        except OSError:
            data = b""
        if not data:
            raise WorkerDied
        try:
            self._replies += list(self._incoming.feed(data))
        except ProtocolError as error:
            self._garbled = WorkerGarbled(error=str(error))
            raise WorkerDied from None

    def end(self, wait_s: float = 0.0) -> None:
        """Make the guard kill all processes; wait up to `wait_s` until none is left."""
        if self._ended:
            return
        self._ended = True
        self._guarded.end(wait_s)
        self._close()

    def fate(self) -> Failure:
        """After WorkerDied: how the worker ended, with the tail of its log. Ends all processes that are left."""
        reason: WorkerEnded | WorkerGarbled = self._garbled or WorkerEnded()
        if self._garbled is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                # The guard ends as the worker ended, once every descendant is dead.
                reason = ended_by(self._guarded.wait(10.0))
        tail = self.log_tail()
        self.end()
        return Failure(stage="crash", reasons=(reason,), message=tail)

    def log_tail(self, limit: int = TAIL_BYTES) -> str:
        """The last lines that the worker wrote to stdout and stderr."""
        size = os.fstat(self._log.fileno()).st_size
        read = 4 * limit
        text = os.pread(self._log.fileno(), read, max(0, size - read)).decode(errors="replace")
        if size > read:
            text = text.partition("\n")[2] or text
        # faulthandler lists every loaded extension module: thousands of characters that do not help.
        lines = [line for line in text.splitlines() if not line.startswith("Extension modules:")]
        return "\n".join(lines).strip()[-limit:]

    def trim_log(self) -> None:
        """Truncate a long log between units of work, so that a worker that prints for weeks does not fill the disk."""
        if os.fstat(self._log.fileno()).st_size > _LONGEST_LOG_BYTES:
            os.ftruncate(self._log.fileno(), 0)

    def _close(self) -> None:
        self._socket.close()
        os.close(self._wake_read)
        wake, self._wake_write = self._wake_write, -1
        os.close(wake)
        self._log.close()


def _ready(wanted: Mapping[int, int], timeout_s: float) -> set[int]:
    """The descriptors that are ready for the wanted events, or closed. poll is used because a busy server has more than the
    1,024 descriptors that select can handle."""
    poll = select.poll()
    for descriptor, events in wanted.items():
        poll.register(descriptor, events)
    return {descriptor for descriptor, _ in poll.poll(max(0.0, timeout_s) * 1000)}


def ended_by(returncode: int) -> WorkerEnded:
    """
    >>> ended_by(-6).signal, ended_by(3).exit_code, ended_by(-65).signal
    ('SIGABRT', 3, '65')
    """
    if returncode >= 0:
        return WorkerEnded(exit_code=returncode)
    try:
        return WorkerEnded(signal=signal.Signals(-returncode).name)
    except ValueError:
        return WorkerEnded(signal=str(-returncode))
