"""The guard: parent of a worker, and the one who ends everything that the worker started.

    python -I -S guard.py PIPE SOCKET COMMAND…

The server holds the only writing end of PIPE. When it closes (on purpose, or because the server was killed), or when the
worker ends, the guard kills the worker's group and every descendant, those in sessions of their own included (compile
pools, gcc, ptxas), and then ends as the worker ended. A subreaper inherits orphans, so none escapes by its parent's death.
Other descriptors that the guard was given (the device lock's) stay open until all this is done, and are not passed on.

Standard library only: this file starts in about 20 ms, before anything of kernelviz is imported.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Iterator

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LINUX = sys.platform == "linux"


def _prctl(option: int, value: int) -> None:
    if _LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _start(command: list[str], socket_fd: int) -> int:
    """The worker, in a session of its own, holding the socket and nothing else of ours."""
    own_pid = os.getpid()
    worker = os.fork()
    if worker:
        return worker
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == own_pid:  # else the guard died before the line above
            for fd in _open_fds():
                os.set_inheritable(fd, fd == socket_fd or fd <= 2)
            os.execv(command[0], command)
    finally:
        os._exit(127)


def _open_fds() -> list[int]:
    found = []
    for name in os.listdir("/proc/self/fd") if _LINUX else map(str, range(256)):  # noqa: PTH208 (pathlib starts slowly)
        try:
            os.fstat(int(name))
        except OSError:
            continue
        found.append(int(name))
    return found


def _descendants() -> Iterator[int]:
    """Every living descendant of this process, as /proc tells it now."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if _LINUX else ():  # noqa: PTH208
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            children.setdefault(parent, []).append(int(name))
    waiting = [os.getpid()]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            yield child
            waiting.append(child)


def _kill(target: int, *, group: bool = False) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        (os.killpg if group else os.kill)(target, signal.SIGKILL)


def _reap(worker: int, fate: int | None) -> tuple[int | None, bool]:
    """Collect the dead. The worker's wait status once it is known, and whether any child is left."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return fate, False
        if pid == 0:
            return fate, True
        if pid == worker:
            fate = status


def _end_all(worker: int, fate: int | None) -> int | None:
    """Kill and collect until no descendant is left: what forks while it is being killed is met again."""
    pause_s = 0.002
    while True:
        if fate is None:
            _kill(worker, group=True)
        for pid in list(_descendants()):
            _kill(pid)
        fate, left = _reap(worker, fate)
        if not left:
            return fate
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.1)  # a driver may take a second to let go of a dead process


def _end_like(status: int | None) -> None:
    """End as the worker ended, so that the server reads its fate in ours."""
    if status is not None and os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(0 if status is None else os.waitstatus_to_exitcode(status) & 0xFF)


def main(arguments: list[str]) -> None:
    """Start the command, wait for its end or for the server's, leave nothing behind."""
    pipe, socket_fd, command = int(arguments[0]), int(arguments[1]), arguments[2:]
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # Writing a core of a process that has mapped a GPU takes longer than starting the next one.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    asked: list[int] = []
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: asked.append(number))
    worker = _start(command, socket_fd)
    os.close(socket_fd)  # the server sees the end of the worker as the end of this stream
    fate: int | None = None
    poll = select.poll()  # not select: a busy server's pipe has a number above the 1,024 that it can hold
    poll.register(pipe, select.POLLIN)
    poll.register(wake_read, select.POLLIN)
    while fate is None and not asked:
        if any(fd == pipe for fd, _ in poll.poll()):
            break
        os.read(wake_read, 512)
        fate, _ = _reap(worker, fate)
    _end_like(_end_all(worker, fate))


if __name__ == "__main__":
    main(sys.argv[1:])
