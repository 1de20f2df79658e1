"""A process under a guard, which ends all of its processes when the server closes a pipe, or is gone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO

from kernelviz.worker import guard
from kernelviz.worker.guarded_module import Guard, environment, never_began


class GuardedProcess:
    """A process under a guard, and the pipe that keeps both alive. `poll` and `wait` may be asked from any thread."""

    def __init__(self, start: Callable[[int], Guard]) -> None:
        """`start` starts the guard, which gets the reading end of the pipe. Raises what `start` raises."""
        read, self._pipe = os.pipe()
        try:
            self._guard = start(read)
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(read)

    def poll(self) -> int | None:
        """The exit code as subprocess gives it, when no process is left; None before."""
        return self._guard.poll()

    def wait(self, timeout_s: float) -> int:
        """As `poll`, after at most so many seconds. Raises subprocess.TimeoutExpired."""
        return self._guard.wait(timeout_s)

    def never_began(self) -> bool:
        """See guarded_module.never_began."""
        return never_began(self._guard)

    def end(self, wait_s: float = 0.0) -> int | None:
        """End all processes, and wait up to `wait_s` until none is left. Returns the exit code, or None if one is left. Call it
        once."""
        os.close(self._pipe)
        try:
            return self._guard.wait(wait_s)
        except subprocess.TimeoutExpired:
            _reap_later(self._guard)
            return None


def start_command(
    command: Sequence[str],
    *,
    log: IO[bytes],
    inherited: int,
    guard_fds: Iterable[int] = (),
    variables: Mapping[str, str] | None = None,
) -> GuardedProcess:
    """Run a command under a guard. Raises OSError.

    `inherited`: the descriptor that the command gets. `guard_fds`: descriptors that the guard keeps open until all is ended.
    `variables`: of its environment, beside the server's.
    """

    def start(pipe: int) -> Guard:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, str(pipe), str(inherited), *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(pipe, inherited, *guard_fds),
            start_new_session=True,
            env=environment() | dict(variables or {}),
        )

    return GuardedProcess(start)


_ending: list[Guard] = []
"""Guards that still end processes; listed here so that they are reaped."""
_ending_lock = threading.Lock()


def _reap_later(ending: Guard) -> None:
    """Reap this guard when it has ended, and those that have ended meanwhile."""
    with _ending_lock:
        _ending[:] = [one for one in (*_ending, ending) if one.poll() is None]
