"""Notes in text: what was observed while measuring."""

from collections.abc import Mapping

from kernelviz.core import Note, NoteFigure
from kernelviz.core import notes as n
from kernelviz.text.failures import describe_failure
from kernelviz.text.text import Template, Text, fill, on_one_line

FIGURES: Mapping[NoteFigure, Text] = {
    "cold": Text("cold"),
    "warm": Text("warm"),
    "call": Text("eager call"),
    "graph": Text("graph of one call"),
    "loop": Text("loop of eager calls"),
    "energy": Text("energy"),
    "secondary": Text("other figures"),
}
"""Which time a note is about."""


def _not_capturable(note: n.NotCapturable) -> str:
    if note.figure == "graph":
        return f"not capturable as a graph: {note.error}"
    return f"not capturable as a graph ({note.error}): launched into the stream"


_OTHER = {"source": "another version of its source", "space": "another space"}
NOTES: Mapping[type, Template] = {
    n.DriverSilent: "the driver does not answer for this device",
    n.DriverCopy: "holds a copy by the driver, which is slower inside a graph: launched into the stream",
    n.NotCapturable: _not_capturable,
    n.OtherKernelsInGraph: "a graph would run other kernels than an eager call does: launched into the stream",
    n.KernelsVary: "its calls did not all launch the same kernels",
    n.TracingCostUnknown: "what tracing adds to it is not known",
    n.SlowBlocks: "{0.slow} of {0.blocks} blocks ran at a clock more than 1 % under the first",
    n.CallTooLong: "not taken, one call takes {0.call_s:.2g} s",
    n.NoEnergyCounter: "this device has no counter of it",
    n.EnergyCounterStill: "the board's counter did not move twice in {0.seconds:.0f} s",
    n.StaleTuning: lambda note: f"not tuned: what run {note.run_id} found was for {_OTHER[note.another]}",
    n.LaterFailure: lambda note: f"{note.stage}: {describe_failure(note)}",
    n.ForeignNote: "{0.text}",
}


def format_note(note: Note) -> Text:
    """The note on one line, after the name of the time that it is about.

    >>> str(format_note(n.TracingCostUnknown(figure="warm")))
    'warm: what tracing adds to it is not known'
    """
    return FIGURES[note.figure] + f": {describe_note(note)}"


def describe_note(note: Note) -> Text:
    """What was observed, on one line.

    >>> str(describe_note(n.SlowBlocks(slow=2, blocks=30)))
    '2 of 30 blocks ran at a clock more than 1 % under the first'
    """
    return on_one_line(fill(NOTES, note))
