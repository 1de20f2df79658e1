"""What happens to a run, told as it happens: from the worker to the store, and from the server to a page."""

from typing import Literal

from kernelviz.core.inspection import Inspection
from kernelviz.core.problem import Case, Struct
from kernelviz.core.result import Result
from kernelviz.core.run import Roof, Status
from kernelviz.core.selftest import Check, Timeline

Step = Literal["binding", "compiling", "checking", "measuring"]


class RunQueued(Struct, frozen=True, kw_only=True, tag="queued", tag_field="kind"):
    """The run waits behind `ahead` problems of other runs."""

    ahead: int


class DeviceBusy(Struct, frozen=True, kw_only=True, tag="device_busy", tag_field="kind"):
    """Another process holds the device; `holder` says who, for people."""

    holder: str


class WorkerStarting(Struct, frozen=True, kw_only=True, tag="worker_starting", tag_field="kind"):
    """A worker is being started (importing torch takes seconds); `reason` says why a new one."""

    reason: str


class CaseStep(Struct, frozen=True, kw_only=True, tag="case_step", tag_field="kind"):
    """A case entered a step. `fraction` is the share of the step that is done, where it is known."""

    case: Case
    step: Step
    fraction: float | None = None


class CaseDone(Struct, frozen=True, kw_only=True, tag="case_done", tag_field="kind"):
    """A case has its result. A later one for the same case replaces it (more figures, more rounds)."""

    result: Result


class RoofDone(Struct, frozen=True, kw_only=True, tag="roof_done", tag_field="kind"):
    """A roof of the device was measured."""

    roof: Roof


class CheckDone(Struct, frozen=True, kw_only=True, tag="check_done", tag_field="kind"):
    """A check of the selftest was made."""

    check: Check


class TimelineDone(Struct, frozen=True, kw_only=True, tag="timeline", tag_field="kind"):
    """The picture of one measurement, taken by the selftest."""

    timeline: Timeline


class InspectionDone(Struct, frozen=True, kw_only=True, tag="inspection_done", tag_field="kind"):
    """A case was looked at."""

    inspection: Inspection


class RunEnded(Struct, frozen=True, kw_only=True, tag="ended", tag_field="kind"):
    """Nothing more will come. `message` is set when the run ended for a reason of its own."""

    status: Status
    message: str = ""


Event = (
    RunQueued
    | DeviceBusy
    | WorkerStarting
    | CaseStep
    | CaseDone
    | RoofDone
    | CheckDone
    | TimelineDone
    | InspectionDone
    | RunEnded
)
