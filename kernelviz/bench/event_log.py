"""The events of one run in memory. Any number of followers read them, each at its own speed."""

import threading
import time
from collections.abc import Iterator
from itertools import takewhile

from kernelviz.bench.summaries import Progress
from kernelviz.core import (
    CaseDone,
    CaseStep,
    CheckDone,
    CodeCaptured,
    CompiledAhead,
    CountersDone,
    DeviceBusy,
    Event,
    Failure,
    InspectionDone,
    RoofDone,
    RunEnded,
    RunQueued,
    Status,
    TimelineDone,
    WorkerStarting,
)

_LEAST_DONE = 2
"""Cases that must be done before their pace says how long the others take: the first one also waits for its inputs."""


class EventLog:
    """Events with numbers from 1 on. An event that a newer one replaces (an earlier step or result of the same case) is
    dropped, so a log holds at most two events for each case, however long the run is."""

    def __init__(self, total: int, failed: dict[str, bool] | None = None) -> None:
        """`failed`: the cases that already have a result, by key, and whether they failed; without cancelled cases. A case that
        was not available has not failed."""
        self._changed = threading.Condition()
        self._events: dict[str, tuple[int, Event]] = {}  # a newer event replaces the one with its key; oldest first
        self._sequence = 0
        self._total = total
        self._failed = dict(failed or {})
        self._steps: dict[str, CaseStep] = {}
        self._status: Status = "queued"
        self._ahead = 0
        self._message = ""
        self._compiled: CompiledAhead | None = None
        # When the first case began, and how many had a result then: a resumed run does not start at 0.
        self._began: tuple[float, int] | None = None

    def append(self, event: Event) -> None:
        with self._changed:
            self._sequence += 1
            key = self._take_note(event)
            self._events.pop(key, None)
            self._events[key] = (self._sequence, event)
            self._changed.notify_all()

    def _take_note(self, event: Event) -> str:
        """Update the progress, and return the key under which the event is stored."""
        match event:
            case RunQueued(ahead=ahead):
                self._ahead = ahead
                return "queued"
            case DeviceBusy(holder=holder):
                self._message = f"waiting for {holder}"
                return "busy"
            case WorkerStarting(reason=reason):
                self._status, self._ahead, self._message = "running", 0, f"starting the measuring process: {reason}"
                return "starting"
            case CaseStep(case=case):
                self._status, self._ahead, self._message = "running", 0, ""
                self._began = self._began or (time.monotonic(), len(self._failed))
                if case.key not in self._failed:
                    self._steps[case.key] = event
                return f"step {case.key}"
            case CompiledAhead():
                self._compiled = event
                return "compiled ahead"
            case CodeCaptured(case=case):
                return f"code {case.key}"
            case CaseDone(result=result):
                key = result.case.key
                if result.given_up:
                    self._failed.pop(key, None)
                else:
                    outcome = result.outcome
                    self._failed[key] = isinstance(outcome, Failure) and not outcome.unavailable
                self._steps.pop(key, None)
                self._events.pop(f"step {key}", None)
                return f"done {key}"
            case RoofDone(roof=roof):
                self._status, self._message = "running", ""
                self._failed[f"roof {roof.key}"] = False
                return f"roof {roof.key}"
            case CheckDone(check=check):
                self._status, self._message = "running", ""
                self._failed[check.name] = check.passed is False
                return f"check {check.name}"
            case TimelineDone():
                return "timeline"
            case InspectionDone(inspection=inspection):
                self._failed[inspection.case_key] = not inspection.passed
                self._steps.pop(inspection.case_key, None)
                return "inspection"
            case CountersDone(case=case, uncounted=uncounted):
                self._failed[case.key] = uncounted is not None
                self._steps.pop(case.key, None)
                return f"counters {case.key}"
            case RunEnded(status=status, message=message):
                self._status, self._ahead, self._message = status, 0, message
                self._steps.clear()
                return "ended"

    def reopen(self, dropped: frozenset[str], failed: dict[str, bool]) -> None:
        """Begin again after the run was queued again. The results of these cases are void. `failed`: as in the constructor,
        because another process may have measured a part of the run in the meantime."""
        with self._changed:
            self._events.pop("ended", None)
            for key in dropped:
                self._events.pop(f"done {key}", None)
            self._failed = dict(failed)
            self._status, self._message, self._began = "queued", "", None

    @property
    def ended(self) -> bool:
        with self._changed:
            return "ended" in self._events

    def progress(self) -> Progress:
        with self._changed:
            return Progress(
                status=self._status,
                done=len(self._failed),
                failed=sum(self._failed.values()),
                total=self._total,
                ahead=self._ahead,
                message=self._message,
                steps=dict(self._steps),
                sequence=self._sequence,
                remaining_s=self._remaining_s(),
                compiled=self._compiled if self._status == "running" else None,
            )

    def _remaining_s(self) -> float | None:
        """The time for the cases that are left, at the pace so far; None while it is not known."""
        if self._began is None or "ended" in self._events:
            return None
        began_s, before = self._began
        done, left = len(self._failed) - before, self._total - len(self._failed)
        return (time.monotonic() - began_s) / done * left if done >= _LEAST_DONE and left > 0 else None

    def follow(self, after: int, timeout_s: float | None) -> Iterator[tuple[int, Event]]:
        """Events after number `after`, waiting for new ones, until RunEnded or until nothing came for `timeout_s`.

        A number above the last one is of an earlier process: all events are given again.
        """
        with self._changed:
            seen = after if after <= self._sequence else 0
            if "ended" in self._events:
                # A follower that has seen all events still receives the end.
                seen = min(seen, self._events["ended"][0] - 1)
        while fresh := self._wait(seen, timeout_s):
            for sequence, event in fresh:
                seen = sequence
                yield sequence, event
                if isinstance(event, RunEnded):
                    return

    def _wait(self, seen: int, timeout_s: float | None) -> list[tuple[int, Event]]:
        """Events after number `seen`, waiting for one. Empty if none came."""
        with self._changed:
            return self._changed.wait_for(lambda: self._after(seen), timeout_s)

    def _after(self, seen: int) -> list[tuple[int, Event]]:
        return list(takewhile(lambda numbered: numbered[0] > seen, reversed(self._events.values())))[::-1]
