"""One unit of work done by one worker, from its message to its end, its deadline or its crash."""

import time
from collections.abc import Callable

from kernelviz.core import CaseStep, CompiledAhead, Event, Failure
from kernelviz.core.reasons import Cancelled, ServerStopped
from kernelviz.worker.attempt import Ending
from kernelviz.worker.limits import Deadlines, Limits
from kernelviz.worker.process import WorkerDied, WorkerProcess
from kernelviz.worker.protocol import Cancel, FromWorker, Work, WorkDone, WorkEvent, WorkFailed

_CANCELLED = Failure(stage="cancelled", reasons=(Cancelled(),))


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
    cancel_until_s: float | None = None
    try:
        process.send(work)
        deadlines = Deadlines(limits, budget_s, time.monotonic())
        while not closing():
            now_s = time.monotonic()
            if cancel_until_s is None and cancelled():
                process.send(Cancel(work_id=work.work_id))
                cancel_until_s = now_s + limits.cancel_s
            left_s = deadlines.left_s(now_s) if cancel_until_s is None else cancel_until_s - now_s
            if left_s <= 0 and cancel_until_s is not None:
                return Ending(failure=_CANCELLED, replace="the previous work did not end after its cancel")
            if left_s <= 0:
                return Ending(
                    failure=Failure(stage="timeout", reasons=(deadlines.passed(now_s),), message=process.log_tail()),
                    replace="the previous worker hung",
                )
            reply = process.receive(left_s)
            if isinstance(reply, WorkEvent) and reply.work_id == work.work_id:
                event = reply.event
                step, case = (event.step, event.case.key) if isinstance(event, CaseStep) else (None, "")
                if not isinstance(event, CompiledAhead):  # it says nothing of the case that the worker is at
                    deadlines.event(step, time.monotonic(), case)
                tell(event)
            ending = _ending(reply, work.work_id, was_cancelled=cancel_until_s is not None)
            if ending is not None:
                return ending
    except WorkerDied:
        return Ending(failure=process.fate(), replace="the previous worker ended")
    return Ending(failure=Failure(stage="cancelled", reasons=(ServerStopped(),)), replace="closing")


def _ending(reply: FromWorker | None, work_id: int, *, was_cancelled: bool) -> Ending | None:
    """How the work ended by this message; None for every other message (no message, an event, an end of earlier work)."""
    match reply:
        case WorkDone() if reply.work_id == work_id and was_cancelled:
            # The session may leave cases without a result; these count as cancelled, not as lost.
            return Ending(failure=_CANCELLED, replace=reply.spoilt)
        case WorkDone() if reply.work_id == work_id:
            return Ending(replace=reply.spoilt)
        case WorkFailed() if reply.work_id == work_id:
            replace = reply.spoilt or (
                "the previous work raised an exception" if reply.failure.stage == "crash" else None
            )
            return Ending(failure=reply.failure, replace=replace)
        case _:
            return None
