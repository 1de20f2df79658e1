"""Runs under way in this process: queued, measured, followed, cancelled."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from pathlib import Path

from kernelviz.bench.catalogue import Choice
from kernelviz.bench.eventlog import EventLog
from kernelviz.bench.live import LiveCalibration, LiveRun
from kernelviz.core.errors import BadField
from kernelviz.core.problem import Case, Problem
from kernelviz.core.result import Failure, Result
from kernelviz.core.run import LIVING, Device, Run
from kernelviz.ops import Op
from kernelviz.ops.outcome import failed
from kernelviz.store import Store
from kernelviz.worker.item import Item
from kernelviz.worker.limits import Limits
from kernelviz.worker.supervisor import SESSION, Supervisor, WorkerState

_KEPT_LOGS = 32
"""Ended runs whose events stay in memory, for a follower that comes late; older ones are told from the store."""


class Runner:
    """One supervisor a device, started with its first work, and the runs that they measure. Thread-safe."""

    def __init__(
        self,
        store: Store,
        choice: Choice,
        *,
        session: str = SESSION,
        limits: Limits | None = None,
        lock_directory: Path | None = None,
    ) -> None:
        self._store, self._choice = store, choice
        self._session, self._limits, self._lock_directory = session, limits, lock_directory
        self._lock = threading.RLock()
        self._supervisors: dict[str, Supervisor] = {}
        self._logs: OrderedDict[str, EventLog] = OrderedDict()
        self._live: dict[str, LiveRun | LiveCalibration] = {}
        self.closed = False

    def start(self, run: Run, op: Op, device: Device, *, owner: str, void: frozenset[str] = frozenset()) -> None:
        """Queue the cases of a stored run that have no result yet; what cannot run here fails at once, without a worker.

        `void`: keys of cases whose stored result has just been dropped.
        """
        results = {r.case.key: r for r in run.results if r.case.key not in void}
        with self._lock:
            log = self._logs.get(run.id)
        if log is None:
            log = EventLog(len(run.plan.cases()), {k: isinstance(r.outcome, Failure) for k, r in results.items()})
        log.reopen(void)
        live = LiveRun(run.id, run.plan, op, self._store, log, run.environment)
        unavailable: list[Result] = []
        items: list[Item] = []
        for problem in run.plan.problems:
            able: list[str] = []
            for name in run.plan.variants:
                if _key(problem, name) in results:
                    continue
                reason = self._refusal(op, name, problem, device)
                if reason is None:
                    able.append(name)
                else:
                    unavailable.append(failed(op, problem, name, Failure(stage="unavailable", message=reason)))
            if able:
                items.append(_item(run, live, problem, tuple(able), owner, results))
        supervisor = self._supervisor(device)
        live.abandon = lambda: supervisor.cancel(run.id)
        self._register(run.id, live)
        live.put(unavailable)
        live.expect(len(items))
        supervisor.submit(items)

    def calibrate(self, device: Device, *, owner: str) -> str:
        """Queue a calibration; the name under which it can be followed."""
        name = f"calibration-{secrets.token_hex(4)}"
        live = LiveCalibration(self._store, device.uuid, EventLog(0))
        supervisor = self._supervisor(device)
        live.abandon = lambda: supervisor.cancel(name)
        self._register(name, live)
        supervisor.submit([Item(run_id=name, owner=owner, sink=live, plugins=self._choice.plugins)])
        return name

    def live(self, run_id: str) -> LiveRun | LiveCalibration | None:
        """The run if it is under way here."""
        with self._lock:
            live = self._live.get(run_id)
        return None if live is None or live.log.ended else live

    def log(self, run_id: str) -> EventLog | None:
        """The events of a run that this process measures or measured last; None when another one resumed it since."""
        with self._lock:
            log, live = self._logs.get(run_id), self._live.get(run_id)
        if log is None or not log.ended or not isinstance(live, LiveRun):
            return log
        return None if self._store.row(run_id).status in LIVING and log.ended else log

    def state(self, device_id: str) -> WorkerState | None:
        """Of the device's supervisor; None before its first work."""
        with self._lock:
            supervisor = self._supervisors.get(device_id)
        return supervisor.state() if supervisor is not None else None

    def close(self) -> None:
        """Stop all workers; what is under way becomes interrupted."""
        with self._lock:
            self.closed = True
            supervisors = list(self._supervisors.values())
        for supervisor in supervisors:
            supervisor.close()

    def _refusal(self, op: Op, name: str, problem: Problem, device: Device) -> str | None:
        variant = op.variant_named(name)
        return self._choice.lack(variant, device) or variant.refuses(problem)

    def _supervisor(self, device: Device) -> Supervisor:
        with self._lock:
            if self.closed:
                raise BadField("bench", "closed", "the server is stopping; start it again")
            if device.id not in self._supervisors:
                self._supervisors[device.id] = Supervisor(
                    device, session=self._session, limits=self._limits, lock_directory=self._lock_directory
                )
            return self._supervisors[device.id]

    def _register(self, name: str, live: LiveRun | LiveCalibration) -> None:
        with self._lock:
            self._live[name] = live
            self._logs[name] = live.log
            self._logs.move_to_end(name)
            ended = [n for n, log in self._logs.items() if log.ended and n != name]
            for old in ended[: max(0, len(ended) - _KEPT_LOGS)]:
                del self._logs[old]
            self._live = {n: one for n, one in self._live.items() if n in self._logs}


def _key(problem: Problem, variant: str) -> str:
    return Case(problem=problem, variant=variant).key


def _item(
    run: Run, live: LiveRun, problem: Problem, variants: tuple[str, ...], owner: str, results: dict[str, Result]
) -> Item:
    base = results.get(_key(problem, run.plan.baseline))
    return Item(
        run_id=run.id,
        owner=owner,
        sink=live,
        problem=problem,
        variants=variants,
        baseline=run.plan.baseline,
        method=run.method,
        plugins=run.plan.plugins,
        known_baseline=base if base is not None and base.timing is not None else None,
    )
