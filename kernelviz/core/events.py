"""Events of a run, reported as they happen: by the worker to the store, and by the server to a page."""

from typing import Literal

from kernelviz.core.code import CodeContent
from kernelviz.core.counters import Counters
from kernelviz.core.inspection import Inspection
from kernelviz.core.problem import Case, Struct
from kernelviz.core.result import Result
from kernelviz.core.run import Roof, Status
from kernelviz.core.selftest import Check, Timeline
from kernelviz.core.uncounted import Uncounted

Step = Literal["binding", "compiling", "checking", "measuring"]


class RunQueued(Struct, frozen=True, kw_only=True, tag="queued", tag_field="kind"):
    """The run waits behind `ahead` problems of other runs."""

    ahead: int


class DeviceBusy(Struct, frozen=True, kw_only=True, tag="device_busy", tag_field="kind"):
    """Another process holds the device; `holder` describes it."""

    holder: str


class WorkerStarting(Struct, frozen=True, kw_only=True, tag="worker_starting", tag_field="kind"):
    """A worker starts, which takes seconds because it imports torch. `reason`: why a new one is needed."""

    reason: str


class CaseStep(Struct, frozen=True, kw_only=True, tag="case_step", tag_field="kind"):
    """A case entered a step. `fraction` is the share of the step that is done, where it is known."""

    case: Case
    step: Step
    fraction: float | None = None


class CompiledAhead(Struct, frozen=True, kw_only=True, tag="compiled_ahead", tag_field="kind"):
    """Of `total` cases that the run measures next, `compiled` are compiled. `processes`: how many compile at once."""

    compiled: int
    total: int
    processes: int


class CodeCaptured(Struct, frozen=True, kw_only=True, tag="code_captured", tag_field="kind"):
    """The contents of the artifacts that the results of a case name. They are stored, and followers are not told."""

    case: Case
    contents: tuple[CodeContent, ...]


class CaseDone(Struct, frozen=True, kw_only=True, tag="case_done", tag_field="kind"):
    """A case has a result. A later result of the same case is merged into it."""

    result: Result


class RoofDone(Struct, frozen=True, kw_only=True, tag="roof_done", tag_field="kind"):
    """A roof of the device was measured."""

    roof: Roof


class CheckDone(Struct, frozen=True, kw_only=True, tag="check_done", tag_field="kind"):
    """A check of the selftest has a result."""

    check: Check


class TimelineDone(Struct, frozen=True, kw_only=True, tag="timeline", tag_field="kind"):
    """The selftest has recorded the timeline of one measurement."""

    timeline: Timeline


class InspectionDone(Struct, frozen=True, kw_only=True, tag="inspection_done", tag_field="kind"):
    """A case was inspected."""

    inspection: Inspection


class CountersDone(Struct, frozen=True, kw_only=True, tag="counters_done", tag_field="kind"):
    """A profiler has read the hardware counters of a case, or could not: `counters` is None then, and `uncounted` says why."""

    case: Case
    counters: Counters | None = None
    uncounted: Uncounted | None = None


class RunEnded(Struct, frozen=True, kw_only=True, tag="ended", tag_field="kind"):
    """The run ended, and no event follows. `message`: the reason, if the run failed as a whole."""

    status: Status
    message: str = ""


Event = (
    RunQueued
    | DeviceBusy
    | WorkerStarting
    | CaseStep
    | CompiledAhead
    | CodeCaptured
    | CaseDone
    | RoofDone
    | CheckDone
    | TimelineDone
    | InspectionDone
    | CountersDone
    | RunEnded
)
