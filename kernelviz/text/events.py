"""Events of a run in text, the same on pages and in a terminal."""

from kernelviz.core import RunQueued
from kernelviz.text.text import Text


def describe_queue_position(event: RunQueued) -> Text:
    """The position of the run in the queue of its device.

    >>> str(describe_queue_position(RunQueued(ahead=1))), str(describe_queue_position(RunQueued(ahead=0)))
    ('position 2 in the queue: 1 problem of other runs first', 'position 1 in the queue: next')
    """
    problems = "1 problem" if event.ahead == 1 else f"{event.ahead} problems"
    return Text(
        f"position {event.ahead + 1} in the queue: " + (f"{problems} of other runs first" if event.ahead else "next")
    )
