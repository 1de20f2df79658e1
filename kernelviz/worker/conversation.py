"""One unit of work done by one worker, from its message to its end, its deadline or its crash."""

import time
from collections.abc import Callable

from kernelviz.core import CaseStep, Event
from kernelviz.core.reasons import Cancelled, ServerStopped
from kernelviz.worker.attempt import Ending, ending_of
from kernelviz.worker.limits import Deadlines, Limits
from kernelviz.worker.process import WorkerDied, WorkerProcess
from kernelviz.worker.protocol import Cancel, FromWorker, Work, WorkDone, WorkEvent, WorkFailed


def converse(
    process: WorkerProcess,
    work: Work,
    limits: Limits,
    budget_s: float,
    tell: Callable[[Event], None],
    cancelled: Callable[[], bool],
    closing: Callable[[], bool],
) -> Ending:
    """Send the work to the worker, pass on its events, and return how it ended.

    A cancel is passed on to the worker, which stops after its current block; `closing` ends the worker immediately.
    """
    try:
        process.send(work)
        return _listen(process, work.work_id, limits, budget_s, tell, cancelled, closing)
    except WorkerDied:
        return ending_of(process.fate(), replace="the last one died")


def _listen(
    process: WorkerProcess,
    work_id: int,
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
            process.send(Cancel(work_id=work_id))
            cancel_until_s = now_s + limits.cancel_s
        left_s = deadlines.left_s(now_s) if cancel_until_s is None else cancel_until_s - now_s
        if left_s <= 0 and cancel_until_s is not None:
            return Ending(stage="cancelled", reasons=(Cancelled(),), replace="cancelled work did not end")
        if left_s <= 0:
            passed, tail = deadlines.passed(now_s), process.log_tail()
            return Ending(stage="timeout", reasons=(passed,), message=tail, replace="the last one hung")
        reply = process.receive(left_s)
        if isinstance(reply, WorkEvent) and reply.work_id == work_id:
            if isinstance(reply.event, CaseStep):
                deadlines.event(reply.event.step, time.monotonic(), reply.event.case.key)
            else:
                deadlines.event(None, time.monotonic())
            tell(reply.event)
        ending = _ending(reply, work_id, was_cancelled=cancel_until_s is not None)
        if ending is not None:
            return ending


def _ending(reply: FromWorker | None, work_id: int, *, was_cancelled: bool) -> Ending | None:
    """How the work ended by this message; None for every other message (no message, an event, an end of earlier work)."""
    match reply:
        case WorkDone() if reply.work_id == work_id and was_cancelled:
            # The session may leave cases without a result; these count as cancelled, not as lost.
            return Ending(stage="cancelled", reasons=(Cancelled(),), replace=reply.spoilt)
        case WorkDone() if reply.work_id == work_id:
            return Ending(replace=reply.spoilt)
        case WorkFailed() if reply.work_id == work_id:
            replace = reply.spoilt or ("the last work raised an exception" if reply.stage == "crash" else None)
            return Ending(stage=reply.stage, reasons=reply.reasons, message=reply.message, replace=replace)
        case _:
            return None
