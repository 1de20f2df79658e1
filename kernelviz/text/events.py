"""Events of a run in text, the same on pages and in a terminal."""

from kernelviz.core import CompiledAhead, RunQueued, Status, units
from kernelviz.text.text import Text, join


def describe_queue_position(event: RunQueued) -> Text:
    """The position of a run in the queue of its device, or the one that a new run would get.

    >>> str(describe_queue_position(RunQueued(ahead=1))), str(describe_queue_position(RunQueued(ahead=0)))
    ('1 job ahead in the queue; users alternate', 'next in the queue')
    """
    if event.ahead == 0:
        return Text("next in the queue")
    return Text(f"{units.counted(event.ahead, 'job')} ahead in the queue; users alternate")


def describe_compiled(event: CompiledAhead) -> Text:
    """How many of the cases that a run measures next are compiled.

    >>> print(describe_compiled(CompiledAhead(compiled=12, total=48, processes=14)))
    compiled 12 of 48 cases ahead, in 14 processes
    """
    where = f"{event.processes} process{'' if event.processes == 1 else 'es'}"
    return Text(f"compiled {event.compiled} of {units.counted(event.total, 'case')} ahead, in {where}")


def describe_under_way(
    name: str, op: str | None, done: int, total: int, *, own: bool, remaining_s: float | None = None
) -> Text:
    """What a device measures now, for whom, and how long it still takes. `name`: of a calibration, a selftest or an inspection,
    which have no `op`.

    >>> print(describe_under_way("1f", "softmax", 3, 22, own=False, remaining_s=12.3))
    measuring now: softmax for another user, 3 of 22 cases done, about 12 s left
    >>> print(describe_under_way("selftest-8a", None, 1, 0, own=True))
    measuring now: selftest for you
    """
    count = f", {done} of {units.counted(total, 'case')} done" if total else ""
    what = f"{op or name.partition('-')[0]} for {'you' if own else 'another user'}"
    return join(", ", (f"measuring now: {what}{count}", describe_remaining(remaining_s)))


def describe_waiting(status: Status, ahead: int, remaining_s: float | None) -> Text:
    """What a run that is not over waits for: its position in the queue, or the rest of its measuring. Empty if it is unknown.

    >>> str(describe_waiting("queued", 2, None)), str(describe_waiting("running", 0, 40))
    ('2 jobs ahead in the queue; users alternate', 'about 40 s left')
    """
    return describe_queue_position(RunQueued(ahead=ahead)) if status == "queued" else describe_remaining(remaining_s)


def describe_remaining(remaining_s: float | None) -> Text:
    """How long a run still takes, as far as it is known.

    >>> str(describe_remaining(12.3)), str(describe_remaining(200)), str(describe_remaining(None))
    ('about 12 s left', 'about 3 min left', '')
    """
    if remaining_s is None:
        return Text("")
    return Text(
        f"about {max(1, remaining_s):.0f} s left" if remaining_s < 90 else f"about {remaining_s / 60:.0f} min left"
    )
