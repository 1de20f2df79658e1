"""Use cases of workloads: list, plan, measure, follow, cancel, resume, and the history of their runs."""

import datetime
import hashlib
import importlib.util
import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from kernelviz.bench.workload_history import MARK, TITLE_CHARACTERS, WorkloadHistory, short_enough
from kernelviz.bench.workload_live import LiveWorkload, WorkloadState
from kernelviz.bench.workload_plan import WorkloadRequest, plan_of, title_of
from kernelviz.core import LIVING, BadField, Device, check_name, timestamps
from kernelviz.core.workload import Workload, WorkloadCaseDone, WorkloadEnded, WorkloadEvent, WorkloadPlan, WorkloadRun
from kernelviz.hardware import cpu
from kernelviz.hardware.toolchain import environment_of
from kernelviz.store import Store
from kernelviz.worker.workload_description import describe
from kernelviz.workloads.catalog import workloads

_POLL_S = 0.3


class Workloads(WorkloadHistory):
    """The workloads of one process. Every method may be called from any thread."""

    def __init__(
        self,
        store: Store,
        devices: Sequence[Device],
        *,
        plugins: Sequence[str] = (),
        lock_directory: Path | None = None,
    ) -> None:
        super().__init__(store)
        self._devices, self._plugins = tuple(devices), tuple(plugins)
        self._lock_directory = lock_directory
        self._live: dict[str, LiveWorkload] = {}
        self._lock = threading.RLock()

    # What there is

    def declared(self, plugins: Sequence[str] = ()) -> Mapping[str, Workload]:
        """All workloads by name: those of the package, then those of plug-in files. Errors: BadField for a broken file."""
        files = self._files(plugins)
        own = _described(files, tuple(map(_stamp, files))) if files else ()
        return {name: of.workload for name, of in workloads().items()} | {w.name: w for w in own}

    def named(self, name: str, plugins: Sequence[str] = ()) -> Workload:
        """The workload of that name. Errors: UnknownName."""
        known = self.declared(plugins)
        check_name("workload", name, known)
        return known[name]

    def _files(self, plugins: Sequence[str]) -> tuple[str, ...]:
        given = tuple(str(Path(p).expanduser().resolve()) for p in (*self._plugins, *plugins))
        for path in given:
            if not Path(path).is_file():
                raise BadField("plug-in", path, "there is no such file")
        return tuple(dict.fromkeys(given))

    # Measuring

    def plan(self, request: WorkloadRequest) -> WorkloadPlan:
        """The checked plan of a request. Errors: UnknownName, BadField."""
        workload = self.named(request.workload, request.plugins)
        plan = plan_of(workload, request, self._devices)
        return msgspec.structs.replace(plan, plugins=self._files(request.plugins))

    def run(self, plan: WorkloadPlan, *, owner: str = "", title: str = "") -> str:
        """Store the plan, begin to measure it as soon as its devices are free, and return the id of the run at once. Errors:
        UnknownName, BadField, StoreError."""
        workload = self.named(plan.workload, plan.plugins)
        by_id = {d.id: d for d in self._devices}
        devices = tuple(by_id[name] for name in plan.devices)
        now = datetime.datetime.now(datetime.UTC)
        environment = environment_of(devices[0], ("torch", "triton", "nvidia-nccl-cu13", "nvidia-nccl-cu12"))
        run = WorkloadRun(
            id=f"{MARK}{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
            title=short_enough("title", title, TITLE_CHARACTERS)
            or title_of(workload, plan, devices)[:TITLE_CHARACTERS],
            created_at=timestamps.iso(now),
            status="queued",
            # Part of a workload runs on the host, such as loading data for a GPU.
            environment=msgspec.structs.replace(environment, threads=cpu.threads()),
            devices=devices,
            declared=workload,
            plan=plan,
        )
        with self._lock:
            self._store.workloads.create(run, owner=owner)
            self._begin(run)
        return run.id

    def _begin(self, run: WorkloadRun) -> None:
        digest = source_digest(run.plan.workload, run.plan.plugins)
        live = LiveWorkload(run, self._store, source_digest=digest, lock_directory=self._lock_directory)
        self._live[run.id] = live
        live.start()

    def cancel(self, run_id: str) -> None:
        """End the run; results so far stay, and the process that measures is killed. No effect if it has ended. Errors:
        UnknownRun; BadField for a run that another process measures."""
        live = self._living(run_id)
        if live is not None:
            live.cancel()
            return
        row = self._store.workloads.row(run_id)
        if row.status in LIVING:
            where = f"process {row.presence.pid} on {row.presence.host}"
            raise BadField("run", run_id, f"{where} measures it; cancel it there")

    def resume(self, run_id: str, *, owner: str = "") -> None:
        """Measure the cases of a cancelled or interrupted run that have no result. No effect while it runs. Errors: UnknownRun,
        UnknownName; BadField if its devices are not here, or if another process measures it."""
        with self._lock:
            if self._living(run_id) is not None:
                return
            run = self.load(run_id)
            if self.summary(run_id).shipped:
                raise BadField("run", run_id, "it came with the package; start a new run of the same plan")
            here = {d.id: d.uuid for d in self._devices}
            for device in run.devices:
                if here.get(device.id) != device.uuid:
                    raise BadField(
                        "run", run_id, f"it was measured on {device.name} ({device.uuid}), which is not here"
                    )
            self._same_cases(run)
            if not self._store.workloads.claim(run_id):
                raise BadField("run", run_id, "another process measures it; wait for its end")
            given_up = [r.case.key for r in run.results if r.given_up]
            self._store.workloads.drop(run_id, given_up)
            with_result = tuple(r for r in run.results if not r.given_up)
            # A run that was imported names no files: the workload is one of the server's.
            plan = msgspec.structs.replace(run.plan, plugins=self._files(run.plan.plugins))
            self._begin(msgspec.structs.replace(run, plan=plan, results=with_result))

    def _same_cases(self, run: WorkloadRun) -> None:
        """Errors: UnknownName, BadField if the workload here has other axes or variants."""
        workload = self.named(run.plan.workload, run.plan.plugins)
        known = {variant.name for variant in workload.variants}
        if {a.name for a in workload.axes} != {a.name for a in run.declared.axes} or not known >= set(
            run.plan.variants
        ):
            raise BadField("run", run.id, "the workload has changed since; start a new run")

    def _living(self, run_id: str) -> LiveWorkload | None:
        live = self._live.get(run_id)
        return live if live is not None and live.log.state().status in LIVING else None

    def progress(self, run_id: str) -> WorkloadState:
        """Where the run is. Errors: UnknownRun."""
        live = self._live.get(run_id)
        if live is not None:
            return live.log.state()
        run = self.summary(run_id)
        return WorkloadState(run.status, run.done, run.failed, run.cases, None, "", run.done)

    def follow(
        self, run_id: str, after: int = 0, timeout_s: float | None = None
    ) -> Iterator[tuple[int, WorkloadEvent]]:
        """Events with their number, from `after` on, until the run has ended or nothing came for `timeout_s`. Of a run that
        another process measures: its results as they are stored. Errors: UnknownRun."""
        live = self._live.get(run_id)
        return self._stored(run_id, after, timeout_s) if live is None else live.log.follow(after, timeout_s)

    def _stored(self, run_id: str, after: int, timeout_s: float | None) -> Iterator[tuple[int, WorkloadEvent]]:
        seen, heard_s = after, time.monotonic()
        while True:
            run = self.load(run_id)
            for number, result in enumerate(run.results[seen:], seen + 1):
                seen, heard_s = number, time.monotonic()
                yield number, WorkloadCaseDone(result=result)
            if run.status not in LIVING:
                yield seen + 1, WorkloadEnded(status=run.status)
                return
            if timeout_s is not None and time.monotonic() - heard_s >= timeout_s:
                return
            time.sleep(_POLL_S)

    def recover(self) -> list[str]:
        """Mark the runs of ended processes as interrupted, and return their ids."""
        return self._store.workloads.interrupt_dead()

    def close(self) -> None:
        """Stop measuring; runs in progress become interrupted."""
        for live in list(self._live.values()):
            live.close()


def source_digest(workload: str, plugins: Sequence[str] = ()) -> str | None:
    """A hash of the files in which a workload is written: its module or folder, or the plug-in files; None if unknown."""
    declared = workloads().get(workload)
    files = [Path(p) for p in plugins]
    if declared is not None:
        spec = importlib.util.find_spec(declared.module)
        origin = None if spec is None or spec.origin is None else Path(spec.origin)
        if origin is None:
            return None
        files = sorted(origin.parent.rglob("*.py")) if origin.name == "__init__.py" else [origin]
    sha256 = hashlib.sha256()
    try:
        for file in files:
            sha256.update(file.read_bytes())
    except OSError:
        return None
    return sha256.hexdigest()[:16]


@lru_cache(maxsize=16)
def _described(files: tuple[str, ...], stamps: tuple[object, ...]) -> tuple[Workload, ...]:
    """What plug-in files declare; read again when a file has changed."""
    return describe(files)


def _stamp(path: str) -> object:
    status = Path(path).stat()
    return status.st_mtime_ns, status.st_size


def plugins_of_environment() -> tuple[str, ...]:
    """The files with workloads of the user's own that KERNELVIZ_WORKLOADS names, separated as in PATH."""
    return tuple(filter(None, os.environ.get("KERNELVIZ_WORKLOADS", "").split(os.pathsep)))
