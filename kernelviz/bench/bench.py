"""The use cases. `Bench` owns the store and, for each device, one supervisor (worker, queue, device lock)."""

import datetime
import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec

from kernelviz.bench import planning, remote_runs
from kernelviz.bench.availability import Choice
from kernelviz.bench.counters import CounterReading
from kernelviz.bench.history import History
from kernelviz.bench.live import LiveRun
from kernelviz.bench.machine import Machine
from kernelviz.bench.queue_view import QueueView
from kernelviz.bench.runner import Runner
from kernelviz.bench.stored_roofs import stored_roofs
from kernelviz.bench.summaries import Devices, Offer, Progress, RunSummary
from kernelviz.bench.trends import Trends
from kernelviz.bench.tunings import METHOD, Tunings, tuning_plan
from kernelviz.bench.workloads import Workloads, plugins_of_environment
from kernelviz.core import (
    LIVING,
    USUAL_FIGURES,
    BadField,
    Conditions,
    Device,
    Event,
    Inspection,
    Method,
    Plan,
    Problem,
    Roof,
    Run,
    RunRequest,
    Selftest,
    UnknownRun,
    timestamps,
)
from kernelviz.core.notices import Notice
from kernelviz.core.problem import case_key
from kernelviz.hardware.discovery import discover
from kernelviz.hardware.notices import notices
from kernelviz.hardware.telemetry import conditions
from kernelviz.hardware.toolchain import environment_of
from kernelviz.ops import Op, op_named
from kernelviz.store import NotStored, Store
from kernelviz.text import describe_reason
from kernelviz.text.notices import format_notice
from kernelviz.worker import protocol
from kernelviz.worker.limits import Limits
from kernelviz.worker.worker_slot import SESSION

_CONDITIONS_S, _NOTICES_S = 0.5, 5.0


class Bench(QueueView):
    """The use cases of one process. Every method may be called from any thread; a run continues whether or not it is followed."""

    def __init__(
        self,
        store: Store,
        devices: tuple[Device, ...],
        *,
        choice: Choice | None = None,
        session: str = SESSION,
        limits: Limits | None = None,
        lock_directory: Path | None = None,
    ) -> None:
        """`session`, `limits` and `lock_directory` are for tests: see worker.supervisor."""
        self._store, self._choice = store, choice or Choice()
        self._devices = Devices(devices)
        self._runner = Runner(store, self._choice, session=session, limits=limits, lock_directory=lock_directory)
        self.history = History(store, self._runner.settle)
        self.trends = Trends(store, devices)
        self.tunings = Tunings(store, self.ops, devices, self.load)
        self.counters = CounterReading(store, self._runner, self._choice, devices, self.load)
        self.machine = Machine(store, devices, self._working, lock_directory=lock_directory)
        self.workloads = Workloads(store, devices, plugins=plugins_of_environment(), lock_directory=lock_directory)
        self._notices: dict[str, tuple[float, tuple[Notice, ...]]] = {}
        self._looking = threading.Lock()
        self._conditions: dict[str, tuple[float, Conditions]] = {}

    @property
    def closed(self) -> bool:
        return self._runner.closed

    @classmethod
    def open(cls) -> Self:
        """Open the bench that the environment variables describe (see `current`), and mark the runs of ended processes as
        interrupted."""
        plugins = filter(None, os.environ.get("KERNELVIZ_PLUGINS", "").split(os.pathsep))
        choice = Choice(tuple(str(Path(plugin).expanduser().resolve()) for plugin in plugins))
        bench = cls(Store.open(), discover(), choice=choice)
        with suppress(
            NotStored
        ):  # what is stored can be read nevertheless; `unwritable` says why nothing else is possible
            bench.recover()
            bench.history.purge()
            bench.workloads.purge()
        return bench

    # Devices and variants

    def devices(self) -> tuple[Device, ...]:
        """Devices of this machine, GPUs first; ``cpu`` is always there."""
        return tuple(self._devices.values())

    def device(self, device_id: str) -> Device:
        """One device; raises UnknownName."""
        return self._devices[device_id]

    def default_device(self) -> str:
        """``cuda:0`` if there is a usable GPU, otherwise ``cpu``."""
        return next((d.id for d in self._devices.values() if d.kind == "cuda" and d.usable), "cpu")

    def ops(self) -> Mapping[str, Op]:
        """The catalogue with the variants of the server's plug-ins, as the worker described them. A plug-in that is broken at
        present is left out; `health` gives the reason."""
        return self._choice.shared()[0]

    def offers(self, op: str, device_id: str) -> tuple[Offer, ...]:
        """The variants of the op in the order of its ladder, each with whether it can run on that device. Raises UnknownName."""
        return self._choice.offers(op_named(op, self.ops()), self.device(device_id))

    # Measuring

    def plan(self, request: RunRequest) -> Plan:
        """The checked plan of a request. Errors: UnknownName and BadField, which name the field and the nearest valid value."""
        files = tuple(dict.fromkeys((*self._choice.plugins, *planning.plugin_paths(request.plugins))))
        op = op_named(request.op, self._choice.ops(files))
        device = self.device(request.device or self.default_device())
        problems = planning.problems(op, device, request)
        variants, baseline = planning.chosen_variants(
            op, self._choice.offers(op, device), problems, request.variants, request.baseline
        )
        return Plan(problems=problems, variants=variants, baseline=baseline, device=device.id, plugins=files)

    def tuning(self, request: RunRequest, *, configurations: int | None = None, seed: int = 0) -> Plan:
        """The checked plan that tunes the one variant of the request for one problem: with all its configurations, or with that
        many, chosen at random with the seed.

        `run` measures it. When it has finished, its best configuration is stored (`tunings`) and used by later runs. Errors:
        UnknownName and BadField, also for a variant that has nothing to tune or cannot run there.
        """
        plan = self.plan(request)
        (variant,) = request.variants or (plan.baseline,)
        where, op = self._checked(plan)
        for offer in self._choice.offers(op, where):
            refusal = offer.lack or offer.variant.refuses(plan.problems[0])
            if offer.variant.name == variant and refusal is not None:
                raise BadField("variant", variant, str(describe_reason(refusal)))
        return tuning_plan(plan, op, configurations, seed)

    def run(
        self, plan: Plan, method: Method | None = None, *, owner: str = "", title: str = "", by_problem: bool = False
    ) -> str:
        """Store the plan, queue it, and return the id of the run at once. `owner`: who waits (the queue takes turns).

        Without a method, a run measures all usual figures, and a tuning uses the method of `bench.tunings`. The cold times of all
        problems come first, or (`by_problem`) all figures of a problem before the next one, so that each is prepared only once.

        Errors: UnknownName, BadField for a plan or method that cannot be carried out; StoreError.
        """
        method = planning.checked_method(method or (Method(figures=USUAL_FIGURES) if plan.search is None else METHOD))
        device, op = self._checked(plan)
        now = datetime.datetime.now(datetime.UTC)
        roofs = stored_roofs(self._store, device).usable
        run = Run(
            id=f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
            title=title or planning.title_of(plan, device, method),
            created_at=timestamps.iso(now),
            status="queued",
            environment=msgspec.structs.replace(environment_of(device), roofs=roofs),
            method=method,
            plan=plan,
        )
        self._runner.start(run, op, device, owner=owner, by_problem=by_problem)
        return run.id

    def cancel(self, run_id: str) -> None:
        """End the run after its current block. Cases without result get Failure(cancelled). It does nothing if the run has
        ended.

        Errors: UnknownRun; BadField for a run that another process measures.
        """
        live = self._runner.live(run_id)
        if live is None:
            self._runner.settle(run_id)  # waits while another thread begins it
            live = self._runner.live(run_id)
        if live is not None:
            live.cancel()
            return
        row = self._store.runs.row(run_id)
        if row.status in LIVING:
            raise BadField(
                "run", run_id, f"process {row.presence.pid} on {row.presence.host} measures it; cancel it there"
            )

    def discard(self, run_id: str) -> bool:
        """Remove a run for good, for example one that another run has replaced. A run in progress is cancelled first.

        False, and the run stays, if it has been named or annotated, or if another process measures it. True, without effect, if
        there is no such run.
        """
        try:
            self._runner.settle(run_id)
            live = self._runner.live(run_id)  # read before the status, because the run may end in between
            run = self._store.runs.load(run_id)
        except UnknownRun:
            return True
        if run.note or run.title != planning.title_of(run.plan, run.environment.device, run.method):
            return False
        if isinstance(live, LiveRun):
            live.discard()
        elif run.status in LIVING:
            return False
        else:
            self._store.runs.remove(run_id)
        return True

    def resume(self, run_id: str, *, owner: str = "", by_problem: bool = False) -> None:
        """Queue those cases of an ended run that have no result or were cancelled. `by_problem`: see `run`. No effect while
        it runs.

        Errors: UnknownRun; UnknownName if its op or device is not here; BadField if it was measured on another device, or if
        the axes of the op have changed.
        """
        if self._runner.live(run_id) is not None:
            return
        run = self.load(run_id)
        device, op = self._checked(run.plan)
        planning.check_device(run, device)
        planning.check_axes(run.plan, op)
        begun = self._runner.resume(run, op, device, owner=owner, by_problem=by_problem)
        if not begun and self._runner.live(run_id) is None:
            raise BadField("run", run_id, "another process measures it; wait for its end")

    def prepare(self, device_id: str) -> None:
        """See Runner.prepare."""
        self._runner.prepare(self.device(device_id))

    def calibrate(self, device_id: str, *, owner: str = "") -> str:
        """Queue a calibration, and return an id for follow() and progress() (events RoofDone, then RunEnded)."""
        return self._runner.calibrate(self.device(device_id), owner=owner)

    def selftest(self, device_id: str, *, owner: str = "", only: tuple[str, ...] = (), quick: bool = False) -> str:
        """Queue a selftest, and return an id for follow(), progress() and cancel() (events CheckDone, TimelineDone, RunEnded).

        `only`: names of checks, or their beginnings; such a selftest is not stored. `quick`: fewer repetitions. If no check has a
        given name, the selftest ends at once with a message that lists the known names.
        """
        return self._runner.selftest(self.device(device_id), protocol.Selftest(only=only, quick=quick), owner=owner)

    def selftest_result(self, selftest_id: str) -> Selftest | None:
        """The result of a selftest, also while it is in progress. None if it is unknown or has not begun."""
        request = self._runner.request(selftest_id)
        return (request and request.selftest) or self._store.selftests.get(selftest_id)

    def last_selftest(self, device_id: str) -> Selftest | None:
        """The newest complete selftest of that device that is stored."""
        return next(iter(self._store.selftests.newest(self._devices[device_id].uuid, 1)), None)

    def inspect(
        self, problem: Problem, variant: str, device_id: str, *, plugins: tuple[str, ...] = (), owner: str = ""
    ) -> str:
        """Queue the inspection of one case: one call on inputs from a seed, facts of every tensor, and where its outputs differ
        from the reference. Return an id for follow(), progress() and cancel() (events CaseStep, InspectionDone, RunEnded).

        `plugins`: those of the plan of the case. A variant that is already bound on the device is used as it is. Errors:
        UnknownName; BadField with the reason if the case cannot run there.
        """
        device = self.device(device_id)
        files = tuple(dict.fromkeys((*self._choice.plugins, *planning.plugin_paths(plugins))))
        op = op_named(problem.op, self._choice.ops(files))
        op.variant_named(variant)
        return self._runner.inspect(problem, variant, op, device, plugins=files, owner=owner)

    def inspected(self, inspection_id: str) -> Inspection | None:
        """The result of an inspection that this process began. None while it is in progress, or if it has no result."""
        request = self._runner.request(inspection_id)
        return None if request is None else request.inspection

    def inspection(self, problem: Problem, variant: str, device_id: str) -> Inspection | None:
        """The newest inspection of the case on that device. None if it was never inspected, or long ago."""
        return self._store.inspections.get(self.device(device_id).uuid, case_key(problem, variant))

    # Following

    def follow(self, run_id: str, after: int = 0, timeout_s: float | None = None) -> Iterator[tuple[int, Event]]:
        """Events with their sequence number, from `after` on, waiting for new ones. It ends after RunEnded, or if nothing came
        for `timeout_s`. For a run that ended before this process started, it gives only RunEnded. Raises UnknownRun.

        A step or result that a newer one of the same case has replaced is not given to those who begin to follow later. For a
        run that another process measures, results are given as they are stored.
        """
        log = self._runner.log(run_id)
        if log is not None:
            return log.follow(after, timeout_s)
        remote_runs.row(self._store, run_id)  # raises UnknownRun here, not at the first event
        return remote_runs.follow(self._store, run_id, after, timeout_s)

    def progress(self, run_id: str) -> Progress:
        """The present progress of the run. It is fast enough to be called at each redraw. Raises UnknownRun."""
        log = self._runner.log(run_id)
        return remote_runs.progress(self._store, run_id) if log is None else log.progress()

    # Stored runs and roofs

    def load(self, run_id: str) -> Run:
        """The run with all results so far, also one that came with the package. Raises UnknownRun."""
        return self.history.load(run_id)

    def runs(self, limit: int = 50) -> tuple[RunSummary, ...]:
        """The newest runs first. `history` finds, renames, deletes, imports and exports them."""
        return self.history.find(limit=limit)

    def roofs(self, device_id: str) -> tuple[Roof, ...]:
        """The newest usable measurement of each roof of that device; `machine.refused_roofs` says which ones were refused."""
        return stored_roofs(self._store, self.device(device_id)).usable

    def roofs_of(self, run: Run) -> tuple[Roof, ...]:
        """The roofs to compare a run with: those of its own time, or, if the device was calibrated later, the present ones."""
        if run.environment.roofs:
            return run.environment.roofs
        local = next((d for d in self.devices() if d.uuid == run.environment.device.uuid), None)
        return self.roofs(local.id) if local is not None else ()

    # The machine

    def conditions(self, device_id: str) -> Conditions:
        """Clocks, power, temperature and other processes now (NVML; psutil on a CPU). While the device is measured by this
        process, the last reading is given, because reading would disturb the measurement."""
        if self._outdated(device_id, self._conditions.get(device_id), _CONDITIONS_S):
            self._conditions[device_id] = (time.monotonic(), conditions(self.device(device_id)))
        return self._conditions[device_id][1]

    def notices(self, device_id: str) -> tuple[Notice, ...]:
        """The conditions that make measurements on that device worse, with their remedies, the most serious first. Read at most
        once in 5 s, and never while this process measures the device, because that would disturb it."""
        with self._looking:  # sessions that open at once wait for one look
            if self._outdated(device_id, self._notices.get(device_id), _NOTICES_S):
                device, state = self.device(device_id), self._runner.state(device_id).state
                failures = self._store.runs.tracer_failures(device.uuid)
                current = notices(device, failures, self._store.folder, worker=state != "none")
                self._notices[device_id] = time.monotonic(), current
        return (*self.history.unwritable, *self._notices[device_id][1])

    def _outdated(self, device_id: str, known: tuple[float, object] | None, after_s: float) -> bool:
        return known is None or (not self._working(device_id) and time.monotonic() - known[0] > after_s)

    def _working(self, device_id: str) -> bool:
        return self._runner.state(device_id).state == "working"

    def health(self) -> dict[str, object]:
        """The state of the worker of each device, for the health route."""
        states = ((device, self._runner.state(device.id)) for device in self.devices())
        return {
            "status": "closed" if self.closed else "ok",
            "devices": {
                device.id: {"name": device.name, "usable": device.usable, **state.as_health()}
                for device, state in states
            },
            "plugins": list(self._choice.problems) or "ok",
            "store": [str(format_notice(notice)) for notice in self.history.unwritable] or "ok",
        }

    def recover(self) -> list[str]:
        """Mark the runs of ended processes as interrupted, and return their ids."""
        return [*self._store.runs.interrupt_dead(), *self.workloads.recover()]

    def close(self) -> None:
        """Stop the workers. Cases in progress become interrupted."""
        if not self.closed:
            self.machine.close()
            self._runner.close()
            self.workloads.close()
            self._store.close()

    # Checks

    def _checked(self, plan: Plan) -> tuple[Device, Op]:
        """The device and the op of a plan that may come from a file. Raises UnknownName, BadField."""
        if self.closed:
            raise BadField("bench", "closed", "the server is stopping; start it again")
        if not plan.problems or not plan.variants:
            raise BadField("plan", "", "it has no problem or no variant")
        device = self.device(plan.device)
        op = op_named(plan.op, self._choice.ops(plan.plugins))
        for name in (*plan.variants, plan.baseline):
            op.variant_named(name)
        return device, op
