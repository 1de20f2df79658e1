"""What came back: timings with their samples, failures, accuracy, conditions, kernels. Times in seconds."""

from typing import Literal

import msgspec

from kernelviz.core.notes import Note
from kernelviz.core.problem import Case, Cost, Problem, Struct
from kernelviz.core.reasons import Reason
from kernelviz.core.reasons import Stage as Stage

Timer = Literal["cupti", "kineto", "events", "host"]
LaunchMode = Literal["graph", "stream", "call"]
EventReason = Literal[
    "idle",
    "application clocks",
    "power cap",
    "hardware slowdown",
    "sync boost",
    "thermal slowdown (software)",
    "thermal slowdown (hardware)",
    "power brake",
    "display clocks",
]
"""Why the driver held the clock down (hardware.telemetry), as documents name it; another tool's may name others."""
IDLE: EventReason = "idle"
POWER_CAP: EventReason = "power cap"


class Block(Struct, frozen=True, kw_only=True):
    """A group of consecutive samples taken in one go (one graph replay). `round` pairs blocks of different variants.

    `clock_hz` is the SM clock measured inside the block, None where the device has no such counter.
    """

    size: int
    started_s: float
    clock_hz: float | None = None
    round: int | None = None


class Figure(Struct, frozen=True, kw_only=True):
    """A time with its 95 % interval and the samples behind it, in order.

    `low` and `high` are None when there were too few blocks for an interval. `samples` and `blocks` are None when
    another tool's file did not say. `correction_s` was taken off every sample (what tracing adds); None: nothing was.
    `buffers`: the number of copies of the call's tensors over which the calls rotate; None: not stated.
    """

    estimate: float
    low: float | None = None
    high: float | None = None
    samples: tuple[float, ...] | None = None
    blocks: tuple[Block, ...] | None = None
    timer: Timer | None = None
    launch: LaunchMode | None = None
    method: str | None = None
    correction_s: float | None = None
    buffers: int | None = msgspec.field(default=None, name="places")

    @property
    def half_width(self) -> float | None:
        """Half the interval as a fraction of the estimate."""
        return half_width(self.estimate, self.low, self.high)


def half_width(estimate: float, low: float | None, high: float | None) -> float | None:
    """Half an interval as a fraction of what it is of; None without one.

    >>> half_width(2.0, 1.5, 2.5), half_width(2.0, None, None)
    (0.25, None)
    """
    return None if low is None or high is None or estimate <= 0 else (high - low) / 2 / estimate


class Energy(Struct, frozen=True, kw_only=True):
    """What one call takes from the board, by the driver's counter over `calls` calls back to back in `seconds`."""

    joules: float
    calls: int
    seconds: float
    sm_clock_hz: float | None = None


class Timing(Struct, frozen=True, kw_only=True, tag="timing", tag_field="kind"):
    """The figures of a case. The headline is `device_cold_s`; what was not measured is None.

    `device_*`: the call's kernels by the device's stamps, caches flushed before (cold) or its data left in them (warm);
    `busy_s` is the part of the cold span in which a kernel ran. `call_eager_s`: one Python call from idle to done by the host
    clock, `enqueue_s` its part until Python goes on; `call_graph_s`: the same as a graph of one call; `loop_s`: one of many
    eager calls back to back. `again_s` and `again_warm_s` are the baseline's second series in the same rounds: live A/A
    comparisons, the noise floors of verdicts.
    """

    device_cold_s: Figure | None = None
    device_warm_s: Figure | None = None
    busy_s: Figure | None = None
    call_eager_s: Figure | None = None
    enqueue_s: Figure | None = None
    call_graph_s: Figure | None = None
    loop_s: Figure | None = None
    again_s: Figure | None = None
    again_warm_s: Figure | None = None
    energy: Energy | None = None
    other_times: dict[str, Figure] = {}

    @property
    def figures(self) -> dict[str, Figure]:
        """Those that were measured, by their field.

        >>> list(Timing(loop_s=Figure(estimate=2.0), other_times={"theirs": Figure(estimate=1.0)}).figures)
        ['loop_s']
        """
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in values.items() if isinstance(value, Figure)}


class Failure(Struct, frozen=True, kw_only=True, tag="failure", tag_field="kind"):
    """Why a case has no usable time. A wrong variant keeps the time it took in `timing`, marked wrong.

    `reasons`: what is known of it, the most telling one first. `message`: what another program wrote of it (a compiler's log, the
    text of an exception, the end of a process's log): shown, never interpreted.
    """

    stage: Stage
    reasons: tuple[Reason, ...] = ()
    message: str = ""
    timing: Timing | None = None


Outcome = Timing | Failure


class Accuracy(Struct, frozen=True, kw_only=True):
    """The comparison with the float64 reference, worst over all seeds and outputs.

    `worst_of_bound`: the largest |error| / bound, at most 1 when passed. A quantity that is not finite is None and
    counted in `not_finite` (elements where one side is NaN or Inf and the other is not). `reasons`: why it did not pass, the most
    telling one first; `message`: the same in words of an earlier version that are not known.
    """

    passed: bool
    relative_l2: float | None
    max_abs: float | None
    worst_of_bound: float | None
    not_finite: int = 0
    unwritten: int = 0
    seeds: int = 0
    rule: str = ""
    reasons: tuple[Reason, ...] = ()
    message: str = ""


class Conditions(Struct, frozen=True, kw_only=True):
    """Context read beside a measurement, never inside it. `other_processes` is None when it could not be known."""

    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    event_reasons: tuple[str, ...] = ()
    other_processes: int | None = None
    threads: int | None = None
    read_at: str | None = None
    retried_blocks: int = 0
    retried_warm_blocks: int | None = None
    notes: tuple[Note, ...] = ()


class Kernel(Struct, frozen=True, kw_only=True):
    """One kernel of one call, as the tracer saw it; `duration_s` is its median over the samples, with what tracing adds.

    `local_memory_bytes`: of each thread, in the binary: spilled registers and arrays that no register can hold; 0 says that
    nothing was spilled.
    """

    name: str
    duration_s: float | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers_per_thread: int | None = None
    shared_memory_bytes: int | None = None
    local_memory_bytes: int | None = None


class Preparation(Struct, frozen=True, kw_only=True):
    """What happened before the first sample, never part of one: binding (allocation, compiling) and the first call."""

    bind_s: float | None = None
    first_call_s: float | None = None
    check_s: float | None = None


class Result(Struct, frozen=True, kw_only=True):
    """Case + outcome + accuracy + conditions + kernels launched + digest of the variant's source.

    `configuration`: what the variant was bound with, where it has something to tune; None: it has not. `tuned_by`: the run that
    found it; None: it is the default, or the one that the variant's name says.
    """

    problem: Problem
    variant: str
    outcome: Outcome
    accuracy: Accuracy | None = None
    cost: Cost | None = None
    conditions: Conditions | None = None
    kernels: tuple[Kernel, ...] = ()
    preparation: Preparation | None = None
    backend: str | None = None
    source_digest: str | None = None
    configuration: dict[str, int] | None = None
    tuned_by: str | None = None
    measured_at: str | None = None

    @property
    def case(self) -> Case:
        return Case(problem=self.problem, variant=self.variant)

    @property
    def given_up(self) -> bool:
        """Cancelled before it had a result: such a case is neither done nor failed."""
        return isinstance(self.outcome, Failure) and self.outcome.stage == "cancelled"

    @property
    def timing(self) -> Timing | None:
        """The timing of a correct result; a wrong one has none here, so that it cannot win by accident."""
        return self.outcome if isinstance(self.outcome, Timing) else None
