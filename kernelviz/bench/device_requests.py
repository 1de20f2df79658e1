"""A device's own jobs while they go on: what they find is kept beside the runs, by device."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from kernelviz.bench.event_log import EventLog
from kernelviz.core import (
    Check,
    CheckDone,
    Environment,
    Event,
    Inspection,
    InspectionDone,
    RoofDone,
    RunEnded,
    Selftest,
    Status,
    Timeline,
    TimelineDone,
    timestamps,
)
from kernelviz.store import Store
from kernelviz.worker.request import Request, RequestEnd

_log = logging.getLogger(__name__)


class LiveRequest(ABC):
    """The sink of a job, which is a single item."""

    def __init__(self, name: str, store: Store, log: EventLog) -> None:
        self.name, self.log = name, log
        self._store = store
        self._cancelled = False
        self.abandon: Callable[[], Iterable[Request]] = tuple
        """Takes the job out of the queue if it is still there; set by who queued it."""

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    @abstractmethod
    def begun(self, environment: Environment) -> None: ...

    @abstractmethod
    def keep(self, event: Event) -> None:
        """Take what the event tells, before the followers hear of it."""

    @abstractmethod
    def finish(self, status: Status, message: str) -> None:
        """Keep what is left when the job ends."""

    def tell(self, event: Event) -> None:
        self.keep(event)
        self.log.append(event)

    def ended(self, end: RequestEnd, message: str) -> None:
        # A job that failed has no case to carry the reason: it counts as interrupted, and says why.
        status: Status = "interrupted" if end == "finished" and message else end
        try:
            self.finish(status, message)
        except Exception as error:  # the followers must learn of the end, whatever became of the disk
            _log.exception("%s could not be stored", self.name)
            status, message = "interrupted", message or str(error)
        self.log.append(RunEnded(status=status, message=message))

    def cancel(self) -> None:
        """What is queued ends now, what is measured after its current block."""
        self._cancelled = True
        if list(self.abandon()):
            self.log.append(RunEnded(status="cancelled"))


class LiveCalibration(LiveRequest):
    """Each roof goes to the store as it is told."""

    def __init__(self, name: str, store: Store, log: EventLog, device_uuid: str) -> None:
        super().__init__(name, store, log)
        self._device_uuid = device_uuid

    def begun(self, environment: Environment) -> None:
        self._device_uuid = environment.device.uuid

    def keep(self, event: Event) -> None:
        if isinstance(event, RoofDone):
            self._store.roofs.put(self._device_uuid, event.roof)

    def finish(self, status: Status, message: str) -> None:
        """Nothing is left."""


class LiveSelftest(LiveRequest):
    """A whole one goes to the store when it ends; one of chosen checks is only told."""

    def __init__(self, name: str, store: Store, log: EventLog, *, stored: bool) -> None:
        super().__init__(name, store, log)
        self._stored = stored
        self._created_at = timestamps.now()
        self._environment: Environment | None = None
        self._checks: list[Check] = []
        self._timeline: Timeline | None = None

    @property
    def result(self) -> Selftest | None:
        """What was found so far; None before a worker was ready."""
        if self._environment is None:
            return None
        return Selftest(
            id=self.name,
            created_at=self._created_at,
            environment=self._environment,
            checks=tuple(self._checks),
            timeline=self._timeline,
        )

    def begun(self, environment: Environment) -> None:
        self._environment, self._created_at = environment, timestamps.now()

    def keep(self, event: Event) -> None:
        if isinstance(event, CheckDone):
            self._checks.append(event.check)
        elif isinstance(event, TimelineDone):
            self._timeline = event.timeline

    def finish(self, status: Status, message: str) -> None:
        """One that broke off is kept too, with what it broke off with as a check that failed; a cancelled one is not."""
        if status == "interrupted" and self._checks:
            self.tell(CheckDone(check=_broken_off(message)))
        if self._stored and self.result is not None and self._checks and status != "cancelled":
            self._store.selftests.put(self.result)


class LiveInspection(LiveRequest):
    """The facts go to the store as they are told."""

    def __init__(self, name: str, store: Store, log: EventLog) -> None:
        super().__init__(name, store, log)
        self.result: Inspection | None = None
        """What was found; None before the case was looked at."""

    def begun(self, environment: Environment) -> None:
        """The facts carry it themselves."""

    def keep(self, event: Event) -> None:
        if isinstance(event, InspectionDone):
            self.result = event.inspection
            self._store.inspections.put(event.inspection)

    def finish(self, status: Status, message: str) -> None:
        """Nothing is left."""


def _broken_off(message: str) -> Check:
    return Check(name="came_to_its_end", question="Did the selftest come to its end?", passed=False, message=message)
