"""Workloads: what is larger than a kernel. Declarations, plans, results and runs; a run is a document ``kernelviz-workload/1``.

A workload has no cost, no reference and no roof. A runner measures its variants in a worker process, in SI base units.
"""

import math
from typing import Literal

import msgspec

from kernelviz.core.problem import Struct
from kernelviz.core.reasons import StoredResultDamaged
from kernelviz.core.result import Conditions, Failure
from kernelviz.core.run import Device, DeviceKind, Environment, Status

WORKLOAD_SCHEMA = "kernelviz-workload/1"

AxisValue = int | str
"""The value of an axis: a number of things or bytes, or a name."""
AxisKind = Literal["count", "bytes", "choice"]
FigureUnit = Literal["s", "B", "B/s", "1/s", "fraction", "x", "count", "number"]
"""Seconds; bytes; bytes per second; things per second; a share of a whole (also an error relative to a value); a factor; a
number of things; a number without a unit, such as a loss."""
Better = Literal["lower", "higher", "neither"]
FigureOrigin = Literal["measured", "counted"]
"""``measured``: an estimate with an interval from samples. ``counted``: a count or the result of arithmetic, which has none."""
ChartKind = Literal["bars", "lines", "lanes", "workers", "memory"]
"""Bars by variant; lines by size; a timeline of two lanes; lines by the number of workers; bars of memory."""
Clock = Literal["cuda_events", "host", "cupti", "allocator", "process", "arithmetic"]
"""What a value was read from. ``process``: the system's counters of the process. ``arithmetic``: it follows from others."""
CpuMeaning = Literal["measured", "mechanics_only", "not_here"]
"""What a run on a processor says: as much as on a GPU; only that the mechanism works (gloo for NCCL); or that it does not run."""
LimitWhen = Literal["always", "cpu", "cuda"]
WorkloadStep = Literal["waiting", "starting", "preparing", "compiling", "warming_up", "measuring", "checking"]
Lane = Literal["compute", "communication"]


class WorkloadAxis(Struct, frozen=True, kw_only=True):
    """An axis that a person chooses. `choices`: all values of an axis of the kind ``choice``; otherwise the value is a whole
    number from `minimum` to `maximum` (None: no limit). `unit`: unset where it counts things or bytes. `planted`: a value above 0
    is a condition that is made on purpose and that usual work does not have. Older documents have neither."""

    name: str
    title: str
    help: str = ""
    kind: AxisKind = "count"
    choices: tuple[str, ...] = ()
    minimum: int = 1
    maximum: int | None = None
    unit: Literal["µs", "ms"] | msgspec.UnsetType = msgspec.UNSET
    planted: bool | msgspec.UnsetType = msgspec.UNSET


class WorkloadPreset(Struct, frozen=True, kw_only=True):
    """Named values of all axes. `device_kinds`: where it makes sense; the first preset of a kind of device is its default. A plan
    has each combination of the values."""

    name: str
    title: str
    device_kinds: tuple[DeviceKind, ...] = ("cuda", "cpu")
    values: dict[str, tuple[AxisValue, ...]]


class WorkloadVariant(Struct, frozen=True, kw_only=True):
    """One way to do the work. `caption`: what it is, in one line. `idea`: why it should be faster or smaller. `needs`: names of
    `kernelviz.ops.catalog.variant.Need`; what is missing is said, and the variant is not tried. `fresh_process`: it cannot share
    a process with others (its memory or imports are what is measured), so it is not interleaved with them. `by_default`: whether
    a plan that names no variants contains it."""

    name: str
    caption: str
    idea: str = ""
    needs: tuple[str, ...] = ()
    fresh_process: bool = False
    by_default: bool = True


class WorkloadFigure(Struct, frozen=True, kw_only=True):
    """A figure of a workload. `name`: on the wire. `headline`: the one figure that verdicts and gains are about; one figure of a
    workload has it."""

    name: str
    title: str
    unit: FigureUnit
    help: str = ""
    better: Better = "neither"
    origin: FigureOrigin = "measured"
    headline: bool = False


class WorkloadLimit(Struct, frozen=True, kw_only=True):
    """What the workload cannot say. `name`: for programs. `when`: on which kind of device it applies. `text`: a sentence for
    people, as the declaration writes it; nothing reads it."""

    name: str
    text: str
    when: LimitWhen = "always"


class WorkloadChart(Struct, frozen=True, kw_only=True):
    """The chart of a workload. `figures`: what it draws, the first one first. `axis`: what is on the horizontal axis of lines."""

    kind: ChartKind = "bars"
    figures: tuple[str, ...] = ()
    axis: str | None = None


class Workload(Struct, frozen=True, kw_only=True):
    """The declaration of a workload; it is importable without torch.

    `runner`: the function that measures it, as ``module:function`` (``:function`` is in the module that declares it). `ranks`:
    how many processes take part; of 2, each has a GPU of its own and they communicate by NCCL; on a processor they use gloo.
    `on_cpu`: what a run there says. `presets`: at least one. `baseline`: the variant that gains are relative to. `budget_s`:
    seconds of measuring per case unless the plan says otherwise. `most_s`: after so many seconds without an event, or after ten
    times as many altogether, the process that measures a group of cases counts as hung and is killed.
    """

    name: str
    title: str
    summary: str
    runner: str
    axes: tuple[WorkloadAxis, ...]
    presets: tuple[WorkloadPreset, ...]
    variants: tuple[WorkloadVariant, ...]
    baseline: str
    figures: tuple[WorkloadFigure, ...]
    chart: WorkloadChart
    limits: tuple[WorkloadLimit, ...] = ()
    ranks: int = 1
    on_cpu: CpuMeaning = "measured"
    budget_s: float = 3.0
    most_s: float = 120.0

    @property
    def headline(self) -> WorkloadFigure:
        """The figure that verdicts and gains are about."""
        return next((figure for figure in self.figures if figure.headline), self.figures[0])

    def figure_named(self, name: str) -> WorkloadFigure | None:
        """The figure of that name; None if the workload declares none."""
        return next((figure for figure in self.figures if figure.name == name), None)

    def variant_named(self, name: str) -> WorkloadVariant | None:
        """The variant of that name; None if the workload declares none."""
        return next((variant for variant in self.variants if variant.name == name), None)

    def axis_named(self, name: str) -> WorkloadAxis | None:
        """The axis of that name; None if the workload declares none."""
        return next((axis for axis in self.axes if axis.name == name), None)


class WorkloadCase(Struct, frozen=True, kw_only=True):
    """One variant of a workload at values of its axes.

    >>> WorkloadCase(workload="all_reduce", values={"size": 1024}, variant="fp32").key
    'all_reduce size=1024 | fp32'
    """

    workload: str
    values: dict[str, AxisValue]
    variant: str

    @property
    def point(self) -> str:
        """One line that is equal for the cases that are compared with each other: the same workload and values."""
        return " ".join([self.workload, *(f"{axis}={value}" for axis, value in self.values.items())])

    @property
    def key(self) -> str:
        """One line that is equal for equal cases."""
        return f"{self.point} | {self.variant}"


class WorkloadMethod(Struct, frozen=True, kw_only=True):
    """How a workload is measured. `budget_s`: seconds of measuring per case; preparation is not counted. `rounds_min` and
    `rounds_max`: limits on the number of rounds. `seed`: of the synthetic data and of the order within rounds."""

    budget_s: float = 3.0
    rounds_min: int = 10
    rounds_max: int = 200
    seed: int = 0


class WorkloadPlan(Struct, frozen=True, kw_only=True):
    """What is to be measured. `devices`: ids of one device, or of two in the order of their UUIDs. `plugins`: files that declare
    workloads of the user's own."""

    workload: str
    cases: tuple[WorkloadCase, ...]
    baseline: str
    devices: tuple[str, ...]
    method: WorkloadMethod = WorkloadMethod()
    plugins: tuple[str, ...] = ()

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants, in the order of the plan."""
        return tuple(dict.fromkeys(case.variant for case in self.cases))


class Measured(Struct, frozen=True, kw_only=True, tag="measured", tag_field="kind"):
    """A measured value: the median of its samples with a 95 % interval (None below ten samples), in the unit of the figure.

    `rounds`: the round of each sample, so that samples of two variants are compared pair by pair; empty where there were no
    shared rounds. `again`: a second series of the baseline in the same rounds, which gives the noise floor.
    """

    estimate: float
    low: float | None = None
    high: float | None = None
    samples: tuple[float, ...] = ()
    rounds: tuple[int, ...] = ()
    again: tuple[float, ...] = ()
    clock: Clock = "host"

    @property
    def n(self) -> int:
        """How many samples."""
        return len(self.samples)


class Counted(Struct, frozen=True, kw_only=True, tag="counted", tag_field="kind"):
    """A value that was counted or follows by arithmetic; it has no interval."""

    value: float
    clock: Clock = "arithmetic"


WorkloadValue = Measured | Counted


class Span(Struct, frozen=True, kw_only=True):
    """Something that ran on a device from `start_s` to `end_s`, seconds after the beginning of the timeline. `name`: of the
    kernel or of the collective; text of another program, which is shown and never interpreted."""

    lane: Lane
    start_s: float
    end_s: float
    name: str = ""


class Timeline(Struct, frozen=True, kw_only=True):
    """What one step did on a device, by the stamps of `clock`. `rank`: of the process whose device it is."""

    spans: tuple[Span, ...]
    clock: Clock
    rank: int = 0


WorkloadNoteKind = Literal[
    "page_cache_warm",
    "page_cache_dropped",
    "page_cache_unknown",
    "steps_skipped",
    "rounds_few",
    "not_interleaved",
    "diverged",
    "not_finite",
    "peer_copy",
    "no_peer_access",
    "workers_more_than_cores",
    "groups_unknown",
    "other",
]


class WorkloadNote(Struct, frozen=True, kw_only=True):
    """A fact that was observed while measuring. `value`: its number, where it has one (``steps_skipped``: by the scaler;
    ``peer_copy``: bytes/s; ``rounds_few``: rounds; ``workers_more_than_cores``: cores). `text`: of another program, shown and
    never interpreted; of the kind ``other`` all there is; of ``not_finite`` the name of the figure that has no value."""

    kind: WorkloadNoteKind
    value: float | None = None
    text: str = ""


class WorkloadGroup(Struct, frozen=True, kw_only=True):
    """A part of the measured call that was also measured on its own, behind the part before it. `parts`: what it does, in the
    terms of the workload; empty if that is not known. `kernels`: what it launches, in their order, as their compiler names them;
    shown and never interpreted. `time`: on its own, in the rounds of the whole call. `kernels_s`: the time of each of the kernels
    within the whole call, where a device stamps them. `profiler_s`: by torch.profiler, in a process of its own."""

    parts: tuple[str, ...]
    kernels: tuple[str, ...] = ()
    time: Measured | None = None
    kernels_s: tuple[float, ...] = ()
    profiler_s: float | None = None


class WorkloadMeasurement(Struct, frozen=True, kw_only=True):
    """What a runner returns for a case. `values`: by the name of the figure. `failure`: why there are none, or why those that
    there are cannot be used (stage ``wrong``). `groups`: the parts of the call, in their order, where the workload has them."""

    case: WorkloadCase
    values: dict[str, WorkloadValue] = {}
    timeline: Timeline | None = None
    notes: tuple[WorkloadNote, ...] = ()
    failure: Failure | None = None
    groups: tuple[WorkloadGroup, ...] | msgspec.UnsetType = msgspec.UNSET

    @property
    def known_groups(self) -> tuple[WorkloadGroup, ...]:
        """The parts of the call; none where the workload has none or they could not be told apart."""
        return () if self.groups is msgspec.UNSET else self.groups


class WorkloadResult(WorkloadMeasurement, frozen=True, kw_only=True):
    """A measurement with what surrounds it. `conditions`: by device, after the case. `mechanics_only`: it was measured on a
    processor in place of a GPU, so that its times say nothing about GPUs. `source_digest`: of the code of the workload."""

    measured_at: str | None = None
    conditions: tuple[Conditions, ...] = ()
    mechanics_only: bool = False
    source_digest: str | None = None

    @property
    def given_up(self) -> bool:
        """Whether the case was cancelled before it had a result, so that it is neither done nor failed."""
        return self.failure is not None and self.failure.stage == "cancelled"

    @property
    def failed(self) -> bool:
        """Whether the case was tried and has no usable values. A variant that does not take these values was not tried."""
        if self.failure is None or self.given_up:
            return False
        damaged = any(isinstance(reason, StoredResultDamaged) for reason in self.failure.reasons)
        return damaged or not self.failure.unavailable


class WorkloadRun(Struct, frozen=True, kw_only=True):
    """The document of a run of a workload. `declared`: the declaration that it was measured with, so that figures keep their
    units and titles where the workload is not installed. `devices`: in the order of the plan; `environment`: of the first."""

    schema: str = WORKLOAD_SCHEMA
    id: str
    title: str
    note: str = ""
    created_at: str
    status: Status = "finished"
    environment: Environment
    devices: tuple[Device, ...]
    declared: Workload
    plan: WorkloadPlan
    results: tuple[WorkloadResult, ...] = ()

    def result_of(self, case: WorkloadCase) -> WorkloadResult | None:
        """The result of a case; None if it has none."""
        return next((result for result in self.results if result.case == case), None)


class WorkloadProgress(Struct, frozen=True, kw_only=True, tag="progress", tag_field="event"):
    """An event of a run: what happens now. `done` and `of`: of the rounds of the step, where they are known. `holder`: who holds
    a device, of the step ``waiting``."""

    step: WorkloadStep
    variant: str = ""
    point: str = ""
    done: int | None = None
    of: int | None = None
    holder: str = ""


class WorkloadCaseDone(Struct, frozen=True, kw_only=True, tag="case", tag_field="event"):
    """An event of a run: a case has its result."""

    result: WorkloadResult


class WorkloadEnded(Struct, frozen=True, kw_only=True, tag="ended", tag_field="event"):
    """The last event of a run. `message`: of the error that ended it, in the words of another program or of the system."""

    status: Status
    message: str = ""


WorkloadEvent = WorkloadProgress | WorkloadCaseDone | WorkloadEnded


def finite_measurement(measurement: WorkloadMeasurement) -> WorkloadMeasurement:
    """The measurement without values that are not finite, which no document can hold; a note names each of them.

    >>> case = WorkloadCase(workload="w", values={}, variant="v")
    >>> finite_measurement(WorkloadMeasurement(case=case, values={"loss": Counted(value=math.nan)})).notes[0].kind
    'not_finite'
    """
    lost = tuple(name for name, value in measurement.values.items() if not _is_finite(value))
    if not lost:
        return measurement
    return msgspec.structs.replace(
        measurement,
        values={name: value for name, value in measurement.values.items() if name not in lost},
        notes=(*measurement.notes, *(WorkloadNote(kind="not_finite", text=name) for name in lost)),
    )


def _is_finite(value: WorkloadValue) -> bool:
    if isinstance(value, Counted):
        return math.isfinite(value.value)
    ends = [end for end in (value.low, value.high) if end is not None]
    return all(map(math.isfinite, (value.estimate, *ends, *value.samples, *value.again)))
