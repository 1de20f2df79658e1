"""The judge of a device on the server's side: start it, give it a case, get what it found, end it."""

from __future__ import annotations

import select
import socket
import tempfile
import time
from collections.abc import Callable

import msgspec

from kernelviz.core import Problem
from kernelviz.measure.judge.messages import FROM_JUDGE, FromJudge, JudgeCase, Judged, JudgeReady, pair, receive, send
from kernelviz.worker.guarded_module import end_of, start_guarded
from kernelviz.worker.guarded_process import GuardedProcess
from kernelviz.worker.process import TAIL_BYTES

_POLL_MS = 100
_END_S = 10.0


class JudgeProcess:
    """A judge that is running, with its guard."""

    def __init__(self, device_id: str, exchange_s: float | None, *, copied: bool = False) -> None:
        """Start it. `exchange_s`: what an earlier judge of this device measured. `copied`: see start_guarded. Raises OSError."""
        self._socket, theirs = pair()
        self._log = tempfile.TemporaryFile("ab+", prefix="kernelviz-judge-", buffering=0)  # noqa: SIM115
        self._number = 0
        known = [] if exchange_s is None else [str(exchange_s)]
        with theirs:
            self._guarded = GuardedProcess(
                lambda pipe: start_guarded(
                    "kernelviz.measure.judge",
                    [device_id, "{0}", *known],
                    pipe=pipe,
                    log=self._log,
                    sockets=[theirs.fileno()],
                    copied=copied,
                )
            )

    def alive(self) -> bool:
        return self._guarded.poll() is None

    def never_began(self) -> bool:
        """See guarded_module.never_began."""
        return self._guarded.never_began()

    def ready(self, most_s: float, stopping: Callable[[], bool]) -> JudgeReady | None:
        """Wait until its context is there. None if it ends, if it takes longer than `most_s`, or when `stopping` returns True."""
        message = self._next(most_s, stopping)
        return message if isinstance(message, JudgeReady) else None

    def begin(self, problem: Problem) -> socket.socket:
        """Give it a case; return the worker's end of their connection, which the caller closes. Raises OSError."""
        self._number += 1
        judges, workers = pair()
        with judges:
            send(self._socket, JudgeCase(number=self._number, problem=problem), (judges.fileno(),))
        return workers

    def finding(self, most_s: float, stopping: Callable[[], bool]) -> Judged | None:
        """What it found about the last case. None if it ends, if it takes longer than `most_s`, or when `stopping` returns
        True."""
        until_s = time.monotonic() + most_s
        while True:
            message = self._next(until_s - time.monotonic(), stopping)
            if message is None or (isinstance(message, Judged) and message.number == self._number):
                return message

    def log_tail(self) -> str:
        """The last lines that it wrote to stdout and stderr."""
        return end_of(self._log.fileno(), TAIL_BYTES)

    def end(self) -> None:
        """Kill it and wait until it is gone, and its memory on the device is free."""
        self._socket.close()
        self._guarded.end(_END_S)
        self._log.close()

    def _next(self, most_s: float, stopping: Callable[[], bool]) -> FromJudge | None:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        until_s = time.monotonic() + most_s
        while not stopping() and time.monotonic() < until_s:
            if poll.poll(_POLL_MS):
                try:
                    return receive(self._socket, FROM_JUDGE)[0]
                except (EOFError, OSError, msgspec.MsgspecError):
                    return None
        return None
