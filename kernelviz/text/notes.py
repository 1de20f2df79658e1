"""Notes in text: what was observed while measuring."""

from collections.abc import Mapping

from kernelviz.core import Note, NoteFigure, units
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
    "naive": Text("naive protocol"),
    "secondary": Text("other figures"),
}
"""Which time a note is about."""


def _not_capturable(note: n.NotCapturable) -> str:
    if note.figure == "graph":
        return f"not capturable as a graph: {note.error}"
    return f"not capturable as a graph ({note.error}): launched into the stream"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def describe_no_naive_timing(note: n.NoNaiveTiming) -> str:
    """Why the process of the naive protocol gave no time."""
    match note.fault:
        case "raised":
            return f"the call failed in a new process: {note.message}"
        case "time_limit":
            return f"its process did not end within {note.seconds or 0:.0f} s"
        case "ended":
            code = "" if note.exit_code is None else f" with code {note.exit_code}"
            return f"its process ended{code} without an answer{f': {note.message}' if note.message else ''}"


_OTHER = {"source": "another version of its source", "space": "another space"}
NOTES: Mapping[type, Template] = {
    n.DriverSilent: "the driver does not answer for this device",
    n.DriverCopy: "holds a copy by the driver, which is slower inside a graph: launched into the stream",
    n.NotCapturable: _not_capturable,
    n.OtherKernelsInGraph: "a graph would run other kernels than an eager call: launched into the stream",
    n.KernelsVary: "its calls did not all launch the same kernels",
    n.TracingCostUnknown: "the tracing overhead is unknown",
    n.TracingShortens: lambda note: (
        f"tracing makes this call {units.seconds(note.by_s, 3)} shorter, so its time is that of untraced calls, by CUDA events"
    ),
    n.SlowBlocks: "SM clock dropped more than 1 % in {0.slow} of {0.blocks} blocks",
    n.MeasuredAgain: lambda note: f"not stable at first: measured again {_times(note.attempts)}",
    n.BaselineMoved: lambda note: (
        f"the machine changed: the baseline took {units.seconds(note.baseline_s, 3)} during this measurement, "
        f"and {units.seconds(note.usual_s, 3)} before"
    ),
    n.CallTooLong: "not measured, because one call takes {0.call_s:.2g} s",
    n.NoEnergyCounter: "this device has no energy counter",
    n.EnergyCounterStill: "the energy counter did not change twice in {0.seconds:.0f} s",
    n.NoNaiveTiming: describe_no_naive_timing,
    n.StaleTuning: lambda note: f"not tuned: what run {note.run_id} found was for {_OTHER[note.another]}",
    n.StoppedEarly: lambda note: (
        f"stopped early: the time of one block, without an interval, because its fastest call took {note.ratio:.3g} times as "
        f"long as the best beside it (more than {note.factor:g})"
    ),
    n.LaterFailure: lambda note: f"{note.stage}: {describe_failure(note)}",
    n.ClockConfirmed: lambda note: (
        f"confirmed by the judge: {units.seconds(note.at_most_s)} at most, shortest of {note.trials} calls by its own clock"
    ),
    n.ClockUnverified: lambda note: (
        f"unverified clock: the time was taken in the variant's own process; by the judge's clock, which also counts the launch, "
        f"it is at most {units.seconds(note.at_most_s)} (the shortest of {note.trials} calls)"
    ),
    n.ForeignNote: "{0.text}",
}


def format_note(note: Note) -> Text:
    """The note on one line, after the name of the time that it is about.

    >>> str(format_note(n.TracingCostUnknown(figure="warm")))
    'warm: the tracing overhead is unknown'
    """
    return FIGURES[note.figure] + f": {describe_note(note)}"


def describe_note(note: Note) -> Text:
    """What was observed, on one line.

    >>> str(describe_note(n.SlowBlocks(slow=2, blocks=30)))
    'SM clock dropped more than 1 % in 2 of 30 blocks'
    """
    return on_one_line(fill(NOTES, note))
