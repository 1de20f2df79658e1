"""Who is next on a device: one problem at a time, round-robin between people, in order within each person's jobs."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from kernelviz.core.events import Event
from kernelviz.core.problem import Method, Problem


@dataclass(frozen=True, slots=True)
class Group:
    """One problem with the variants that are to be measured on it; `problem` None means: calibrate the device."""

    problem: Problem | None
    variants: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class Job:
    """What one run (or one calibration) asks of a device. `tell` receives its events, `ended` is called once, both on the
    supervisor's thread. `ended` gets a message when the job could not be done at all."""

    id: str
    owner: str
    groups: deque[Group]
    tell: Callable[[Event], None]
    ended: Callable[[str], None]
    baseline: str = ""
    method: Method = field(default_factory=Method)
    plugins: tuple[str, ...] = ()
    cancelled: bool = False


class FairQueue:
    """Jobs of several owners. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._owners: deque[str] = deque()
        self._jobs: dict[str, deque[Job]] = {}
        self._closed = False

    def put(self, job: Job) -> None:
        with self._changed:
            if job.owner not in self._jobs:
                self._jobs[job.owner] = deque()
                self._owners.append(job.owner)
            self._jobs[job.owner].append(job)
            self._changed.notify_all()

    def take(self) -> tuple[Job, Group | None] | None:
        """The next group of the owner whose turn it is, who then goes to the back. None once closed.

        A job leaves the queue with its last group. A group of None: it was cancelled (or empty) and has been removed.
        """
        with self._changed:
            while not self._owners and not self._closed:
                self._changed.wait()
            if self._closed:
                return None
            owner = self._owners.popleft()
            job = self._jobs[owner][0]
            group = job.groups.popleft() if job.groups and not job.cancelled else None
            if group is None or not job.groups:
                self._jobs[owner].popleft()
            if self._jobs[owner]:
                self._owners.append(owner)
            else:
                del self._jobs[owner]
            return job, group

    def ahead(self, job_id: str) -> int:
        """How many groups of other jobs will be served before the next one of this job (as things stand)."""
        with self._changed:
            for turn, owner in enumerate(self._owners):
                for place, job in enumerate(self._jobs[owner]):
                    if job.id == job_id:
                        before = sum(len(j.groups) for j in list(self._jobs[owner])[:place])
                        others = sum(
                            min(before + 1, sum(len(j.groups) for j in self._jobs[o]))
                            for o in list(self._owners)[:turn]
                        ) + sum(
                            min(before, sum(len(j.groups) for j in self._jobs[o])) for o in list(self._owners)[turn + 1 :]
                        )
                        return before + others
            return 0

    def waiting(self) -> int:
        """Groups that wait, over all jobs."""
        with self._changed:
            return sum(len(job.groups) for jobs in self._jobs.values() for job in jobs)

    def jobs(self) -> list[Job]:
        with self._changed:
            return [job for jobs in self._jobs.values() for job in jobs]

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
