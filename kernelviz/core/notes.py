"""Notes on the times of a result: tagged values with their numbers. `kernelviz.text.notes` turns them into text."""

from typing import Literal

from kernelviz.core.problem import FigureName, Struct
from kernelviz.core.reasons import Reason, Stage

NoteFigure = FigureName | Literal["secondary"]
"""The time that a note is about. ``secondary`` means every time except the cold one."""


class _Note(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """The base of all notes. In a document, `kind` says which note it is."""

    figure: NoteFigure = "cold"


class DriverSilent(_Note, frozen=True, kw_only=True, tag="driver_silent"):
    """The driver does not answer for this device."""


class DriverCopy(_Note, frozen=True, kw_only=True, tag="driver_copy"):
    """The call contains a copy by the driver. Such a copy is slower inside a graph, so the call was launched into the stream."""


class NotCapturable(_Note, frozen=True, kw_only=True, tag="not_capturable"):
    """The call cannot be captured as a graph.

    It was launched into the stream instead, or has no graph time (figure ``graph``). `error` is the text of the capture's error.
    """

    error: str


class OtherKernelsInGraph(_Note, frozen=True, kw_only=True, tag="other_kernels_in_graph"):
    """A graph would run other kernels than an eager call does, so the call was launched into the stream."""


class KernelsVary(_Note, frozen=True, kw_only=True, tag="kernels_vary"):
    """The calls of this time did not all launch the same kernels."""


class TracingCostUnknown(_Note, frozen=True, kw_only=True, tag="tracing_cost_unknown"):
    """It is not known how much tracing adds to this time."""


class TracingShortens(_Note, frozen=True, kw_only=True, tag="tracing_shortens"):
    """Tracing makes this call `by_s` seconds shorter, so the time is that of the untraced call, by events."""

    by_s: float


class SlowBlocks(_Note, frozen=True, kw_only=True, tag="slow_blocks"):
    """`slow` of the `blocks` of this time ran at a clock more than 1 % below that of the first block."""

    slow: int
    blocks: int


class MeasuredAgain(_Note, frozen=True, kw_only=True, tag="measured_again"):
    """The time was measured again, `attempts` times, because it or the baseline's time beside it was not stable."""

    attempts: int


class BaselineMoved(_Note, frozen=True, kw_only=True, tag="baseline_moved"):
    """Beside this time the baseline took `baseline_s`, and `usual_s` before: the machine was in another state."""

    baseline_s: float
    usual_s: float


class CallTooLong(_Note, frozen=True, kw_only=True, tag="call_too_long"):
    """These times were not measured, because one call takes `call_s` seconds."""

    call_s: float


class NoEnergyCounter(_Note, frozen=True, kw_only=True, tag="no_energy_counter"):
    """This device has no energy counter."""


class EnergyCounterStill(_Note, frozen=True, kw_only=True, tag="energy_counter_still"):
    """The board's energy counter did not advance twice within `seconds`."""

    seconds: float


class NoNaiveTiming(_Note, frozen=True, kw_only=True, tag="no_naive_timing"):
    """The process of the naive protocol gave no time: the variant raised an exception there, the process ended with `exit_code`,
    or it did not end within `seconds`. `message`: the exception, or the end of the process's output."""

    fault: Literal["raised", "ended", "time_limit"]
    exit_code: int | None = None
    seconds: float | None = None
    message: str = ""


class StaleTuning(_Note, frozen=True, kw_only=True, tag="stale_tuning"):
    """The result of tuning was not used, because it was for another version of the variant's source or for another space."""

    run_id: str
    another: Literal["source", "space"]


class StoppedEarly(_Note, frozen=True, kw_only=True, tag="stopped_early"):
    """The time is that of one block, without an interval: its fastest call took `ratio` times as long as the fastest variant
    beside it, more than the `factor` of the method, so it got no further blocks."""

    ratio: float
    factor: float


class LaterFailure(_Note, frozen=True, kw_only=True, tag="later_failure"):
    """A later measurement of the same case failed. The times measured before it remain valid."""

    stage: Stage
    reasons: tuple[Reason, ...] = ()
    message: str = ""


class ClockConfirmed(_Note, frozen=True, kw_only=True, tag="clock_confirmed"):
    """By the clock of the judge, the shortest of `trials` calls, less the copy of its outputs, took `at_most_s`, little longer
    than the time by the worker."""

    at_most_s: float
    trials: int


class ClockUnverified(_Note, frozen=True, kw_only=True, tag="clock_unverified"):
    """By the clock of the judge, the shortest of `trials` calls, less the copy of its outputs, took `at_most_s`. The cost of a
    launch may be the reason that this is longer than the time by the worker, so that time is not confirmed."""

    at_most_s: float
    trials: int


class ForeignNote(_Note, frozen=True, kw_only=True, tag="text"):
    """Text for which this version has no kind. It is shown unchanged and never interpreted."""

    text: str


Note = (
    DriverSilent
    | DriverCopy
    | NotCapturable
    | OtherKernelsInGraph
    | KernelsVary
    | TracingCostUnknown
    | TracingShortens
    | SlowBlocks
    | MeasuredAgain
    | BaselineMoved
    | CallTooLong
    | NoEnergyCounter
    | EnergyCounterStill
    | NoNaiveTiming
    | StaleTuning
    | StoppedEarly
    | LaterFailure
    | ClockConfirmed
    | ClockUnverified
    | ForeignNote
)
