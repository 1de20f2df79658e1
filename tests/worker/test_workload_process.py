"""The process of a workload: locks of two devices in one order, released after kill -9, and a runner that hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from planted_workload import PLANTED_PID

from kernelviz.core.reasons import Silent
from kernelviz.core.run import Device
from kernelviz.core.workload import WorkloadCase, WorkloadMethod
from kernelviz.measure.workloads.messages import MeasurementDone, RunnerRequest
from kernelviz.worker.device_lock import DeviceLock, Holder
from kernelviz.worker.workload_process import device_locks, run_group

ROOT = Path(__file__).parents[2]
PLUGIN = str(ROOT / "tests" / "planted_workload.py")
FIRST, SECOND = (Device(id=f"fake:{i}", kind="cpu", name="fake", uuid=f"FAKE-{u}") for i, u in enumerate("BA"))
"""In the order of their ids; that of their UUIDs is the other one."""


def request(*variants: str) -> RunnerRequest:
    cases = tuple(WorkloadCase(workload="planted", values={"work": 0, "kind": "plain"}, variant=v) for v in variants)
    return RunnerRequest(cases=cases, devices=(FIRST, SECOND), method=WorkloadMethod(budget_s=0.01), plugins=(PLUGIN,))


# Holds both locks while a runner hangs.
HOLDER = """
import sys
from pathlib import Path
sys.path.insert(0, "tests"); sys.path.insert(0, "tests/worker")
from test_workload_process import FIRST, SECOND, request
from kernelviz.worker.workload_process import device_locks, run_group
with device_locks((FIRST, SECOND), lambda device, holder: None, lambda: False, Path(sys.argv[1])) as held:
    run_group(request("hangs"), most_s=1000, tell=lambda message: None, stop=lambda: False, guard_fds=held)
"""


def free(device: Device, folder: Path) -> bool:
    """Whether the lock of the device can be taken now."""
    lock = DeviceLock(device.uuid, folder)
    try:
        taken = lock.acquire(lambda holder: None, lambda: True)
        if taken:
            lock.release()
        return taken
    finally:
        lock.close()


def wait_until(what: object, most_s: float = 30.0) -> None:
    until_s = time.monotonic() + most_s
    while not what():  # type: ignore[operator]
        assert time.monotonic() < until_s
        time.sleep(0.02)


def test_both_locks_are_held_and_released_after_a_kill(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    environment = {**os.environ, PLANTED_PID: str(pid_file), "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], cwd=ROOT, env=environment)
    try:
        wait_until(lambda: pid_file.is_file() and pid_file.read_text())
        runner = int(pid_file.read_text())
        assert not free(FIRST, tmp_path)
        assert not free(SECOND, tmp_path)
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    wait_until(lambda: free(FIRST, tmp_path) and free(SECOND, tmp_path))
    assert not psutil.pid_exists(runner), "the locks are free only when nothing of the job is left"


def test_the_locks_are_taken_in_the_order_of_the_uuids(tmp_path: Path) -> None:
    other = DeviceLock(SECOND.uuid, tmp_path)
    assert other.acquire(lambda holder: None, lambda: False)
    waited: list[tuple[str, Holder | None]] = []
    free_meanwhile: list[bool] = []

    def give_up() -> bool:
        free_meanwhile.append(free(FIRST, tmp_path))
        return True

    with device_locks((FIRST, SECOND), lambda d, h: waited.append((d.uuid, h)), give_up, tmp_path) as held:
        assert held is None
    assert [uuid for uuid, _ in waited] == ["FAKE-A"]
    assert waited[0][1] is not None
    assert free_meanwhile == [True], "the lock of the later UUID is not held while the job waits for the earlier one"
    other.release()
    with device_locks((FIRST, SECOND), lambda d, h: None, give_up, tmp_path) as held:
        assert held is not None
        assert len(held) == 2
        assert not free(FIRST, tmp_path)
    assert free(FIRST, tmp_path)
    assert free(SECOND, tmp_path)
    other.close()


def test_a_runner_that_hangs_is_killed_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLANTED_PID, str(tmp_path / "pid"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    end = run_group(request("hangs"), most_s=1.0, tell=lambda message: None, stop=lambda: False)
    assert end.variant == "hangs"
    assert end.failure is not None
    assert end.failure.stage == "timeout"
    assert end.failure.reasons == (Silent(seconds=1.0),)
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))
    assert not list(tmp_path.glob("kernelviz-workload-*")), "its folder is removed"


def test_a_runner_is_stopped_on_request_and_what_it_sent_stays() -> None:
    heard: list[object] = []
    end = run_group(request("raises", "hangs"), most_s=60.0, tell=heard.append, stop=lambda: any(map(_is_done, heard)))
    assert end.stopped
    assert [m.measurement.case.variant for m in heard if isinstance(m, MeasurementDone)] == ["raises"]


def _is_done(message: object) -> bool:
    return isinstance(message, MeasurementDone)
