"""What hampers measuring, as the bench tells it: read now and then, and never while the device measures for us."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import sample_runs as samples

from kernelviz.bench import Bench
from kernelviz.bench import bench as room
from kernelviz.core import Device, TracerFailure
from kernelviz.core.notices import Notice
from kernelviz.store import Store


class Machine:
    """Counts how often it is looked at."""

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[TracerFailure, ...], Path | None, bool]] = []

    def notices(
        self, device: Device, tracer_failures: tuple[TracerFailure, ...], data_folder: Path | None, *, worker: bool
    ) -> tuple[Notice, ...]:
        self.asked.append((tracer_failures, data_folder, worker))
        return (Notice("stated", {"text": f"look {len(self.asked)}"}, "disk"),)


def test_the_machine_is_left_alone_while_it_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, now_s, state = Machine(), [100.0], ["none"]
    monkeypatch.setattr(room, "notices", machine.notices)
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    store = Store.open(tmp_path)
    run = samples.run(id="r")
    store.runs.create(run)
    bench = Bench(store, (run.environment.device,))
    monkeypatch.setattr(bench._runner, "state", lambda _: SimpleNamespace(state=state[0]))
    try:
        for at_s, doing, looks in ((100, "none", 1), (101, "ready", 1), (200, "working", 1), (200, "ready", 2)):
            now_s[0], state[0] = at_s, doing
            (notice,) = bench.notices("cuda:0")
            assert notice.data == {"text": f"look {looks}"}
    finally:
        monkeypatch.undo()
        bench.close()
    assert machine.asked == [((), tmp_path, False), ((), tmp_path, True)]
