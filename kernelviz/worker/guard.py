"""The guard: the parent of a worker, which ends every process that the worker started.

    python -I -S guard.py PIPE DESCRIPTORS COMMAND…

In a process of the fork server (worker/fork_server.py), `watch` does the same without a new interpreter.

The server holds the only writing end of PIPE. When it closes (on purpose, or because the server was killed), or when the
worker ends, the guard kills the worker's process group and every descendant, including those in sessions of their own (compile
pools, gcc, ptxas), and then ends as the worker ended. The guard is a subreaper and inherits orphans, so no descendant escapes
when its parent dies. Other descriptors that the guard was given (the device lock's) stay open until then, and are not passed on.

Only the standard library is used, so that this file starts in about 20 ms; importing kernelviz would take longer.
"""

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LINUX = sys.platform == "linux"
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""A guard that gets one of these ends its worker, and then itself."""


def _prctl(option: int, value: int) -> None:
    if _LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _start(program: Callable[[], object], own_fds: Iterable[int]) -> int:
    """Start the worker in a session of its own: a copy of this process without `own_fds`, which calls `program` and ends. Return
    its pid."""
    own_pid = os.getpid()
    worker = os.fork()
    if worker:
        return worker
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == own_pid:  # else the guard died before the line above
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, *_ENDING):
                signal.signal(number, signal.SIG_DFL)
            for fd in own_fds:
                os.close(fd)
            program()
    finally:
        os._exit(127)


def _become(command: list[str], inherited: set[int]) -> None:
    """Replace this process by the command, which inherits these descriptors and no others."""
    for fd in _open_fds():
        os.set_inheritable(fd, fd in inherited or fd <= 2)
    os.execv(command[0], command)


def _open_fds() -> list[int]:
    fds = []
    for name in os.listdir("/proc/self/fd") if _LINUX else map(str, range(256)):  # noqa: PTH208 (pathlib starts slowly)
        with contextlib.suppress(OSError):
            os.fstat(int(name))
            fds.append(int(name))
    return fds


def _descendants() -> Iterator[int]:
    """Every living descendant of this process, as /proc lists them now."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if _LINUX else ():  # noqa: PTH208
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                parent = int(file.read().rpartition(b")")[2].split()[1])
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
    """Reap ended children. Return the worker's wait status (None while it runs), and whether any child is left."""
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
    """Kill and reap until no descendant is left: a process that forks while it is being killed is handled in the next pass."""
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
        pause_s = min(2 * pause_s, 0.1)  # a driver may need a second to release a dead process


def exit_code(status: int | None) -> int:
    """Of a process with this wait status, as subprocess gives it: the negative number of a signal; 0 where it is not known."""
    return 0 if status is None else os.waitstatus_to_exitcode(status)


def _end_like(status: int | None) -> None:
    """End with the worker's exit code or signal, so that the server reads it from the guard."""
    if status is not None and os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(exit_code(status) & 0xFF)


def watch(pipe: int, sockets: Iterable[int], program: Callable[[], object], own_fds: Iterable[int] = ()) -> int | None:
    """Run `program` in a worker, wait until it or the server ends, and end all its descendants. Return the worker's wait status.

    `sockets`: the worker's descriptors, which are closed here. `own_fds`: what the worker does not get, beside `pipe`.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # Writing a core dump of a process that has mapped a GPU takes longer than starting the next worker.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signals: list[int] = []
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    for number in _ENDING:
        signal.signal(number, lambda number, frame: signals.append(number))
    worker = _start(program, (pipe, wake_read, wake_write, *own_fds))
    for fd in sockets:  # so that the other ends of the streams close when the worker ends
        os.close(fd)
    fate: int | None = None
    poll = select.poll()  # not select: a busy server's descriptors have numbers above select's limit of 1,024
    poll.register(pipe, select.POLLIN)
    poll.register(wake_read, select.POLLIN)
    while fate is None and not signals:
        if any(fd == pipe for fd, _ in poll.poll()):
            break
        os.read(wake_read, 512)
        fate, _ = _reap(worker, fate)
    return _end_all(worker, fate)


def main(arguments: list[str]) -> None:
    """Watch the command, and end as it ended."""
    pipe, sockets, command = int(arguments[0]), {int(fd) for fd in arguments[1].split(",")}, arguments[2:]
    _end_like(watch(pipe, sockets, lambda: _become(command, sockets)))


if __name__ == "__main__":
    main(sys.argv[1:])
