"""What was noticed beside a time: tagged values with their numbers. `kernelviz.text.notes` turns them into text."""

from typing import Literal

from kernelviz.core.problem import FigureName, Struct
from kernelviz.core.reasons import Reason, Stage

NoteFigure = FigureName | Literal["secondary"]
"""Which time a note is about. ``secondary``: all of those beside the cold one."""


class _Note(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Base of all notes. In a document, `kind` says which one it is."""

    figure: NoteFigure = "cold"


class DriverSilent(_Note, frozen=True, kw_only=True, tag="driver_silent"):
    """The driver does not answer for this device."""


class DriverCopy(_Note, frozen=True, kw_only=True, tag="driver_copy"):
    """The call holds a copy by the driver, which is slower inside a graph: it was launched into the stream."""


class NotCapturable(_Note, frozen=True, kw_only=True, tag="not_capturable"):
    """The call cannot be captured as a graph: it was launched into the stream, or (figure ``graph``) has no such time.
    `error`: what the capture raised."""

    error: str


class OtherKernelsInGraph(_Note, frozen=True, kw_only=True, tag="other_kernels_in_graph"):
    """A graph would run other kernels than an eager call does: it was launched into the stream."""


class KernelsVary(_Note, frozen=True, kw_only=True, tag="kernels_vary"):
    """Its calls did not all launch the same kernels."""


class TracingCostUnknown(_Note, frozen=True, kw_only=True, tag="tracing_cost_unknown"):
    """What tracing adds to it is not known."""


class SlowBlocks(_Note, frozen=True, kw_only=True, tag="slow_blocks"):
    """So many of its blocks ran at a clock more than 1 % under the first."""

    slow: int
    blocks: int


class CallTooLong(_Note, frozen=True, kw_only=True, tag="call_too_long"):
    """These times were not taken, since one call takes so long."""

    call_s: float


class NoEnergyCounter(_Note, frozen=True, kw_only=True, tag="no_energy_counter"):
    """This device does not count its energy."""


class EnergyCounterStill(_Note, frozen=True, kw_only=True, tag="energy_counter_still"):
    """The board's energy counter did not move twice in so many seconds."""

    seconds: float


class StaleTuning(_Note, frozen=True, kw_only=True, tag="stale_tuning"):
    """What tuning found is not used: it was for another version of the variant's source, or for another space."""

    run_id: str
    another: Literal["source", "space"]


class LaterFailure(_Note, frozen=True, kw_only=True, tag="later_failure"):
    """A later measurement of the same case failed; the times that were taken before stand."""

    stage: Stage
    reasons: tuple[Reason, ...] = ()
    message: str = ""


class ForeignNote(_Note, frozen=True, kw_only=True, tag="text"):
    """Text that this version has no kind for: shown as it is, never interpreted."""

    text: str


Note = (
    DriverSilent
    | DriverCopy
    | NotCapturable
    | OtherKernelsInGraph
    | KernelsVary
    | TracingCostUnknown
    | SlowBlocks
    | CallTooLong
    | NoEnergyCounter
    | EnergyCounterStill
    | StaleTuning
    | LaterFailure
    | ForeignNote
)
