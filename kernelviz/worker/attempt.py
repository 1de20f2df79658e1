"""One problem on one worker: follow it to its end, and know whose fault it was when the worker dies or hangs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import assert_never

from kernelviz.core.events import CaseDone, CaseStep, Event, RoofDone, Step
from kernelviz.core.result import Failure
from kernelviz.worker.process import Worker, WorkerGone
from kernelviz.worker.protocol import Cancel, Described, Hello, NoSession, Task, TaskDone, TaskFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Seconds of silence after which a worker is held for hung, by what it does, and the most a case may take."""

    starting_s: float = 180.0
    binding_s: float = 120.0
    compiling_s: float = 600.0
    checking_s: float = 300.0
    measuring_s: float = 120.0
    cancelling_s: float = 10.0
    case_s: float = 1800.0

    def of(self, step: Step) -> float:
        match step:
            case "binding":
                return self.binding_s
            case "compiling":
                return self.compiling_s
            case "checking":
                return self.checking_s
            case "measuring":
                return self.measuring_s


@dataclass(slots=True)
class Attempt:
    """What came of sending one task to one worker."""

    done: set[str] = field(default_factory=set)
    failure: Failure | None = None
    """Set when the worker died, hung or broke: the failure of the case that is to blame."""
    blamed: CaseStep | None = None
    spoilt: str | None = None


def follow(
    worker: Worker, task: Task, deadlines: Deadlines, tell: Callable[[Event], None], cancelled: Callable[[], bool], wake: int
) -> Attempt:
    """Send the task and pass its events on until it ends, or until the worker is gone or silent for too long."""
    found = Attempt()
    try:
        worker.send(task)
        _follow(worker, deadlines, tell, cancelled, wake, found)
    except WorkerGone as gone:
        found.failure = Failure(stage="crash", message=f"the worker {gone.how}")
    return found


def _follow(
    worker: Worker,
    deadlines: Deadlines,
    tell: Callable[[Event], None],
    cancelled: Callable[[], bool],
    wake: int,
    found: Attempt,
) -> None:
    patience_s = deadlines.binding_s
    silent_since = time.monotonic()
    begun: dict[str, float] = {}
    asked_to_end: float | None = None
    while True:
        now = time.monotonic()
        if asked_to_end is None and cancelled():
            asked_to_end = now
            worker.send(Cancel())
        left = silent_since + patience_s - now
        if found.blamed is not None:
            left = min(left, begun[found.blamed.case.key] + deadlines.case_s - now)
        if asked_to_end is not None:
            # A step that cannot be interrupted (a compiler) may go on for a while, but not as long as if it were wanted.
            left = min(left, asked_to_end + deadlines.cancelling_s - now)
        if left <= 0:
            step = found.blamed.step if found.blamed else "starting the problem"
            if asked_to_end is not None:
                found.failure = Failure(stage="cancelled", message=f"cancelled while {step}; the worker was ended")
            else:
                found.failure = Failure(stage="timeout", message=f"no sign of life for {now - silent_since:.0f} s while {step}")
            return
        message = worker.receive(left, wake)
        if message is None:
            continue
        silent_since = time.monotonic()
        match message:
            case CaseStep():
                found.blamed = message
                begun.setdefault(message.case.key, silent_since)
                patience_s = deadlines.of(message.step)
                tell(message)
            case CaseDone():
                found.done.add(message.result.variant)
                if found.blamed and found.blamed.case.variant == message.result.variant:
                    found.blamed = None
                    patience_s = deadlines.binding_s
                tell(message)
            case TaskDone(spoilt=spoilt):
                found.spoilt = spoilt
                return
            case TaskFailed(message=text, spoilt=spoilt):
                found.spoilt = spoilt
                found.failure = Failure(stage="crash", message=text)
                return
            case RoofDone():
                tell(message)
            case Described():
                pass
            case Hello() | NoSession():
                raise WorkerGone("sent a greeting in the middle of a task")
            case _:
                assert_never(message)
