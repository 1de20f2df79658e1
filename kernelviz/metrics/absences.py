"""Why a figure that a run asked for has no value: typed reasons, from the notes of a result and from what its run was."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kernelviz.core import LIVING, Clock, DeviceKind, Failure, FigureName, Note, Result, Run, Timing
from kernelviz.core import notes as n

FIELDS: Mapping[FigureName, str] = MappingProxyType(
    {
        "cold": "device_cold_s",
        "warm": "device_warm_s",
        "call": "call_eager_s",
        "graph": "call_graph_s",
        "loop": "loop_s",
        "energy": "energy",
        "naive": "naive",
    }
)
"""The field of `Timing` that holds each figure."""


@dataclass(frozen=True, slots=True)
class SustainedLoad:
    """Under sustained load, no call is timed by the host: the device would be idle between the calls."""


@dataclass(frozen=True, slots=True)
class NoGraphs:
    """A processor has no CUDA graphs."""


@dataclass(frozen=True, slots=True)
class NotYet:
    """The run is still being measured."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The run ended before the figure was measured."""


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """The document has neither the figure nor a reason."""


NeverMeasured = SustainedLoad | NoGraphs
AbsenceReason = Note | NeverMeasured | NotYet | Ended | Unrecorded

_REASONS = (
    n.NotCapturable,
    n.CallTooLong,
    n.NoEnergyCounter,
    n.EnergyCounterStill,
    n.NoNaiveTiming,
    n.LaterFailure,
    n.ForeignNote,
)
"""The notes that explain why a figure is missing. Other notes are remarks on figures that were measured."""


@dataclass(frozen=True, slots=True)
class Absence:
    """A figure that was asked for and has no value."""

    figure: FigureName
    reason: AbsenceReason


def never_measured(figure: FigureName, clock: Clock | None, device: DeviceKind) -> NeverMeasured | None:
    """Why a figure is never measured with this clock mode on such a device; None if it can be.

    >>> never_measured("loop", "sustained", "cuda"), never_measured("graph", "burst", "cpu")
    (SustainedLoad(), NoGraphs())
    >>> never_measured("loop", "burst", "cpu")
    """
    if clock == "sustained" and figure in ("call", "graph", "loop"):
        return SustainedLoad()
    return NoGraphs() if figure == "graph" and device == "cpu" else None


def is_measured(timing: Timing, figure: FigureName) -> bool:
    """Whether the timing has this figure.

    >>> from kernelviz.core import Figure
    >>> is_measured(Timing(loop_s=Figure(estimate=1.0)), "loop"), is_measured(Timing(), "energy"), is_measured(Timing(), "naive")
    (True, False, False)
    """
    return bool(getattr(timing, FIELDS[figure]))


def absences(result: Result, run: Run) -> tuple[Absence, ...]:
    """The figures that the method of the run asks for and this case does not have. None for a failed case, whose failure is
    the reason for all of them."""
    if isinstance(result.outcome, Failure):
        return ()
    missing = [name for name in run.method.figures if not is_measured(result.outcome, name)]
    return tuple(Absence(name, _reason(name, result, run)) for name in missing)


def _reason(figure: FigureName, result: Result, run: Run) -> AbsenceReason:
    notes = result.conditions.notes if result.conditions else ()
    for note in notes:
        if isinstance(note, _REASONS) and (note.figure == figure or (note.figure == "secondary" and figure != "cold")):
            return note
    never = never_measured(figure, run.method.clock, run.environment.device.kind)
    if never is not None:
        return never
    return NotYet() if run.status in LIVING else Unrecorded() if run.status == "finished" else Ended()
