"""`Bench.machine`: the real bench, its monitor, and who measures."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
import sample_runs as samples

from kernelviz.bench.machine import Machine
from kernelviz.core.cache_size import CacheSize
from kernelviz.core.errors import UnknownName
from kernelviz.core.request import RunRequest
from kernelviz.core.run import Device, Roof
from kernelviz.store import Store
from kernelviz.ui.shared.device_strip import format_roofs
from kernelviz.worker.device_lock import DeviceLock, Holder
from tests.bench.bench_of_sessions import GPU, bench_in
from tests.worker.sessions import DEVICE


def test_a_calibration_is_kept_and_the_next_one_stands_before_it(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)
    for _ in range(2):
        list(bench.follow(bench.calibrate("cpu")))
    found = bench.machine.calibrations("cpu")
    assert len(found) == 2
    assert found[0].measured_at >= found[1].measured_at
    assert [r.key for r in found[0].roofs] == [r.key for r in found[1].roofs]
    bench.close()


def test_a_refused_roof_is_in_no_run_and_is_named(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)
    good = Roof(name="copy", level="dram", moved_bytes=2**30, bandwidth_bytes_per_s=2e10, low=1.9e10, high=2.1e10)
    wide = Roof(name="matmul", precision="fp64", rate_flop_per_s=1e9, low=1e8, high=1.3e10)
    with closing(Store.open(tmp_path)) as store:
        for roof in (good, wide):
            store.roofs.put(DEVICE.uuid, roof)
    assert bench.roofs("cpu") == (good,)
    (refused,) = bench.machine.refused_roofs("cpu")
    assert (refused.roof, refused.kind) == (wide, "wide")
    run_id = bench.run(bench.plan(RunRequest(op="add", sizes={"n": "64"}, variants=("a",), device="cpu")))
    list(bench.follow(run_id))
    assert bench.load(run_id).environment.roofs == (good,)
    assert format_roofs((good,), (refused,)).endswith("**1 cannot be used** (matmul fp64, see Device)")
    bench.close()


def test_times_of_the_newest_runs_are_read_without_their_samples(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)
    ids = []
    for sizes in ("64", "64,128"):
        ids.append(bench.run(bench.plan(RunRequest(op="add", sizes={"n": sizes}, variants=("a", "b"), device="cpu"))))
        list(bench.follow(ids[-1]))
    found = bench.machine.run_times("cpu")
    assert [(r.run_id, len(r.times_s)) for r in found] == [(ids[1], 4), (ids[0], 2)]
    assert found[0].times_s[0] == ("a", 1e-6)
    assert len(bench.machine.run_times("cpu", limit=1)) == 1
    bench.history.delete(ids[1])
    assert [r.run_id for r in bench.machine.run_times("cpu")] == [ids[0]]
    bench.close()


def test_the_first_look_begins_to_sample(tmp_path: Path) -> None:
    bench = bench_in(tmp_path, (DEVICE,))
    assert bench.machine.samples("cpu") == ()
    first = next(bench.machine.watch("cpu"))
    assert first.used_bytes
    assert bench.machine.samples("cpu")[0].at_s <= first.at_s
    bench.close()
    assert next(bench.machine.watch("cpu"), None) is None, "a closed bench ends who watches"


def test_the_size_of_the_l2_is_known_before_the_first_run(tmp_path: Path) -> None:
    """NVML does not report it: by name from the data sheet, and what a run reported comes before that."""
    discovered = msgspec.structs.replace(samples.H200, last_level_cache_bytes=None)
    bench = bench_in(tmp_path, (discovered, DEVICE))
    sheet = bench.machine.last_level_cache(discovered)
    assert sheet is not None
    assert (sheet.size_bytes, sheet.source) == (60 * 2**20, "data_sheet")
    assert sheet.document
    bench.history.add(samples.run([], device=msgspec.structs.replace(discovered, last_level_cache_bytes=50 * 2**20)))
    assert bench.machine.last_level_cache(discovered) == CacheSize(size_bytes=50 * 2**20, source="run")
    assert bench.machine.last_level_cache(samples.H200) == CacheSize(size_bytes=60 * 2**20, source="device")
    unknown = msgspec.structs.replace(discovered, name="a card without a data sheet", uuid="GPU-2")
    assert bench.machine.last_level_cache(unknown) is None
    bench.close()


def test_an_unknown_device_is_named(tmp_path: Path) -> None:
    bench = bench_in(tmp_path, (GPU, DEVICE))
    for ask in (bench.machine.samples, bench.machine.watch, bench.machine.calibrations, bench.machine.run_times):
        with pytest.raises(UnknownName, match="cuda:7"):
            ask("cuda:7")
    bench.close()


def _machine(folder: Path, devices: tuple[Device, ...] = (GPU,), *, ours: bool = False) -> Machine:
    return Machine(Store.open(folder), devices, lambda _: ours, lock_directory=folder)


def test_a_measurement_of_another_process_counts_while_that_process_lives(tmp_path: Path) -> None:
    machine = _machine(tmp_path)
    assert not machine._measured_on(GPU)
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    lock = DeviceLock(GPU.uuid, tmp_path)
    assert lock.acquire(lambda _: None, lambda: True)
    assert not machine._measured_on(GPU), "this process is told apart by its own state"
    holder = Holder(pid=other.pid, user="u", command="kernelviz run", since="now")
    os.pwrite(lock.lock_fd(), msgspec.json.encode(holder), 0)
    os.ftruncate(lock.lock_fd(), len(msgspec.json.encode(holder)))
    assert machine._measured_on(GPU)
    other.communicate()
    assert not machine._measured_on(GPU), "who died measures nothing"
    assert _machine(tmp_path, ours=True)._measured_on(GPU)
    lock.close()
