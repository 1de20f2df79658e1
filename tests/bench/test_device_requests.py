"""A device's own jobs, told what a supervisor tells them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sample_figures as figures
import sample_inspections as inspections
import sample_runs as samples
from sqlalchemy import URL

from kernelviz.bench.live import LiveRequest
from kernelviz.core.events import CheckDone, Event, InspectionDone, RoofDone, RunEnded
from kernelviz.core.run import Roof
from kernelviz.core.selftest import Selftest
from kernelviz.store import Store, StoreError
from kernelviz.store.device_records import Selftests

ENVIRONMENT = samples.run([]).environment
UUID = ENVIRONMENT.device.uuid
ROOF = Roof(name="copy", level="dram", moved_bytes=2**30, bandwidth_bytes_per_s=4.3e12)


class NoRoom(Selftests):
    def put(self, selftest: Selftest, *, only_new: bool = False) -> bool:
        raise StoreError("the disk is full")


class FullDisk(Store):
    def __init__(self, url: str | URL) -> None:
        super().__init__(url)
        self.selftests = NoRoom(self._database)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store.open(tmp_path)
    yield made
    made.close()


def jobs(store: Store) -> list[LiveRequest]:
    return [
        LiveRequest("calibration-1", store),
        LiveRequest("selftest-1", store),
        LiveRequest("inspection-1", store),
    ]


def told(job: LiveRequest) -> list[Event]:
    return [event for _, event in job.log.follow(0, 0.0)]


def test_a_roof_is_kept_of_the_device_that_the_worker_has_before_it_is_told(store: Store) -> None:
    calibration = jobs(store)[0]
    calibration.begun(ENVIRONMENT)
    calibration.tell(RoofDone(roof=ROOF))
    assert store.roofs.newest(UUID) == (ROOF,)
    assert store.roofs.newest("of another device") == ()
    assert told(calibration) == [RoofDone(roof=ROOF)]


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_job_that_failed_counts_as_interrupted_and_says_why(store: Store, which: int) -> None:
    job = jobs(store)[which]
    job.begun(ENVIRONMENT)
    job.ended("finished", "the tracer failed")
    assert told(job) == [RunEnded(status="interrupted", message="the tracer failed")]


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_cancel_ends_what_is_queued_and_waits_for_what_is_measured(store: Store, which: int) -> None:
    queued, measured = jobs(store)[which], jobs(store)[which]
    queued.abandon = lambda: [object()]  # type: ignore[list-item,return-value]
    for job in (queued, measured):
        assert not job.cancelled
        job.cancel()
        assert job.cancelled
    assert told(queued) == [RunEnded(status="cancelled")]
    assert told(measured) == []
    measured.ended("cancelled", "")
    assert told(measured) == [RunEnded(status="cancelled")]


def test_the_facts_of_a_case_are_kept_before_they_are_told(store: Store) -> None:
    job = jobs(store)[2]
    job.begun(ENVIRONMENT)
    assert job.inspection is None
    made = inspections.wrong_tile(environment=ENVIRONMENT)
    job.tell(InspectionDone(inspection=made))
    job.ended("finished", "")
    assert job.inspection == store.inspections.get(UUID, made.case_key) == made
    assert told(job) == [InspectionDone(inspection=made), RunEnded(status="finished")]
    progress = job.log.progress()
    assert (progress.done, progress.failed, progress.status) == (1, 1, "finished")


def test_the_followers_learn_of_the_end_though_the_disk_is_full(tmp_path: Path) -> None:
    full = FullDisk.open(tmp_path)
    job = LiveRequest("selftest-1", full)
    job.begun(ENVIRONMENT)
    job.tell(CheckDone(check=figures.CHECKS[0]))
    job.ended("finished", "")
    assert told(job)[-1] == RunEnded(status="interrupted", message="the disk is full")
    full.close()
