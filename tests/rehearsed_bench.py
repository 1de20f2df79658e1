"""A bench that plays results instead of measuring them, at a pace that a test sets: for pages, without device or store."""

from __future__ import annotations

import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import sample_inspections as inspections
import sample_runs as samples

from kernelviz.bench import Bench, Offer, Progress, RunSummary, planning
from kernelviz.bench.counters import CounterReading
from kernelviz.bench.history import History
from kernelviz.bench.machine import Machine
from kernelviz.bench.summaries import UnderWay
from kernelviz.bench.trends import Trends
from kernelviz.bench.tunings import Tunings
from kernelviz.bench.workloads import Workloads
from kernelviz.core.errors import UnknownName, UnknownRun
from kernelviz.core.events import (
    CaseDone,
    CaseStep,
    Event,
    InspectionDone,
    RoofDone,
    RunEnded,
    RunQueued,
    WorkerStarting,
)
from kernelviz.core.inspection import Inspection
from kernelviz.core.notices import Notice
from kernelviz.core.problem import Case, Method, Plan, Problem, case_key
from kernelviz.core.reasons import NeedMissing
from kernelviz.core.request import RunRequest
from kernelviz.core.result import Conditions, Failure, Result, Stage
from kernelviz.core.run import Device, Roof, Run, Status
from kernelviz.formats import shipped_runs
from kernelviz.hardware.notices import unusable
from kernelviz.ops import Op, catalogue, op_named
from kernelviz.store import Store


class _Entry:
    """A run being played: its document, its events so far, and a bell for each new one."""

    def __init__(self, document: Run) -> None:
        self.document = document
        self.events: list[Event] = []
        self.steps: dict[str, CaseStep] = {}
        self.bell = threading.Condition()
        self.cancelled = threading.Event()

    def tell(self, event: Event) -> None:
        with self.bell:
            match event:
                case CaseStep():
                    self.steps[event.case.key] = event
                case CaseDone():
                    self.steps.pop(event.result.case.key, None)
                    self.document = msgspec.structs.replace(
                        self.document, results=(*self.document.results, event.result)
                    )
                case RunEnded():
                    self.document = msgspec.structs.replace(self.document, status=event.status)
            self.events.append(event)
            self.bell.notify_all()


class RehearsedBench(Bench):
    """Plays each case: quick variants after `case_s`, late ones after `compile_s` of compiling; `faults` fail instead."""

    def prepare(self, device_id: str) -> None:
        """It has no workers."""

    def __init__(
        self,
        devices: tuple[Device, ...] = (samples.CPU,),
        *,
        case_s: float = 0.0,
        compile_s: float = 0.0,
        faults: Mapping[str, tuple[Stage, str]] | None = None,
        stored: tuple[Run, ...] = (),
        roofs: tuple[Roof, ...] = (),
        ops: Callable[[], Mapping[str, Op]] = catalogue,
    ) -> None:
        self._devices, self._ops = devices, ops
        self.case_s, self.compile_s = case_s, compile_s
        self.method = Method()
        self._faults = dict(faults or {})
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.history = History(Store(f"sqlite:///{self._folder.name}/runs.db"))
        self.machine = Machine(self.history._store, devices, lambda _: False)
        # It says whether counters can be read, and reads none: that needs a runner and the choice of plug-ins.
        self.counters = CounterReading(self.history._store, None, None, devices, self.load)  # type: ignore[arg-type]
        self.trends = Trends(self.history._store, devices)
        self.workloads = Workloads(self.history._store, devices)
        self.tunings = Tunings(self.history._store, ops, devices, self.load)
        self._roofs = roofs
        self._entries: dict[str, _Entry] = {}
        self._looked: dict[tuple[str, str], Inspection] = {}
        for document in stored:
            self._entries[document.id] = _Entry(document)
            self._entries[document.id].tell(RunEnded(status=document.status))

    def devices(self) -> tuple[Device, ...]:
        return self._devices

    def device(self, device_id: str) -> Device:
        for found in self._devices:
            if found.id == device_id:
                return found
        raise UnknownName("device", device_id, [d.id for d in self._devices])

    def default_device(self) -> str:
        return self._devices[0].id

    def ops(self) -> Mapping[str, Op]:
        return self._ops()

    def offers(self, op: str, device_id: str) -> tuple[Offer, ...]:
        kind = self.device(device_id).kind
        lack = NeedMissing(text="needs an NVIDIA GPU; this machine has none")
        return tuple(
            Offer(v, lack if kind != "cuda" and "cuda" in v.needs else None) for v in op_named(op, self.ops()).variants
        )

    def plan(self, request: RunRequest) -> Plan:
        op = op_named(request.op, self.ops())
        device = self.device(request.device or self.default_device())
        problems = planning.problems(op, device, request)
        offers = self.offers(op.name, device.id)
        names, base = planning.chosen_variants(op, offers, problems, request.variants, request.baseline)
        return Plan(problems=problems, variants=names, baseline=base, device=device.id)

    def run(self, plan: Plan, method: Method | None = None, *, owner: str = "", title: str = "") -> str:
        run_id = uuid.uuid4().hex[:10]
        device = self.device(plan.device)
        document = samples.run([], id=run_id, device=device, roofs=self._roofs, status="queued", title=title)
        document = msgspec.structs.replace(document, plan=plan, method=planning.checked_method(method or Method()))
        entry = self._entries[run_id] = _Entry(document)
        entry.tell(RunQueued(ahead=0))
        threading.Thread(target=self._play, args=(entry, device), daemon=True).start()
        return run_id

    def _play(self, entry: _Entry, device: Device) -> None:
        plan = entry.document.plan
        entry.tell(WorkerStarting(reason="first run"))
        entry.document = msgspec.structs.replace(entry.document, status="running")
        late = {v.name for v in op_named(plan.op).variants if v.slow_compile}
        status: Status = "finished"
        have = {r.case.key for r in entry.document.results}
        for case in sorted((c for c in plan.cases() if c.key not in have), key=lambda c: c.variant in late):
            if not self._play_case(entry, case, device, compiling=case.variant in late):
                status = "cancelled"
                break
        entry.tell(RunEnded(status=status))

    def _play_case(self, entry: _Entry, case: Case, device: Device, *, compiling: bool) -> bool:
        entry.tell(CaseStep(case=case, step="compiling" if compiling else "binding"))
        if entry.cancelled.wait(self.compile_s if compiling else self.case_s):
            entry.tell(
                CaseDone(result=samples.failed(case.problem, case.variant, "cancelled", "cancelled by its owner"))
            )
            return False
        entry.tell(CaseStep(case=case, step="measuring"))
        if case.variant in self._faults:
            stage, message = self._faults[case.variant]
            entry.tell(CaseDone(result=samples.failed(case.problem, case.variant, stage, message)))
        else:
            again = case.variant == entry.document.plan.baseline
            share = samples.LADDER.get(case.variant, 0.7)
            self.method = entry.document.method
            entry.tell(CaseDone(result=self._result(case, share, device, again=again)))
        return True

    def _result(self, case: Case, share: float, device: Device, *, again: bool) -> Result:
        return samples.timed(case.problem, case.variant, share, device=device, again=again)

    def _entry(self, run_id: str) -> _Entry:
        try:
            return self._entries[run_id]
        except KeyError:
            raise UnknownRun(run_id) from None

    def cancel(self, run_id: str) -> None:
        self._entry(run_id).cancelled.set()

    def discard(self, run_id: str) -> bool:
        entry = self._entries.pop(run_id, None)
        if entry is not None:
            entry.cancelled.set()
        return True

    def resume(self, run_id: str, *, owner: str = "") -> None:
        entry = self._entry(run_id)
        entry.cancelled.clear()
        kept = tuple(r for r in entry.document.results if not isinstance(r.outcome, Failure))
        entry.document = msgspec.structs.replace(entry.document, results=kept, status="queued")
        device = self.device(entry.document.plan.device)
        threading.Thread(target=self._play, args=(entry, device), daemon=True).start()

    def follow(self, run_id: str, after: int = 0, timeout_s: float | None = None) -> Iterator[tuple[int, Event]]:
        entry = self._entry(run_id)
        sequence = after
        while True:
            with entry.bell:
                while len(entry.events) <= sequence:
                    if not entry.bell.wait(timeout_s):
                        return
                event = entry.events[sequence]
            sequence += 1
            yield sequence, event
            if isinstance(event, RunEnded):
                return

    def progress(self, run_id: str) -> Progress:
        entry = self._entry(run_id)
        with entry.bell:
            results = entry.document.results
            last = entry.events[-1] if entry.events else None
            return Progress(
                status=entry.document.status,
                done=len(results),
                failed=sum(isinstance(r.outcome, Failure) for r in results),
                total=len(entry.document.plan.cases()),
                ahead=0,
                message=last.message if isinstance(last, RunEnded) else "",
                steps=dict(entry.steps),
                sequence=len(entry.events),
            )

    def load(self, run_id: str) -> Run:
        return shipped_runs.load(run_id) if run_id in shipped_runs.names() else self._entry(run_id).document

    def runs(self, limit: int = 50) -> tuple[RunSummary, ...]:
        documents = [
            e.document for e in self._entries.values() if not e.document.id.startswith(("calibration", "inspection-"))
        ]
        return tuple(RunSummary(**msgspec.structs.asdict(shipped_runs.line_of(d))) for d in reversed(documents))[:limit]

    def roofs(self, device_id: str) -> tuple[Roof, ...]:
        return self._roofs

    def calibrate(self, device_id: str, *, owner: str = "") -> str:
        document = samples.run([], id="calibration", device=self.device(device_id), roofs=(), status="running")
        entry = self._entries["calibration"] = _Entry(document)
        self._roofs = (
            Roof(name="copy", bandwidth_bytes_per_s=2.2e10, measured_at=time.strftime("%Y-%m-%dT%H:%M:%S+00:00")),
        )
        entry.tell(RoofDone(roof=self._roofs[0]))
        entry.tell(RunEnded(status="finished"))
        return "calibration"

    def inspect(
        self, problem: Problem, variant: str, device_id: str, *, plugins: tuple[str, ...] = (), owner: str = ""
    ) -> str:
        """Right, unless `faults` names the variant: ``wrong`` has wrong columns, any other stage breaks off with its message."""
        job = f"inspection-{uuid.uuid4().hex[:8]}"
        device = self.device(device_id)
        entry = self._entries[job] = _Entry(samples.run([], id=job, device=device, roofs=(), status="running"))
        threading.Thread(target=self._look, args=(entry, problem, variant), daemon=True).start()
        return job

    def _look(self, entry: _Entry, problem: Problem, variant: str) -> None:
        where = entry.document.environment
        entry.tell(CaseStep(case=Case(problem=problem, variant=variant), step="checking", fraction=0.25))
        stage, message = self._faults.get(variant, ("", ""))
        if entry.cancelled.wait(self.case_s):
            entry.tell(RunEnded(status="cancelled"))
        elif stage not in ("", "wrong"):
            entry.tell(RunEnded(status="interrupted", message=message))
        else:
            made = (inspections.wrong_tile if stage else inspections.right)(problem, variant, where)
            self._looked[(where.device.id, made.case_key)] = made
            entry.tell(InspectionDone(inspection=made))
            entry.tell(RunEnded(status="finished"))

    def inspected(self, inspection_id: str) -> Inspection | None:
        told = [e.inspection for e in self._entry(inspection_id).events if isinstance(e, InspectionDone)]
        return told[-1] if told else None

    def inspection(self, problem: Problem, variant: str, device_id: str) -> Inspection | None:
        return self._looked.get((device_id, case_key(problem, variant)))

    def conditions(self, device_id: str) -> Conditions:
        if self.device(device_id).kind == "cpu":
            return Conditions(threads=2)
        return Conditions(sm_clock_hz=1.98e9, power_w=131.0, temperature_c=37.0, other_processes=0)

    def notices(self, device_id: str) -> tuple[Notice, ...]:
        found = unusable(self.device(device_id))
        return (found,) if found else ()

    def ahead_of(self, owner: str, device_id: str) -> int:
        return 0

    def under_way(self, device_id: str) -> UnderWay | None:
        return None

    def health(self) -> dict[str, object]:
        return {"status": "ok", "devices": {d.id: {"state": "idle"} for d in self._devices}}

    def close(self) -> None:
        self.machine.close()
        for entry in self._entries.values():
            entry.cancelled.set()


ROOT = Path(__file__).parents[1]
