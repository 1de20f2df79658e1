"""Call a function that reads a file from elsewhere in a process of its own, with limits that the operating system enforces.

A few kilobytes of Parquet or of JSON can stand for gigabytes of values, and no check of a file's size sees that in advance. If
the function needs more than its limits, only that process ends, and the file is refused.
"""

from __future__ import annotations

import gc
import importlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import msgspec

from kernelviz.core import DocumentError

MEMORY_FACTOR = 4
"""A reader may use so many times the largest size of a file of its format, beyond what its process needs to start."""
WALL_S = 120.0
"""A process with a limit of processor time is killed after this time, however little of a busy processor it got."""
_TAIL_BYTES = 2_000
_PROGRAM = f"import sys; sys.path[:0] = [sys.argv.pop(1)]; from {__name__} import main; main()"
# Each thread of Arrow and each arena of malloc would reserve memory that counts against the limit.
_ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system", "ARROW_IO_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
}  # fmt: skip
_REFUSED, _ANSWERED = 3, 0
Reader = Callable[[Sequence[str]], bytes]
"""A function of a module, by its module and name. Errors: DocumentError, MemoryError."""


class _Refused(msgspec.Struct, frozen=True):
    """A DocumentError."""

    reason: str
    path: str


def call(
    reader: Reader, arguments: Sequence[str], file: IO[bytes] | None = None, *, processor_s: int | None = None
) -> bytes:
    """What the reader answers. `file`: its standard input. `processor_s`: how long it may compute; None for no limit. Errors:
    DocumentError."""
    root = str(Path(__file__).parents[2])
    name = f"{reader.__module__}:{reader.__name__}"
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, root, name, str(processor_s or 0), *arguments],
            stdin=subprocess.DEVNULL if file is None else file,
            stdout=output,
            stderr=log,
            start_new_session=True,
            env=os.environ | _ENVIRONMENT,
        )
        try:
            code = process.wait(WALL_S if processor_s else None)
        except subprocess.TimeoutExpired:
            raise DocumentError(
                f"it was not read within {WALL_S:.0f} s, because this machine is busy; try again"
            ) from None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        output.seek(0)
        answer = output.read()
        log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
        end_of_log = " ".join(log.read().decode("utf-8", "replace").split())
    if code == _ANSWERED:
        return answer
    if code == _REFUSED:
        refused = msgspec.json.decode(answer, type=_Refused)
        raise DocumentError(refused.reason, path=refused.path)
    if code == -signal.SIGXCPU:
        raise DocumentError(f"reading it takes more than {processor_s} s of processor time")
    if code < 0:
        ended = signal.Signals(-code).name
        raise DocumentError(
            f"reading it ended the process that read it ({ended}), probably because it takes too much memory"
        )
    raise DocumentError(f"the process that read it ended with exit code {code}: {end_of_log[-300:]}")


def limit_memory(most_bytes: int) -> None:
    """Limit what this process may allocate from now on, beyond what it had when it started. Further allocations fail."""
    _limits.memory_bytes = most_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_limits.start_bytes + most_bytes, hard))


class _Limits:
    start_bytes = 0
    memory_bytes = 0


_limits = _Limits()


def main() -> None:
    """What the process does: call the reader, and write its answer, or why the file is refused."""
    name, processor_s, *arguments = sys.argv[1:]
    module, _, function = name.partition(":")
    reader: Reader = getattr(importlib.import_module(module), function)
    _limits.start_bytes = _allocated_bytes()
    if int(processor_s):
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        used_s = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
        resource.setrlimit(resource.RLIMIT_CPU, (used_s + int(processor_s), hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.disable()  # Values of a file contain no cycles, and collecting among millions of them takes most of the time.
    try:
        code, answer = _ANSWERED, reader(arguments)
    except Exception as error:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))  # to say why
        code, answer = _REFUSED, msgspec.json.encode(_refusal(error))
    with os.fdopen(os.dup(1), "wb") as output:
        output.write(answer)
    os._exit(code)  # Freeing millions of objects one by one takes seconds.


def _refusal(error: Exception) -> _Refused:
    match error:
        case DocumentError():
            return _Refused(error.reason, error.path)
        case MemoryError():
            return _Refused(f"reading it takes more than {_limits.memory_bytes / 1e6:.0f} MB of memory", "$")
    traceback.print_exception(error)
    return _Refused(f"reading it failed ({type(error).__name__}); please report this together with the file", "$")


def _allocated_bytes() -> int:
    """The private writable memory of this process, as RLIMIT_DATA counts it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    except (OSError, IndexError):  # not Linux, where RLIMIT_DATA does not limit this memory either
        return 0
