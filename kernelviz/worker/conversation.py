"""One task with one worker, from its request to its end, its deadline or its crash."""

from __future__ import annotations

import time
from collections.abc import Callable

from kernelviz.core.events import CaseStep, Event
from kernelviz.core.reasons import Cancelled, ServerStopped
from kernelviz.worker.attempt import Ending, ending_of
from kernelviz.worker.limits import Deadlines, Limits
from kernelviz.worker.process import WorkerDied, WorkerProcess
from kernelviz.worker.protocol import Cancel, Reply, Task, TaskDone, TaskFailed, Told


def converse(
    process: WorkerProcess,
    request: Task,
    limits: Limits,
    budget_s: float,
    tell: Callable[[Event], None],
    cancelled: Callable[[], bool],
    closing: Callable[[], bool],
) -> Ending:
    """Hand the task over, pass on what is told of it, and say how it ended.

    A cancel is passed on to the worker, which ends after its current block; `closing` ends it here and now.
    """
    try:
        process.send(request)
        return _listen(process, request.task, limits, budget_s, tell, cancelled, closing)
    except WorkerDied:
        return ending_of(process.fate(), replace="the last one died")


def _listen(
    process: WorkerProcess,
    task: int,
    limits: Limits,
    budget_s: float,
    tell: Callable[[Event], None],
    cancelled: Callable[[], bool],
    closing: Callable[[], bool],
) -> Ending:
    deadlines = Deadlines(limits, budget_s, time.monotonic())
    cancel_until_s: float | None = None
    while True:
        now_s = time.monotonic()
        if closing():
            return Ending(stage="cancelled", reasons=(ServerStopped(),), replace="closing")
        if cancel_until_s is None and cancelled():
            process.send(Cancel(task=task))
            cancel_until_s = now_s + limits.cancel_s
        left_s = deadlines.left_s(now_s) if cancel_until_s is None else cancel_until_s - now_s
        if left_s <= 0 and cancel_until_s is not None:
            return Ending(stage="cancelled", reasons=(Cancelled(),), replace="a cancelled task did not end")
        if left_s <= 0:
            passed, tail = deadlines.passed(now_s), process.log_tail()
            return Ending(stage="timeout", reasons=(passed,), message=tail, replace="the last one hung")
        reply = process.receive(left_s)
        if isinstance(reply, Told) and reply.task == task:
            if isinstance(reply.event, CaseStep):
                deadlines.event(reply.event.step, time.monotonic(), reply.event.case.key)
            else:
                deadlines.event(None, time.monotonic())
            tell(reply.event)
        ending = _ending(reply, task, was_cancelled=cancel_until_s is not None)
        if ending is not None:
            return ending


def _ending(reply: Reply | None, task: int, *, was_cancelled: bool) -> Ending | None:
    """What the reply says of the task's end; None for all others (woken, told, something of an earlier task)."""
    match reply:
        case TaskDone() if reply.task == task and was_cancelled:
            # The session may leave cases untold; they are cancelled, not lost.
            return Ending(stage="cancelled", reasons=(Cancelled(),), replace=reply.spoilt)
        case TaskDone() if reply.task == task:
            return Ending(replace=reply.spoilt)
        case TaskFailed() if reply.task == task:
            replace = reply.spoilt or ("the last task raised" if reply.stage == "crash" else None)
            return Ending(stage=reply.stage, reasons=reply.reasons, message=reply.message, replace=replace)
        case _:
            return None
