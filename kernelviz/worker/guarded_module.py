"""Run a module of kernelviz under a guard, which ends all its processes: a new interpreter, or a copy of the fork server."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Protocol

import kernelviz
from kernelviz.worker import fork_server
from kernelviz.worker.fork_server import ForkRequest, guarded_command

ROOT = Path(kernelviz.__file__).parents[1]
_SUFFIXES = {".py", ".cu", ".cuh", ".cpp", ".h"}
_NOT_IMPORTED_BY = ("KERNELVIZ_", "PYTEST_")
"""Variables whose names begin so change nothing of what torch, Triton and the modules that measure do while they are imported."""
KILLED = -9


class Guard(Protocol):
    """The guard of a module, by which one learns how the module ended."""

    def poll(self) -> int | None:
        """The exit code of the module as subprocess gives it, when no process of it is left; None before."""

    def wait(self, timeout: float | None = None) -> int:
        """As `poll`, after at most so many seconds. Raises subprocess.TimeoutExpired."""


class ForkedGuard:
    """A guard that is no child of this process. It writes the exit code of its module into a pipe before it ends."""

    def __init__(self, code_fd: int) -> None:
        self._fd = code_fd
        self._code: int | None = None

    def poll(self) -> int | None:
        """See Guard."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0.0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """See Guard. KILLED where the guard itself, or the fork server before it had started the guard, was killed."""
        if self._code is None:
            poll = select.poll()
            poll.register(self._fd, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired("guard", timeout or 0.0)
            data = os.read(self._fd, 4)
            os.close(self._fd)
            self._code = int.from_bytes(data, "little", signed=True) if len(data) == 4 else KILLED
        return self._code


class ForkServer:
    """The fork server of this process, on its side."""

    def __init__(self) -> None:
        """Start it. It imports what workers need meanwhile. Raises OSError."""
        self._imported = _importable()
        self._log = tempfile.TemporaryFile("ab+", prefix="kernelviz-fork-server-", buffering=0)  # noqa: SIM115
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", fork_server.__name__, str(theirs.fileno()), *fork_server.NEEDED],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                env=environment(),
            )

    def usable(self) -> bool:
        """Whether it runs, and has imported what a new interpreter would import now."""
        return self._process.poll() is None and self._imported == _importable()

    def start(
        self,
        module: str,
        arguments: Sequence[str],
        pipe: int,
        log: int,
        sockets: Sequence[int],
        guard_fds: Iterable[int],
    ) -> ForkedGuard:
        """Have it start a guard with a copy of itself that runs the module. Raises OSError."""
        code_read, code_write = os.pipe()
        try:
            request = ForkRequest(
                module=module,
                arguments=tuple(arguments),
                sockets=len(sockets),
                environment={os.fsencode(name): os.fsencode(value) for name, value in environment().items()},
                folder=str(Path.cwd()),
            )
            fork_server.ask(self._connection, request, [pipe, code_write, log, *sockets, *guard_fds])
        except BaseException:
            os.close(code_read)
            raise
        finally:
            os.close(code_write)
        return ForkedGuard(code_read)

    def close(self) -> None:
        """End it. What it started continues."""
        self._connection.close()
        self._process.wait()
        self._log.close()


_shared = threading.Lock()
_servers: list[ForkServer] = []
"""The fork server of this process, if it has one. It ends with this process."""


def _fork_server() -> ForkServer:
    """The fork server of this process; a new one where the last has ended, or where what it has imported has changed since.
    Raises OSError."""
    if _servers and not _servers[0].usable():
        _servers.pop().close()
    if not _servers:
        _servers.append(ForkServer())
    return _servers[0]


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
    copy of the fork server, which has imported torch, in place of a new interpreter.
    """
    if copied and sys.platform == "linux":
        with contextlib.suppress(ConnectionError), _shared:  # the fork server ended just now
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


def environment() -> dict[str, str]:
    """The environment of child processes: the server's, with this kernelviz first on PYTHONPATH, so that they import it in any
    folder."""
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{path}" if path else str(ROOT), "PYTHONUNBUFFERED": "1"}


def _importable() -> tuple[dict[str, str], frozenset[tuple[str, int, int]]]:
    """What decides what an import does: variables of the environment; path, modification time (ns) and size of every source file
    of kernelviz, and of the folders in which packages are installed."""
    variables = {name: value for name, value in environment().items() if not name.startswith(_NOT_IMPORTED_BY)}
    sources = [path for path in Path(kernelviz.__file__).parent.rglob("*") if path.suffix in _SUFFIXES]
    installed = [path for path in map(Path, sys.path) if path.name in ("site-packages", "dist-packages")]
    stats = set()
    for path in (*sources, *installed):
        with contextlib.suppress(OSError):
            status = path.stat()
            stats.add((str(path), status.st_mtime_ns, status.st_size))
    return variables, frozenset(stats)
