"""The server's side of a workload: the process of its runner under a guard, and the locks of its one or two devices."""

import os
import select
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec
import psutil

from kernelviz.core import Device, Failure
from kernelviz.core.reasons import Silent, TookTooLong, WorkerGarbled
from kernelviz.measure.workloads.messages import (
    FROM_RUNNER,
    CurrentVariant,
    FromRunner,
    Lines,
    RunnerEnded,
    RunnerRequest,
)
from kernelviz.measure.workloads.runner_process import CURRENT, REQUEST
from kernelviz.worker.device_lock import DeviceLock, Holder
from kernelviz.worker.guarded_module import end_of
from kernelviz.worker.guarded_process import start_command
from kernelviz.worker.process import TAIL_BYTES, ended_by

_POLL_MS = 50
_KILL_S = 30.0
"""So long the guard may take to end all processes (a driver needs seconds to release a dead one); then the locks are free."""
_FOLDER = "kernelviz-workload-"
_TOTAL = 10
"""A group of cases may take so many times the longest silence altogether, plus its budget."""


@dataclass(slots=True)
class GroupEnd:
    """How the process of a group ended. `stopped`: on request. `failure`: why there are cases without a result, and `variant`:
    the one that was being done, empty if none in particular. `answered`: whether the process sent its end itself."""

    stopped: bool = False
    failure: Failure | None = None
    variant: str = ""
    answered: bool = False


@contextmanager
def device_locks(
    devices: Sequence[Device],
    waiting: Callable[[Device, Holder | None], None],
    give_up: Callable[[], bool],
    directory: Path | None = None,
) -> Iterator[tuple[int, ...] | None]:
    """Hold the locks of these devices, taken in the order of their UUIDs, so that no two jobs wait for each other.

    Gives the descriptors that keep the locks, for the guard; None if `give_up` returned True. Errors: DeviceError.
    """
    with ExitStack() as stack:
        descriptors = []
        for device in sorted(devices, key=lambda d: d.uuid):
            lock = DeviceLock(device.uuid, directory)
            stack.callback(lock.close)
            if not lock.acquire(lambda holder, d=device: waiting(d, holder), give_up):  # type: ignore[misc]
                yield None
                return
            stack.callback(lock.release)
            descriptors.append(lock.lock_fd())
        yield tuple(descriptors)


def run_group(
    request: RunnerRequest,
    *,
    most_s: float,
    tell: Callable[[FromRunner], None],
    stop: Callable[[], bool],
    guard_fds: Iterable[int] = (),
) -> GroupEnd:
    """Measure cases in a process of their own until it has ended, `stop` returns True, it sends nothing for `most_s`, or it takes
    ten times as long. `tell` receives progress and measurements. `guard_fds`: descriptors that stay open until all its
    processes are gone. Errors: OSError if it cannot be started."""
    remove_leftovers()
    folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-"))
    try:
        (folder / REQUEST).write_bytes(msgspec.json.encode(request))
        with tempfile.TemporaryFile("ab+", prefix="kernelviz-workload-log-", buffering=0) as log:
            return _run(request, folder, log, most_s, tell, stop, tuple(guard_fds))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(
    request: RunnerRequest,
    folder: Path,
    log: IO[bytes],
    most_s: float,
    tell: Callable[[FromRunner], None],
    stop: Callable[[], bool],
    guard_fds: tuple[int, ...],
) -> GroupEnd:
    messages_read, messages_write = os.pipe()
    module = "kernelviz.measure.workloads.runner_process"
    try:
        process = start_command(
            [sys.executable, "-P", "-m", module, str(messages_write), str(folder)],
            log=log,
            inherited=messages_write,
            guard_fds=guard_fds,
            variables={"TMPDIR": str(folder)},
        )
    except BaseException:
        os.close(messages_read)
        raise
    finally:
        os.close(messages_write)
    end = GroupEnd()
    try:
        longest_s = _TOTAL * most_s + request.method.budget_s * len(request.cases)
        _listen(messages_read, end, most_s, longest_s, tell, stop)
    finally:
        code = process.end(_KILL_S)
        os.close(messages_read)
    if end.stopped or (end.answered and end.failure is None):
        return end
    tail = end_of(log.fileno(), TAIL_BYTES)
    if end.failure is None:
        end.failure = Failure(stage="crash", reasons=(ended_by(code or 0),), message=tail)
    elif not end.answered:
        end.failure = msgspec.structs.replace(end.failure, message=tail)
    end.variant = end.variant or CurrentVariant.read(str(folder / CURRENT))
    return end


def _listen(
    pipe: int,
    end: GroupEnd,
    most_s: float,
    longest_s: float,
    tell: Callable[[FromRunner], None],
    stop: Callable[[], bool],
) -> None:
    """Pass on messages until the process is done, has ended, is stopped or is too late."""
    lines, watched = Lines(), select.poll()
    watched.register(pipe, select.POLLIN)
    began_s = heard_s = time.monotonic()
    while not end.answered:
        now_s = time.monotonic()
        if stop():
            end.stopped = True
            return
        if now_s - heard_s > most_s:
            end.failure = Failure(stage="timeout", reasons=(Silent(seconds=most_s),))
            return
        if now_s - began_s > longest_s:
            end.failure = Failure(stage="timeout", reasons=(TookTooLong(seconds=longest_s),))
            return
        if not watched.poll(_POLL_MS):
            continue
        data = os.read(pipe, 1 << 18)
        if not data:
            return
        heard_s = time.monotonic()
        try:
            for line in lines.feed(data):
                _heard(FROM_RUNNER.decode(line), end, tell)
        except (msgspec.MsgspecError, ValueError) as error:
            end.failure = Failure(stage="crash", reasons=(WorkerGarbled(error=str(error)),))
            return


def _heard(message: FromRunner, end: GroupEnd, tell: Callable[[FromRunner], None]) -> None:
    if isinstance(message, RunnerEnded):
        end.answered, end.failure, end.variant = True, message.failure, message.variant
    else:
        tell(message)


def remove_leftovers() -> None:
    """Remove the folders of servers that were killed while they measured a workload."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        pid = folder.name.removeprefix(_FOLDER).partition("-")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)
