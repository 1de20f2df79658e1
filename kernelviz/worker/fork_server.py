"""The fork server of a kernelviz process: it imports what a worker needs once, and each worker begins as a copy of it.

    python -P -m kernelviz.worker.fork_server SOCKET MODULE...

Importing torch and Triton takes 2 s of processor time, and 5 s on a slow host. A worker is replaced after a crash, after a
change of a plug-in, and for each untrusted variant. Here the import is paid once, and a fork takes 20 ms.

No code of a variant or a plug-in ever runs in this process, and it never opens a device: CUDA cannot be used after a fork. Where
a copy would not be what a new interpreter is, a new interpreter is started: always if an import has opened a device, and once if
an imported file or a variable of the environment has changed since; then this process replaces itself by a new one. It ends when
the server has ended; guards and workers that it started do not depend on it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import msgspec

from kernelviz.worker import guard

NEEDED = (
    "torch",
    "triton",
    "cuda.core",
    "kernelviz.worker.child",
    "kernelviz.measure.session.device_session",
    "kernelviz.measure.timing.cuda",
    "kernelviz.measure.judge.judge",
    "kernelviz.ops.kernels.nvrtc",
)
"""What a worker or a judge imports before it opens its device."""
DEVICES = "/dev/nvidia"
"""With what the names of a GPU's device files begin."""
MOST_DESCRIPTORS = 32
LONGEST_IMPORT_S = 300
"""Then this process is ended. Descriptors that wait for it, such as that of a device's lock, would stay open otherwise."""
BEGAN = b"+"
"""What a guard writes first into the pipe for the exit code."""
_NOT_IMPORTED_BY = (b"KERNELVIZ_", b"PYTEST_")
"""Variables whose names begin so change nothing of what torch, Triton and the modules that measure do while they are imported."""


class ForkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Run a module as `python -m` does, under a guard.

    `arguments`: `{0}` in one of them stands for the number that the first socket has in the new process. `sockets`: how many of
    the descriptors the module gets. `environment`: its variables. `folder`: its current folder; None: that of this process.
    """

    module: str
    arguments: tuple[str, ...]
    sockets: int
    environment: dict[bytes, bytes]
    folder: bytes | None


def ask(connection: socket.socket, request: ForkRequest, descriptors: Sequence[int]) -> None:
    """Send a request. `descriptors`: the guard's pipe, a pipe for the exit code, the log, the sockets, and what the guard keeps
    open. Raises OSError where the fork server is gone."""
    with tempfile.TemporaryFile(buffering=0) as file:  # an environment may be larger than a packet
        file.write(msgspec.msgpack.encode(request))
        socket.send_fds(connection, [b"fork"], [file.fileno(), *descriptors])


def _next(connection: socket.socket) -> tuple[ForkRequest, list[int]] | None:
    """The next request and its descriptors; None when the server is gone."""
    with contextlib.suppress(OSError):
        data, descriptors, _, _ = socket.recv_fds(connection, 16, MOST_DESCRIPTORS)
        if data:
            with os.fdopen(descriptors[0], "rb") as file:
                file.seek(0)
                return msgspec.msgpack.decode(file.read(), type=ForkRequest), descriptors[1:]
    return None


def serve(descriptor: int, modules: Sequence[str]) -> None:
    """Import these modules, and then fork for each request until the server closes the connection."""
    connection = socket.socket(fileno=descriptor)
    connection.set_inheritable(False)
    signal.alarm(LONGEST_IMPORT_S)
    _import(modules)
    signal.alarm(0)
    _leave_nothing_to_reap()
    unusable = _opened_devices()
    if unusable:
        print(f"an import opened {', '.join(unusable)}: workers begin in new interpreters", file=sys.stderr)  # noqa: T201
    files = _states()
    while (received := _next(connection)) is not None:
        request, descriptors = received
        stale = _import_variables(request.environment) != _import_variables(os.environb) or files != _states(files)
        if _fork() == 0:
            try:
                connection.close()
                _guard(request, descriptors, copied=not (unusable or stale))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        for fd in descriptors:
            os.close(fd)
        if stale:
            _begin_again(connection, request.environment, modules)


def _fork() -> int:
    """As os.fork; -1 where there is no memory or number for another process, so that the server begins a new interpreter."""
    with warnings.catch_warnings():
        # Of other threads: numpy's library of linear algebra has one, which is prepared for a fork.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return os.fork()
        except OSError:
            traceback.print_exc()
            return -1


def _leave_nothing_to_reap() -> None:
    """Of guards that end from now on, and of those that have ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _begin_again(connection: socket.socket, environment: Mapping[bytes, bytes], modules: Sequence[str]) -> None:
    """Replace this process by a new fork server with this environment, which has its number, its connection and its children."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # an import may run a program
    connection.set_inheritable(True)
    command = [sys.executable, "-P", "-m", "kernelviz.worker.fork_server", str(connection.fileno()), *modules]
    os.execve(command[0], command, environment)


def _import(modules: Sequence[str]) -> None:
    # What imports make stays. Searching it for garbage takes a third of the time, and copies its memory in each worker.
    gc.disable()
    for name in modules:
        with contextlib.suppress(Exception):  # the worker's own import raises it again, and the worker reports it
            importlib.import_module(name)
    with contextlib.suppress(Exception):
        from kernelviz.ops import catalogue

        catalogue()
    gc.freeze()


def _import_variables(environment: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Those on which it may depend what an import does."""
    return {name: value for name, value in environment.items() if not name.startswith(_NOT_IMPORTED_BY)}


def _states(names: Mapping[str, object] | None = None) -> dict[str, tuple[int, int] | None]:
    """Modification time (ns) and size of these files, or of all that were imported: of modules, and of the folders of packages,
    whose time changes when a module is added; None where there is none."""
    if names is None:
        # Not by getattr: torch.classes has any attribute that one asks for.
        modules = [vars(module) for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
        files = {module.get("__file__") for module in modules}
        paths = [path for module in modules if isinstance(path := module.get("__path__"), Iterable)]
        folders = {place for path in paths for place in path}
        names = dict.fromkeys(name for name in files | folders if isinstance(name, str) and name)
    states: dict[str, tuple[int, int] | None] = {}
    for name in names:
        try:
            status = os.stat(name)  # noqa: PTH116 (of 2,000 files: a Path of each takes longer than its stat)
        except OSError:
            states[name] = None
        else:
            states[name] = status.st_mtime_ns, status.st_size
    return states


def _opened_devices() -> list[str]:
    """The GPU devices that this process has open."""
    opened = []
    with contextlib.suppress(OSError):  # there is /proc on Linux only
        for link in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                opened.append(str(link.readlink()))
    return sorted({name for name in opened if name.startswith(DEVICES)})


def _guard(request: ForkRequest, descriptors: Sequence[int], *, copied: bool) -> None:
    """Be the guard of the module, and write how it ended into the pipe for the exit code: BEGAN, and at the end 4 bytes."""
    pipe, code, log, *rest = descriptors
    sockets, guard_fds = rest[: request.sockets], rest[request.sockets :]
    os.write(code, BEGAN)
    os.setsid()
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.environb.clear()
    os.environb.update(request.environment)
    if request.folder is not None:
        with contextlib.suppress(OSError):
            os.chdir(request.folder)
    if copied:
        ended = guard.exit_code(guard.watch(pipe, sockets, lambda: _run(request, sockets), (code, *guard_fds)))
    else:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        command = guarded_command(request.module, request.arguments, pipe, sockets)
        process = subprocess.Popen(command, pass_fds=(pipe, *sockets, *guard_fds))
        for fd in sockets:
            os.close(fd)
        ended = process.wait()
    os.write(code, ended.to_bytes(4, "little", signed=True))
    os._exit(0)


def guarded_command(module: str, arguments: Sequence[str], pipe: int, sockets: Sequence[int]) -> list[str]:
    """The command that runs a module under a guard in new interpreters."""
    numbers = [str(fd) for fd in sockets]
    command = [sys.executable, "-P", "-m", module, *(one.format(*numbers) for one in arguments)]
    return [sys.executable, "-I", "-S", guard.__file__, str(pipe), ",".join(numbers), *command]


def _run(request: ForkRequest, sockets: Sequence[int]) -> None:
    """Run the module as a new interpreter would, and end the process."""
    gc.enable()
    code = 1
    try:
        sys.argv = [request.module, *(one.format(*sockets) for one in request.arguments)]
        runpy.run_module(request.module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code & 0xFF)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2:])
