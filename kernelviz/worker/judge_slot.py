"""The judge of a device: started when an untrusted variant is measured, kept for the next one, ended for all other work."""

from __future__ import annotations

import socket
from collections.abc import Callable

from kernelviz.core import Problem
from kernelviz.measure.judge.messages import Judged
from kernelviz.worker.judge_process import JudgeProcess
from kernelviz.worker.limits import Limits

ENDED = "the judge ended"


class JudgeSlot:
    """The one judge of a device. For the supervisor's thread."""

    def __init__(self, device_id: str, limits: Limits, *, copied: bool = False) -> None:
        """`copied`: see start_guarded."""
        self._device_id, self._limits, self._copied = device_id, limits, copied
        self._judge: JudgeProcess | None = None
        self.exchange_s: float | None = None
        """What a call costs by the clock of this device's judges beyond the call itself, by the first of them; None before it has
        started, 0 where it could not measure that."""
        self.trouble = ""
        """Why there is no judge, or the end of the log of the last one that ended by itself."""

    def begin(self, problem: Problem, stopping: Callable[[], bool]) -> socket.socket | None:
        """Give a case to a judge whose context is on the device; return the worker's end of their connection, which the caller
        closes. None where there is no judge (`trouble` says why), and when `stopping` returns True."""
        if self._judge is not None and not self._judge.alive():
            self.end()
        try:
            judge = self._judge or self._started(stopping)
            return None if judge is None else judge.begin(problem)
        except OSError as error:
            self._give_up()
            self.trouble = self.trouble or str(error)
            return None

    def _started(self, stopping: Callable[[], bool]) -> JudgeProcess | None:
        """A new judge whose context is on the device; None where there is none. Raises OSError."""
        self._judge = judge = JudgeProcess(self._device_id, self.exchange_s, copied=self._copied)
        ready = judge.ready(self._limits.start_s, stopping)
        if ready is None and not stopping() and judge.never_began():
            self.end()
            self._judge = judge = JudgeProcess(self._device_id, self.exchange_s, copied=self._copied)
            ready = judge.ready(self._limits.start_s, stopping)
        if ready is None:
            self._give_up()
            return None
        # Where it is not known now, no later judge measures it either: untrusted code has run by then.
        self.exchange_s = ready.exchange_s or 0.0
        return judge

    def finding(self, stopping: Callable[[], bool]) -> Judged:
        """What the judge found about the case; with an error where it ended, or did not end in time."""
        judged = None if self._judge is None else self._judge.finding(self._limits.case_s, stopping)
        if judged is None:
            self._give_up()
            return Judged(number=0, error=ENDED)
        return judged

    def end(self) -> None:
        """End the judge; the memory of its last case is freed."""
        judge, self._judge = self._judge, None
        if judge is not None:
            judge.end()

    def _give_up(self) -> None:
        if self._judge is not None:
            self.trouble = self._judge.log_tail()
        self.end()
