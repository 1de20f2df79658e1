"""A run of a workload under way: it is measured point by point, each result is stored, then followers are told."""

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelviz.bench.workload_plan import lack_of, mechanics_only
from kernelviz.core import Device, Failure, KernelvizError, Status, timestamps
from kernelviz.core.reasons import CancelledBefore, NoResult
from kernelviz.core.workload import (
    WorkloadCase,
    WorkloadCaseDone,
    WorkloadEnded,
    WorkloadEvent,
    WorkloadMeasurement,
    WorkloadProgress,
    WorkloadResult,
    WorkloadRun,
)
from kernelviz.hardware.telemetry import conditions
from kernelviz.measure.workloads.messages import FromRunner, MeasurementDone, RunnerRequest
from kernelviz.store import Store
from kernelviz.worker.device_lock import Holder
from kernelviz.worker.workload_process import GroupEnd, device_locks, run_group

_log = logging.getLogger(__name__)
_CANCELLED = Failure(stage="cancelled", reasons=(CancelledBefore(),))


@dataclass(frozen=True, slots=True)
class WorkloadState:
    """Where a run is. `now`: what happens; None before the beginning and after the end. `sequence` grows with each event."""

    status: Status
    done: int
    failed: int
    total: int
    now: WorkloadProgress | None
    message: str
    sequence: int


class WorkloadLog:
    """The events of one run in memory, for any number of followers. A newer progress replaces an older one."""

    def __init__(self, total: int, done: int, failed: int) -> None:
        self._changed = threading.Condition()
        self._events: list[tuple[int, WorkloadEvent]] = []
        self._sequence = 0
        self._total, self._done, self._failed = total, done, failed
        self._now: WorkloadProgress | None = None
        self._status: Status = "queued"
        self._message = ""

    def append(self, event: WorkloadEvent) -> None:
        """Add an event and wake the followers."""
        with self._changed:
            self._sequence += 1
            if isinstance(event, WorkloadProgress):
                self._events = [(n, e) for n, e in self._events if not isinstance(e, WorkloadProgress)]
                self._now = event
                self._status = "queued" if event.step == "waiting" and self._status == "queued" else "running"
            elif isinstance(event, WorkloadCaseDone):
                if not event.result.given_up:
                    self._done += 1
                    self._failed += event.result.failed
            else:
                self._status, self._message, self._now = event.status, event.message, None
            self._events.append((self._sequence, event))
            self._changed.notify_all()

    def state(self) -> WorkloadState:
        """Where the run is now."""
        with self._changed:
            return WorkloadState(
                self._status, self._done, self._failed, self._total, self._now, self._message, self._sequence
            )

    def follow(self, after: int, timeout_s: float | None) -> Iterator[tuple[int, WorkloadEvent]]:
        """Events after that number, waiting for new ones, until the run has ended or nothing came for `timeout_s`."""
        seen = after
        while True:
            with self._changed:
                came = self._changed.wait_for(lambda: self._sequence > seen, timeout_s)  # noqa: B023 (used at once)
                fresh = [(n, e) for n, e in self._events if n > seen]
            if not came:
                return
            for number, event in fresh:
                seen = number
                yield number, event
                if isinstance(event, WorkloadEnded):
                    return


class LiveWorkload:
    """The thread that measures one run."""

    def __init__(
        self,
        run: WorkloadRun,
        store: Store,
        *,
        source_digest: str | None,
        lock_directory: Path | None = None,
    ) -> None:
        self.run, self._store, self._digest, self._lock_directory = run, store, source_digest, lock_directory
        with_result = [r for r in run.results if not r.given_up]
        self._done = {r.case.key for r in with_result}
        self.log = WorkloadLog(len(run.plan.cases), len(with_result), sum(r.failed for r in with_result))
        self._positions = {case.key: i for i, case in enumerate(run.plan.cases)}
        self._cancelled = self._closing = False
        self._thread = threading.Thread(target=self._measure, name=f"workload {run.id}", daemon=True)

    def start(self) -> None:
        """Begin in a thread."""
        self._thread.start()

    def cancel(self) -> None:
        """End the process that measures; cases without a result are cancelled."""
        self._cancelled = True

    def close(self, wait_s: float = 15.0) -> None:
        """End it because this process ends; the run is interrupted and can be resumed."""
        self._closing = True
        if self._thread is not threading.current_thread() and self._thread.is_alive():
            self._thread.join(wait_s)

    def _stop(self) -> bool:
        return self._cancelled or self._closing

    # In the thread from here on.

    def _measure(self) -> None:
        status, message = "interrupted", ""
        try:
            self._store.workloads.set_status(self.run.id, "queued")
            for group in groups(self.run, self._done):
                if self._stop():
                    break
                self._group(list(group))
            left = [case for case in self.run.plan.cases if case.key not in self._done]
            if self._cancelled:
                for case in left:
                    self._put(WorkloadMeasurement(case=case, failure=_CANCELLED))
            status = "cancelled" if self._cancelled else "interrupted" if left else "finished"
        except Exception as error:
            _log.exception("run %s ended with an error", self.run.id)
            message = str(error) if isinstance(error, KernelvizError) else f"{type(error).__name__}: {error}"
        with contextlib.suppress(KernelvizError):
            self._store.workloads.set_status(self.run.id, status)  # type: ignore[arg-type]
        self.log.append(WorkloadEnded(status=status, message=message))  # type: ignore[arg-type]

    def _group(self, cases: list[WorkloadCase]) -> None:
        """Measure cases at one point in as many processes as crashes make necessary, under the locks of the devices."""
        for case in list(cases):
            lack = lack_of(self.run.declared, case, self.run.devices[0])
            if lack is not None:
                self._put(WorkloadMeasurement(case=case, failure=Failure(stage="unavailable", reasons=(lack,))))
                cases.remove(case)
        waiting = [cases] if cases else []
        while waiting and not self._stop():
            some = waiting.pop(0)
            with device_locks(self.run.devices, self._waiting, self._stop, self._lock_directory) as descriptors:
                if descriptors is None:
                    return
                self._store.workloads.set_status(self.run.id, "running")
                waiting[:0] = self._attempt(some, descriptors)

    def _waiting(self, device: Device, holder: Holder | None) -> None:
        self.log.append(WorkloadProgress(step="waiting", holder=f"{device.id}: {holder}" if holder else device.id))

    def _attempt(self, cases: Sequence[WorkloadCase], descriptors: tuple[int, ...]) -> list[list[WorkloadCase]]:
        """Measure cases in one process; returns what is to be measured in others, because this one died."""
        measured: dict[str, WorkloadMeasurement] = {}

        def tell(message: FromRunner) -> None:
            if isinstance(message, MeasurementDone):
                if message.measurement.case in cases:
                    measured[message.measurement.case.key] = message.measurement
                    self._put(message.measurement)
            elif isinstance(message, WorkloadProgress):
                self.log.append(message)

        self.log.append(WorkloadProgress(step="starting", point=cases[0].point))
        request = RunnerRequest(
            cases=tuple(cases), devices=self.run.devices, method=self.run.plan.method, plugins=self.run.plan.plugins
        )
        end = run_group(request, most_s=self.run.declared.most_s, tell=tell, stop=self._stop, guard_fds=descriptors)
        left = [case for case in cases if case.key not in measured]
        return [] if end.stopped or not left else self._conclude(left, end)

    def _conclude(self, left: list[WorkloadCase], end: GroupEnd) -> list[list[WorkloadCase]]:
        """Give the case that ended the process its failure; returns the others, for another process."""
        failure = end.failure or Failure(stage="crash", reasons=(NoResult(),))
        guilty = next((case for case in left if case.variant == end.variant), None)
        if guilty is None and len(left) > 1:  # unknown which one: each in a process of its own tells
            return [[case] for case in left]
        guilty = guilty or left[0]
        self._put(WorkloadMeasurement(case=guilty, failure=failure))
        rest = [case for case in left if case is not guilty]
        return [rest] if rest else []

    def _put(self, measurement: WorkloadMeasurement) -> None:
        result = WorkloadResult(
            **{name: getattr(measurement, name) for name in WorkloadMeasurement.__struct_fields__},
            measured_at=timestamps.now(),
            conditions=() if measurement.failure else tuple(map(conditions, self.run.devices)),
            mechanics_only=mechanics_only(self.run.declared, self.run.devices[0]),
            source_digest=self._digest,
        )
        self._store.workloads.put(self.run.id, self._positions[result.case.key], result)
        if not result.given_up:
            self._done.add(result.case.key)
        self.log.append(WorkloadCaseDone(result=result))


def groups(run: WorkloadRun, done: set[str]) -> Iterator[tuple[WorkloadCase, ...]]:
    """The cases without a result that share a process: those at the same point, without variants that need a fresh process, which
    are alone. The order is that of the plan."""
    by_point: dict[str, list[WorkloadCase]] = {}
    for case in run.plan.cases:
        if case.key not in done:
            by_point.setdefault(case.point, []).append(case)
    for cases in by_point.values():
        fresh = {v.name for v in run.declared.variants if v.fresh_process}
        shared = tuple(case for case in cases if case.variant not in fresh)
        if shared:
            yield shared
        yield from ((case,) for case in cases if case.variant in fresh)
