"""What was noticed beside a time, in text."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import assert_never

from kernelviz.core import (
    CallTooLong,
    DriverCopy,
    DriverSilent,
    EnergyCounterStill,
    ForeignNote,
    KernelsVary,
    LaterFailure,
    NoEnergyCounter,
    NotCapturable,
    Note,
    NoteFigure,
    OtherKernelsInGraph,
    SlowBlocks,
    StaleTuning,
    TracingCostUnknown,
)
from kernelviz.text.failures import describe_reasons
from kernelviz.text.text import Text, on_one_line

FIGURES: Mapping[NoteFigure, Text] = MappingProxyType(
    {
        "cold": Text("cold"),
        "warm": Text("warm"),
        "call": Text("eager call"),
        "graph": Text("graph of one call"),
        "loop": Text("loop of eager calls"),
        "energy": Text("energy"),
        "secondary": Text("other figures"),
    }
)
"""Which time a note is about."""


def format_note(note: Note) -> Text:
    """The note behind the time that it is about, on one line.

    >>> str(format_note(TracingCostUnknown(figure="warm")))
    'warm: what tracing adds to it is not known'
    """
    return FIGURES[note.figure] + f": {describe_note(note)}"


def describe_note(note: Note) -> Text:
    """What was noticed, on one line.

    >>> str(describe_note(SlowBlocks(slow=2, blocks=30)))
    '2 of 30 blocks ran at a clock more than 1 % under the first'
    """
    return on_one_line(_sentence(note))


def _sentence(note: Note) -> Text:
    match note:
        case DriverSilent():
            return Text("the driver does not answer for this device")
        case DriverCopy():
            return Text("holds a copy by the driver, which is slower inside a graph: launched into the stream")
        case NotCapturable(figure="graph", error=error):
            return Text(f"not capturable as a graph: {error}")
        case NotCapturable(error=error):
            return Text(f"not capturable as a graph ({error}): launched into the stream")
        case OtherKernelsInGraph():
            return Text("a graph would run other kernels than an eager call does: launched into the stream")
        case KernelsVary():
            return Text("its calls did not all launch the same kernels")
        case TracingCostUnknown():
            return Text("what tracing adds to it is not known")
        case SlowBlocks(slow=slow, blocks=blocks):
            return Text(f"{slow} of {blocks} blocks ran at a clock more than 1 % under the first")
        case CallTooLong(call_s=call_s):
            return Text(f"not taken, one call takes {call_s:.2g} s")
        case NoEnergyCounter():
            return Text("this device has no counter of it")
        case EnergyCounterStill(seconds=seconds):
            return Text(f"the board's counter did not move twice in {seconds:.0f} s")
        case StaleTuning(run_id=run_id, another="source"):
            return Text(f"not tuned: what run {run_id} found was for another version of its source")
        case StaleTuning(run_id=run_id):
            return Text(f"not tuned: what run {run_id} found was for another space")
        case LaterFailure(stage=stage, reasons=reasons, message=message):
            return Text(f"{stage}: {describe_reasons(reasons, message)}")
        case ForeignNote(text=text):
            return Text(text)
        case _:
            assert_never(note)
