"""A bench that plays a tuning again that was followed on another machine (tests/gpu/follow_tuning.py): for pages in a browser.

    REHEARSAL=tuning TUNING=FOLDER streamlit run tests/browser/rehearsed_app.py

then open /autotune?run=ID, where ID is the run in FOLDER/run.json.gz. `TUNING_SPEED` (default 10) says how many times as fast.
Results arrive in the order and, divided by the speed, at the times of the recorded events. A result is that of the run's end:
for the configurations that were measured twice, the second one."""

from __future__ import annotations

import gzip
import json
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
from rehearsed_bench import RehearsedBench, _Entry

from kernelviz.core.events import CaseDone, CaseStep, RunEnded, RunQueued
from kernelviz.core.problem import Case
from kernelviz.core.run import Run
from kernelviz.formats import decode


def events(folder: Path) -> list[dict[str, Any]]:
    """The recorded events, each with its seconds since the start."""
    return [json.loads(line) for line in gzip.decompress((folder / "events.jsonl.gz").read_bytes()).splitlines()]


def run(folder: Path) -> Run:
    """The run at its end."""
    return decode(gzip.decompress((folder / "run.json.gz").read_bytes()))


class ReplayedTuning(RehearsedBench):
    """Plays the recorded tuning once from the start of the server; pauses between cancel and resume are left out."""

    def __init__(self, folder: Path, *, speed: float = 10.0) -> None:
        self._recorded = run(folder)
        super().__init__((self._recorded.environment.device,))
        begun = msgspec.structs.replace(self._recorded, results=(), status="running")
        entry = self._entries[begun.id] = _Entry(begun)
        entry.tell(RunQueued(ahead=0))
        self.run_id = begun.id
        threading.Thread(target=self._replay, args=(entry, events(folder), speed), daemon=True).start()

    def _replay(self, entry: _Entry, recorded: list[dict[str, Any]], speed: float) -> None:
        by_case = {result.case.key: result for result in self._recorded.results}
        before_s = recorded[0]["at_s"] if recorded else 0.0
        told: set[str] = set()
        for event in recorded:
            time.sleep(min(max(event["at_s"] - before_s, 0.0), 5.0) / speed)
            before_s = event["at_s"]
            result = by_case.get(event.get("case", ""))
            if result is None:
                continue
            if event["kind"] == "step":
                case = Case(problem=result.problem, variant=result.variant)
                entry.tell(CaseStep(case=case, step=event["step"], fraction=event.get("fraction")))
            elif event["kind"] == "done" and "cancelled" not in event["words"] and result.case.key not in told:
                told.add(result.case.key)
                entry.tell(CaseDone(result=result))
        entry.document = msgspec.structs.replace(self._recorded, status="running")
        entry.tell(RunEnded(status=self._recorded.status))
