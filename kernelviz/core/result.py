"""The result of a case: timings with their samples, failures, accuracy, conditions and kernels. Times are in seconds."""

from typing import Literal

import msgspec

from kernelviz.core.code import CompiledCode
from kernelviz.core.counters import Counters
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
"""Why the driver lowered the clock (hardware.telemetry), as in documents. Documents of other tools may name other reasons."""
IDLE: EventReason = "idle"
POWER_CAP: EventReason = "power cap"


class Block(Struct, frozen=True, kw_only=True):
    """A group of consecutive samples that were measured together (one graph replay).

    Blocks of different variants with the same `round` were measured in the same round. `clock_hz` is the SM clock measured
    inside the block, or None if the device has no such counter.
    """

    size: int
    started_s: float
    clock_hz: float | None = None
    round: int | None = None


class Figure(Struct, frozen=True, kw_only=True, cache_hash=True):
    """A time with its 95 % interval and its samples in the order of measurement.

    `low` and `high` are None when there were too few blocks for an interval. `samples` and `blocks` are None when a file of
    another tool did not contain them. `correction_s` is the time that tracing adds, which was subtracted from every sample
    (negative: tracing shortens the call); None if nothing was subtracted. `buffers` is the number of copies of the call's
    tensors over which the calls rotate; None if it was not stated.

    `percentiles_s`, the 50th, 90th and 99th percentile of all samples, is stated where `samples` holds only the trimmed mean of
    each block. Where `samples` holds all of them, the field is left out of documents, as it was before 2026-11-23.
    `extent_s`, the least, the mean and the largest of all samples, goes with it since 2026-11-27; it is left out where it is
    not known.
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
    percentiles_s: tuple[float, float, float] | msgspec.UnsetType = msgspec.UNSET
    extent_s: tuple[float, float, float] | msgspec.UnsetType = msgspec.UNSET

    @property
    def by_block(self) -> bool:
        """Whether `samples` holds the trimmed mean of each block instead of every sample."""
        return self.percentiles_s is not msgspec.UNSET

    @property
    def sample_count(self) -> int | None:
        """How many samples were measured; None if unknown."""
        if self.samples is None:
            return None
        return sum(b.size for b in self.blocks or ()) if self.by_block else len(self.samples)

    @property
    def half_width(self) -> float | None:
        """Half the interval as a fraction of the estimate."""
        return half_width(self.estimate, self.low, self.high)


def half_width(estimate: float, low: float | None, high: float | None) -> float | None:
    """Half the width of an interval as a fraction of its estimate; None if there is no interval.

    >>> half_width(2.0, 1.5, 2.5), half_width(2.0, None, None)
    (0.25, None)
    """
    return None if low is None or high is None or estimate <= 0 else (high - low) / 2 / estimate


class Energy(Struct, frozen=True, kw_only=True):
    """The energy of one call, from the driver's counter over `calls` calls back to back, which took `seconds`."""

    joules: float
    calls: int
    seconds: float
    sm_clock_hz: float | None = None


class NaiveTiming(Struct, frozen=True, kw_only=True):
    """Times by the naive protocol, in a process that was started for them: seconds, without an interval.

    `first_s`: one pair of marks around the first call. `mean_s`: one around the first `calls` calls, divided by their number.
    `bind_and_first_s`: one around binding (allocation, compilation) and the first call. A mark is a CUDA event, or on a processor
    the host's clock.
    """

    first_s: float
    mean_s: float
    calls: int
    bind_and_first_s: float
    timer: Timer


class Timing(Struct, frozen=True, kw_only=True, tag="timing", tag_field="kind"):
    """The times of a case. The headline is `device_cold_s`. A time that was not measured is None.

    `device_*` is the time of the call's kernels by the device's timestamps, either after a flush of the caches (cold) or with
    the call's data still in them (warm). `busy_s` is the part of the cold time in which a kernel ran. `call_eager_s` is one
    Python call from an idle device to the end of its work, by the host clock; `enqueue_s` is its part until the call returns.
    `call_graph_s` is the same for a graph of one call. `loop_s` is one of many eager calls back to back. `again_s` and
    `again_warm_s` are a second series of the baseline in the same rounds. The comparison of the baseline with itself (A/A)
    gives the noise floors of verdicts. `naive` is left out of documents where it was not measured.
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
    naive: NaiveTiming | msgspec.UnsetType = msgspec.UNSET

    @property
    def naive_timing(self) -> NaiveTiming | None:
        """The times by the naive protocol; None if they were not measured."""
        return None if self.naive is msgspec.UNSET else self.naive

    @property
    def figures(self) -> dict[str, Figure]:
        """The times that were measured, by the name of their field.

        >>> list(Timing(loop_s=Figure(estimate=2.0), other_times={"theirs": Figure(estimate=1.0)}).figures)
        ['loop_s']
        """
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in values.items() if isinstance(value, Figure)}


class Failure(Struct, frozen=True, kw_only=True, tag="failure", tag_field="kind"):
    """Why a case has no usable time. The time of a wrong variant is kept in `timing`, and the case is marked wrong.

    `reasons` are the known reasons, the most specific one first. `message` is the text of another program (a compiler's log, the
    text of an exception, the end of a process's log). It is shown and never interpreted.
    """

    stage: Stage
    reasons: tuple[Reason, ...] = ()
    message: str = ""
    timing: Timing | None = None

    @property
    def unavailable(self) -> bool:
        """Whether the variant cannot run there or does not take the size, so that it was not tried."""
        return self.stage == "unavailable"


Outcome = Timing | Failure


class Accuracy(Struct, frozen=True, kw_only=True):
    """The comparison with the float64 reference: the worst values over all seeds and outputs.

    `worst_of_bound` is the largest |error| / bound, which is at most 1 when the check passed. A quantity that is not finite is
    None. `not_finite` counts the elements where one side is NaN or Inf and the other is not. `reasons` say why the check did not
    pass, the most specific reason first. `message` is text of an earlier version for which this version has no reason.
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
    """The state of the machine, read before or after a timed region and never inside it.

    `other_processes` is None if it could not be determined.
    """

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
    """One kernel of one call, as the tracer recorded it.

    `duration_s` is the median over the samples and includes the time that tracing adds. `registers_per_thread`: as the driver
    allocates them, at least 16. `local_memory_bytes` is the local memory of each thread: spilled registers, and arrays that do
    not fit into registers. None, and 0 in documents of before 2026-11-26, means that the tracer did not say; the facts of the
    kernel's code do.
    """

    name: str
    duration_s: float | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers_per_thread: int | None = None
    shared_memory_bytes: int | None = None
    local_memory_bytes: int | None = None


class Preparation(Struct, frozen=True, kw_only=True):
    """The times of the steps before the first sample; no sample contains any of them.

    The steps are binding (allocation and compilation), the first call and the correctness check. `search_s`: of the binding, if a
    library tried its kernels meanwhile; it is left out of documents where there was no search.
    """

    bind_s: float | None = None
    first_call_s: float | None = None
    check_s: float | None = None
    search_s: float | msgspec.UnsetType = msgspec.UNSET

    @property
    def searched_s(self) -> float | None:
        """How long a library searched for its fastest kernel, s; None if it did not."""
        return None if self.search_s is msgspec.UNSET else self.search_s


class PeakMemory(Struct, frozen=True, kw_only=True):
    """The most memory that was allocated at once beside the inputs, in bytes, by torch's allocators.

    `bind_bytes`: during binding and the first call. `call_bytes`: during a later call; it includes what the bound call holds
    (outputs that it allocated once, buffers) and what the call allocates (outputs, workspace).
    """

    bind_bytes: int
    call_bytes: int


class Result(Struct, frozen=True, kw_only=True):
    """A case with its outcome, accuracy, conditions, launched kernels and the digest of the variant's source.

    `configuration` is the configuration that the variant was bound with; None if the variant has no tuning parameters. `tuned_by`
    is the run that found the configuration; None if it is the default or the one in the variant's name. `code` describes what
    compilers made for the case, and names the artifacts by digest. `counters` are hardware counters of one call, which a profiler
    read later. `memory`, `code` and `counters` are left out of documents where they are not known, so that the digests of
    earlier documents stay as they are.
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
    memory: PeakMemory | msgspec.UnsetType = msgspec.UNSET
    code: tuple[CompiledCode, ...] | msgspec.UnsetType = msgspec.UNSET
    counters: Counters | msgspec.UnsetType = msgspec.UNSET

    @property
    def hardware_counters(self) -> Counters | None:
        """The hardware counters of one call; None if they were not read."""
        return None if self.counters is msgspec.UNSET else self.counters

    @property
    def peak_memory(self) -> PeakMemory | None:
        """The most memory that the case took; None if it is not known."""
        return None if self.memory is msgspec.UNSET else self.memory

    @property
    def case(self) -> Case:
        return Case(problem=self.problem, variant=self.variant)

    @property
    def given_up(self) -> bool:
        """Whether the case was cancelled before it had a result. Such a case is neither done nor failed."""
        return isinstance(self.outcome, Failure) and self.outcome.stage == "cancelled"

    @property
    def timing(self) -> Timing | None:
        """The timing of a correct result. A wrong result has none here, so that it cannot win by accident."""
        return self.outcome if isinstance(self.outcome, Timing) else None
