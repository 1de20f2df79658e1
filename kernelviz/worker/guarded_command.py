"""Run a command of another program under a guard, which ends all its descendants when it is stopped or the server dies."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from kernelviz.worker.guarded_process import start_command

_POLL_S = 0.05
_KILL_S = 10.0
MOST_PRINTED_BYTES = 2**20
"""Of what the command prints, the last so many bytes are kept."""


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended: by itself with this exit code, or stopped, or because its time was over; and what it printed."""

    how: Literal["itself", "stopped", "too_long"]
    exit_code: int
    printed: str


def run_guarded(
    command: Sequence[str], *, most_s: float, stop: Callable[[], bool], guard_fds: Iterable[int] = ()
) -> CommandEnd:
    """Run the command until it ends, `stop` returns True or `most_s` have passed. `guard_fds`: descriptors that stay open until
    all its processes are gone, such as the device's lock. Errors: OSError if it cannot be started."""
    with tempfile.TemporaryFile("ab+", prefix="kernelviz-command-", buffering=0) as log:
        inherited = os.dup(log.fileno())
        try:
            process = start_command(command, log=log, inherited=inherited, guard_fds=guard_fds)
        finally:
            os.close(inherited)
        how: Literal["itself", "stopped", "too_long"] = "itself"
        until_s = time.monotonic() + most_s
        try:
            while process.poll() is None and how == "itself":
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_S)
                if stop():
                    how = "stopped"
                elif time.monotonic() > until_s:
                    how = "too_long"
        finally:
            code = process.end(_KILL_S)
        size = os.fstat(log.fileno()).st_size
        printed = os.pread(log.fileno(), MOST_PRINTED_BYTES, max(0, size - MOST_PRINTED_BYTES))
        if how != "itself" and code == 0:
            how = "itself"  # it had ended before it was stopped
        return CommandEnd(how, code or 0, printed.decode(errors="replace"))
