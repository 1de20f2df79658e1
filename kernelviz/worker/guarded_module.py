"""Run a module of kernelviz under a guard, which ends all its processes: a new interpreter, or a copy of the fork server."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Protocol

import kernelviz
from kernelviz.worker import fork_server
from kernelviz.worker.fork_server import BEGAN, ForkRequest, guarded_command

ROOT = Path(kernelviz.__file__).parents[1]
KILLED = -9
_CODE_BYTES = 4
_SEND_S = 5.0

_log = logging.getLogger(__name__)


class Guard(Protocol):
    """The guard of a module, by which one learns how the module ended."""

    def poll(self) -> int | None:
        """The exit code of the module as subprocess gives it, when no process of it is left; None before."""

    def wait(self, timeout: float | None = None) -> int:
        """As `poll`, after at most so many seconds. Raises subprocess.TimeoutExpired."""


class ForkedGuard:
    """A guard that is no child of this process. It writes into a pipe that it has begun, and at its end the module's exit code.
    May be asked from any thread."""

    def __init__(self, code_fd: int) -> None:
        self._fd, self._data = code_fd, b""
        self._code: int | None = None
        self._lock = threading.Lock()

    @property
    def began(self) -> bool:
        """Whether the fork server has started it, as far as `poll` and `wait` have seen."""
        return self._data.startswith(BEGAN)

    def poll(self) -> int | None:
        """See Guard."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0.0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """See Guard. KILLED where the guard itself was killed, or did not begin because the fork server failed."""
        until_s = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while self._code is None:
                left_s = None if until_s is None else max(0.0, until_s - time.monotonic())
                poll = select.poll()
                poll.register(self._fd, select.POLLIN)
                if not poll.poll(None if left_s is None else left_s * 1000):
                    raise subprocess.TimeoutExpired("guard", timeout or 0.0)
                data = os.read(self._fd, len(BEGAN) + _CODE_BYTES)
                self._data += data
                code = self._data[len(BEGAN) :]
                if len(code) == _CODE_BYTES or not data:
                    os.close(self._fd)
                    self._code = int.from_bytes(code, "little", signed=True) if len(code) == _CODE_BYTES else KILLED
            return self._code


class ForkServer:
    """The fork server of this process, on its side."""

    def __init__(self) -> None:
        """Start it. It imports what workers need meanwhile. Raises OSError."""
        self._output = tempfile.TemporaryFile("ab+", prefix="kernelviz-fork-server-", buffering=0)  # noqa: SIM115
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._connection.settimeout(_SEND_S)  # a server that hangs takes no more requests than its queue holds
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", fork_server.__name__, str(theirs.fileno()), *fork_server.NEEDED],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                env=environment(),
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> bool:
        return self._process.poll() is None

    def start(
        self,
        module: str,
        arguments: Sequence[str],
        pipe: int,
        log: int,
        sockets: Sequence[int],
        guard_fds: Iterable[int],
    ) -> ForkedGuard:
        """Have it start a guard with a copy of itself that runs the module. Raises OSError, UnicodeError."""
        code_read, code_write = os.pipe()
        try:
            request = ForkRequest(
                module=module,
                arguments=tuple(arguments),
                sockets=len(sockets),
                environment={os.fsencode(name): os.fsencode(value) for name, value in environment().items()},
                folder=_folder(),
            )
            fork_server.ask(self._connection, request, [pipe, code_write, log, *sockets, *guard_fds])
        except BaseException:
            os.close(code_read)
            raise
        finally:
            os.close(code_write)
        return ForkedGuard(code_read)

    def close(self) -> str:
        """End it at once; what it started continues. Returns the end of what it wrote."""
        self._process.kill()
        self._process.wait()
        self._connection.close()
        with self._output as file:
            return end_of(file.fileno(), 2000)


_shared = threading.Lock()
_servers: list[ForkServer] = []
"""The fork server of this process, if it has one. It ends with this process."""
_failed = False
"""Whether a fork server has failed. From then on, this process starts new interpreters."""


def _fork_server() -> ForkServer:
    """The fork server of this process; a new one where the last has ended. Raises OSError."""
    if _servers and not _servers[0].alive():
        _servers.pop().close()
    if not _servers:
        _servers.append(ForkServer())
    return _servers[0]


def never_began(guard: Guard) -> bool:
    """Whether the guard was asked of the fork server and has not begun. If so, the fork server is ended, and the next modules
    begin in new interpreters."""
    if not isinstance(guard, ForkedGuard):
        return False
    guard.poll()
    if guard.began:
        return False
    global _failed
    with _shared:
        _failed = True
        for server in _servers:
            _log.warning("the fork server did not start a process; it wrote: %s", server.close())
        _servers.clear()
    return True


def start_guarded(
    module: str,
    arguments: Sequence[str],
    *,
    pipe: int,
    log: IO[bytes],
    sockets: Sequence[int],
    guard_fds: Iterable[int] = (),
    copied: bool = False,
) -> Guard:
    """Run a module under a guard. Raises OSError.

    `arguments`: `{0}` stands for the number of the first of `sockets`, the descriptors that the module gets. `pipe`: the guard
    ends everything when its other end closes. `guard_fds`: descriptors that the guard keeps open until then. `copied`: begin as a
    copy of the fork server, which has imported torch, where there is one, in place of a new interpreter.
    """
    guard_fds = tuple(guard_fds)
    if copied and sys.platform == "linux" and not _failed:
        # Nothing was started when one of these is raised: the fork server ended or hangs, or a file cannot be made.
        with contextlib.suppress(OSError, UnicodeError), _shared:
            return _fork_server().start(module, arguments, pipe, log.fileno(), sockets, guard_fds)
    return subprocess.Popen(
        guarded_command(module, arguments, pipe, sockets),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(pipe, *sockets, *guard_fds),
        start_new_session=True,
        env=environment(),
    )


def end_of(log: int, most_bytes: int) -> str:
    """The end of a log, by its descriptor."""
    size = os.fstat(log).st_size
    return os.pread(log, most_bytes, max(0, size - most_bytes)).decode(errors="replace").strip()


def environment() -> dict[str, str]:
    """The environment of child processes: the server's, with this kernelviz first on PYTHONPATH, so that they import it in any
    folder."""
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{path}" if path else str(ROOT), "PYTHONUNBUFFERED": "1"}


def _folder() -> bytes | None:
    """The current folder; None where it was removed."""
    with contextlib.suppress(FileNotFoundError):
        return os.getcwdb()  # noqa: PTH109 (its name may be no text)
    return None
