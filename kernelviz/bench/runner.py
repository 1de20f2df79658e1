"""The runs, calibrations, selftests and inspections of this process: they are queued, measured, followed and cancelled here."""

from __future__ import annotations

import secrets
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

import msgspec

from kernelviz.bench.availability import Choice
from kernelviz.bench.compile_ahead import with_upcoming
from kernelviz.bench.event_log import EventLog
from kernelviz.bench.live import LiveCounters, LiveRequest, LiveRun, logged, run_lock
from kernelviz.bench.run_requests import (
    configurations_of,
    final_request,
    groups_of,
    lacks_figures,
    most_together,
    request_of,
    with_following,
)
from kernelviz.bench.tunings import Chosen, conclude
from kernelviz.core import (
    LIVING,
    BadField,
    Device,
    Failure,
    Problem,
    Result,
    Run,
    UnknownRun,
)
from kernelviz.core.errors import one_line
from kernelviz.core.problem import case_key
from kernelviz.core.reasons import Refusal
from kernelviz.ops import Op
from kernelviz.ops.catalog.outcome import failed
from kernelviz.store import Store
from kernelviz.text import describe_reason
from kernelviz.worker import protocol
from kernelviz.worker.counting import Count
from kernelviz.worker.limits import Limits
from kernelviz.worker.request import Request
from kernelviz.worker.supervisor import Supervisor
from kernelviz.worker.worker_slot import SESSION
from kernelviz.worker.worker_state import WorkerState

# Ended runs whose events stay in memory, for followers that come late. The events of older ones are read from the store.
_ENDED_LOGS = 32
_shared = threading.Lock()
_NO_WORKER = WorkerState(state="none", run_id=None, owner=None, queued=0, workers_started=0, last_trouble="")
# All runners of the process, because a run that another runner measures was not left behind.
_runners: weakref.WeakSet[Runner] = weakref.WeakSet()


class Runner:
    """One supervisor for each device, started with its first work, and what they measure. Thread-safe."""

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
        self._live: dict[str, LiveRun | LiveRequest] = {}
        self.closed = False
        with _shared:
            _runners.add(self)

    def settle(self, run_id: str) -> None:
        """Mark a run as interrupted that this process left as running, as when its end could not be stored. Raises UnknownRun."""
        with run_lock(self._store.url, run_id):
            under_way = self._under_way(run_id)  # read before the row, because the run may end in between
            row = self._store.runs.row(run_id)
            if row.status in LIVING and self._store.runs.is_own(row) and not under_way:
                self._store.runs.set_status(run_id, "interrupted")

    def _under_way(self, run_id: str) -> bool:
        """Whether any runner of this process measures it."""
        with _shared:
            runners = list(_runners)
        return any(r._store.url == self._store.url and r.live(run_id) is not None for r in runners)

    def start(self, run: Run, op: Op, device: Device, *, owner: str, by_problem: bool = False) -> None:
        """Store a run and queue its cases. Cases that cannot run here fail at once, without a worker. `by_problem`: see
        Bench.run."""
        with run_lock(self._store.url, run.id):
            self._store.runs.create(run, owner=owner)
            with self._or_interrupted(run.id):
                self._begin(run, op, device, owner, frozenset(), by_problem=by_problem)

    def resume(self, run: Run, op: Op, device: Device, *, owner: str, by_problem: bool = False) -> bool:
        """Queue the cases of a stored run that have no result or were cancelled. False if the run is being measured."""
        with run_lock(self._store.url, run.id):
            self.settle(run.id)
            if not self._store.runs.claim(run.id):
                return False
            with self._or_interrupted(run.id):
                # Read again, now that nobody else writes: another process may have measured some of it up to now.
                stored = msgspec.structs.replace(self._store.runs.load(run.id), status=run.status)
                void = frozenset(r.case.key for r in stored.results if r.given_up)
                self._store.results.drop(run.id, void)
                self._begin(stored, op, device, owner, void, by_problem=by_problem)
        return True

    @contextmanager
    def _or_interrupted(self, run_id: str) -> Iterator[None]:
        """Mark the run as interrupted if it cannot be queued."""
        try:
            yield
        except Exception as error:
            live = self.live(run_id)
            if isinstance(live, LiveRun):
                live.break_off(one_line(error))
            else:
                with logged(run_id, "could not be marked as interrupted"):  # `settle` will
                    self._store.runs.set_status(run_id, "interrupted")
            raise

    def _begin(self, run: Run, op: Op, device: Device, owner: str, void: frozenset[str], *, by_problem: bool) -> None:
        """Queue the cases that have no result. `void`: keys of cases whose stored result has just been dropped."""
        results = {r.case.key: r for r in run.results if r.case.key not in void}
        failures = {k: isinstance(r.outcome, Failure) and not r.outcome.unavailable for k, r in results.items()}
        with self._lock:
            earlier = self._live.get(run.id)
        log = EventLog(len(run.plan.cases()), failures) if earlier is None else earlier.log
        live = LiveRun(run, op, self._store, log)
        unavailable, requests = self._requests(run, live, op, device, owner, results, by_problem=by_problem)
        supervisor = self._supervisor(device)
        live.abandon = lambda: supervisor.cancel(run.id)
        if run.plan.search is not None:
            live.conclude = lambda: conclude(self._store, run.id)
        with self._lock:
            # Under one lock, so that a cancel finds either the end of the earlier requests or the new ones.
            log.reopen(void, failures)
            self._register(live)
        live.put(unavailable)
        live.expect(len(requests))
        supervisor.submit(requests)
        if live.cancelled:  # cancelled before its requests were in the queue
            live.cancel()

    def _requests(
        self,
        run: Run,
        live: LiveRun,
        op: Op,
        device: Device,
        owner: str,
        results: Mapping[str, Result],
        *,
        by_problem: bool,
    ) -> tuple[list[Result], list[Request]]:
        """The results of the cases that cannot run here, and the requests for the others, in the order of measuring."""
        chosen = Chosen(self._store, device, op)
        unavailable: list[Result] = []
        # Of each problem: variants that compile quickly, those that compile for seconds, and the secondary timings.
        of_problems: list[tuple[list[Request], list[Request], list[Request]]] = []
        for problem in run.plan.problems:
            tuned = configurations_of(chosen, results, problem, run.plan.variants)
            refusals = {name: self._refusal(op, name, problem, device) for name in run.plan.variants}
            able = [name for name, refusal in refusals.items() if refusal is None]
            unavailable += [
                failed(op, problem, name, Failure(stage="unavailable", reasons=(refusal,)))
                for name, refusal in refusals.items()
                if refusal is not None and case_key(problem, name) not in results
            ]
            fresh = [name for name in able if case_key(problem, name) not in results]
            # Variants that compile for seconds come after all sizes of the others, except a baseline, which is needed from the
            # start. With one problem, the worker decides, because it knows what is compiled.
            several = len(run.plan.problems) > 1 and not by_problem
            slow = [n for n in fresh if several and op.variant_named(n).slow_compile and n != run.plan.baseline]
            most = most_together(op, problem, device)
            quick_requests, slow_requests = (
                [request_of(run, live, problem, group, owner, tuned) for group in groups_of(names, most)]
                for names in ([n for n in fresh if n not in slow], slow)
            )
            if run.plan.search is not None and run.status != "finished":
                slow_requests.append(final_request(run, live, problem, owner, self._store))
            lacking = tuple(
                n for n in able if lacks_figures(results.get(case_key(problem, n)), run.method, device.kind)
            )
            later_requests = [request_of(run, live, problem, lacking, owner, tuned, later=True)] if lacking else []
            of_problems.append((quick_requests, slow_requests, later_requests))
        parts = chain.from_iterable(of_problems if by_problem else zip(*of_problems, strict=True))
        requests = with_following(list(chain.from_iterable(parts)))
        if by_problem:
            requests = [replace(request, later=False) for request in requests]
        if device.kind == "cuda" and run.method.compiles_ahead:
            requests = with_upcoming(requests)
        return unavailable, requests

    def calibrate(self, device: Device, *, owner: str) -> str:
        """Queue a calibration, and return the name under which it can be followed."""
        live = LiveRequest(f"calibration-{secrets.token_hex(4)}", self._store)
        return self._submit_alone(device, live, owner, protocol.Calibrate(), self._choice.plugins)

    def selftest(self, device: Device, work: protocol.Selftest, *, owner: str) -> str:
        """Queue a selftest, and return the name under which it can be followed, which is its id in the store."""
        live = LiveRequest(f"selftest-{secrets.token_hex(6)}", self._store, stored=not work.only)
        return self._submit_alone(device, live, owner, work, self._choice.plugins)

    def inspect(
        self, problem: Problem, name: str, op: Op, device: Device, *, plugins: tuple[str, ...], owner: str
    ) -> str:
        """Queue an inspection, and return the name under which it can be followed. Raises BadField if the case cannot run
        there."""
        reason = self._refusal(op, name, problem, device)
        if reason is not None:
            raise BadField("variant", name, str(describe_reason(reason)))
        live = LiveRequest(f"inspection-{secrets.token_hex(6)}", self._store)
        tuned = Chosen(self._store, device, op).of(problem, (name,))
        return self._submit_alone(
            device, live, owner, protocol.Inspect(problem=problem, variant=name, tuned=tuned), plugins
        )

    def count(self, device: Device, live: LiveCounters, work: Count, plugins: tuple[str, ...], *, owner: str) -> str:
        """Queue a reading of hardware counters, and return the name under which it can be followed."""
        return self._submit_alone(device, live, owner, work, plugins)

    def live(self, run_id: str) -> LiveRun | LiveRequest | None:
        """The run, calibration, selftest or inspection, if it is under way in this process."""
        with self._lock:
            live = self._live.get(run_id)
        return None if live is None or live.log.ended else live

    def request(self, name: str) -> LiveRequest | None:
        """A calibration, selftest or inspection of this process, also one that has ended."""
        with self._lock:
            live = self._live.get(name)
        return live if isinstance(live, LiveRequest) else None

    def log(self, run_id: str) -> EventLog | None:
        """The events of a run that this process measures or measured last, also of one that has been deleted since. None if
        another process has resumed it since, whether that is in progress or has ended."""
        with self._lock:
            live = self._live.get(run_id)
        if live is None or not live.log.ended or not isinstance(live, LiveRun):
            return None if live is None else live.log
        try:
            row = self._store.runs.row(run_id)
        except UnknownRun:
            return live.log
        if not self._store.runs.is_own(row):
            return None
        if row.status in LIVING:  # its end could not be stored, or another runner of this process continues it
            return None if self._under_way(run_id) else live.log
        return live.log if row.status == live.log.progress().status else None

    def state(self, device_id: str) -> WorkerState:
        """The state of the worker of the device."""
        supervisor = self._supervisors.get(device_id)
        return _NO_WORKER if supervisor is None else supervisor.state()

    def ahead_of(self, owner: str, device_id: str) -> int:
        """The number of requests that the device does before a new one of that owner."""
        supervisor = self._supervisors.get(device_id)
        return 0 if supervisor is None else supervisor.ahead_of(owner)

    def close(self) -> None:
        """Stop all workers. What is under way becomes interrupted."""
        with self._lock:
            self.closed = True
            supervisors = list(self._supervisors.values())
        for supervisor in supervisors:
            supervisor.close()

    def _refusal(self, op: Op, name: str, problem: Problem, device: Device) -> Refusal | None:
        variant = op.variant_named(name)
        return self._choice.lack(variant, device) or variant.refuses(problem)

    def prepare(self, device: Device) -> None:
        """Start the worker of a GPU, if it never had one, so that the first run need not wait for it (5 s on an H200). Does not
        wait. A processor's starts with its first run, and so does that of a GPU on which another process measures."""
        with self._lock:
            if device.kind == "cuda" and device.usable and not self.closed and device.id not in self._supervisors:
                self._supervisor(device, prepare=True)

    def _supervisor(self, device: Device, *, prepare: bool = False) -> Supervisor:
        with self._lock:
            if self.closed:
                raise BadField("bench", "closed", "the server is stopping; start it again")
            if device.id not in self._supervisors:
                self._supervisors[device.id] = Supervisor(
                    device,
                    session=self._session,
                    limits=self._limits,
                    lock_directory=self._lock_directory,
                    prepare=prepare,
                )
            return self._supervisors[device.id]

    def _submit_alone(
        self,
        device: Device,
        live: LiveRequest,
        owner: str,
        work: protocol.Calibrate | protocol.Selftest | protocol.Inspect | Count,
        plugins: tuple[str, ...],
    ) -> str:
        """Queue a request that is no part of a run, and return the name under which it can be followed."""
        supervisor = self._supervisor(device)
        live.abandon = lambda: supervisor.cancel(live.name)
        self._register(live)
        supervisor.submit([Request(run_id=live.name, owner=owner, sink=live, plugins=plugins, work=work)])
        return live.name

    def _register(self, live: LiveRun | LiveRequest) -> None:
        with self._lock:
            self._live.pop(live.name, None)
            for name in [name for name, one in self._live.items() if one.log.ended][:-_ENDED_LOGS]:
                del self._live[name]
            self._live[live.name] = live
