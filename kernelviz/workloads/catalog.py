"""All workloads of this installation and of plug-in files, and the interface between their runners and the worker.

A module or folder of this package declares workloads in ``WORKLOADS``. All of them are imported where pages are served, so that
they import torch only inside of functions. Its runner is called in a process
of its own, which is killed with everything that it started when it crashes, hangs or is cancelled:

    def measure(cases: Sequence[WorkloadCase], context: WorkloadContext) -> Iterable[WorkloadMeasurement]: ...

`cases` are variants at the same values of the axes, the baseline first where it is among them: all variants that can share a
process, or one variant that needs a fresh one. A runner prepares each variant under ``with context.case(case)``, so that an
exception becomes the failure of that case and the others go on, and measures them in interleaved rounds by `context.rounds`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Literal, Protocol

from kernelviz.core.errors import BadField, UnknownName
from kernelviz.core.run import Device
from kernelviz.core.workload import (
    Clock,
    Counted,
    Measured,
    Workload,
    WorkloadCase,
    WorkloadMeasurement,
    WorkloadStep,
)

CollectiveBackend = Literal["nccl", "gloo"]
Sample = float | Mapping[str, float]
"""What one call in a round gives: the value of the headline figure, or the values of several figures by name."""


@dataclass(frozen=True, slots=True)
class Series:
    """The samples of one variant: `samples` by the name of the figure, the round of each of them, and the second series of the
    baseline (`again`, empty for others)."""

    samples: Mapping[str, tuple[float, ...]]
    rounds: tuple[int, ...]
    again: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """A kernel, copy or fill on a GPU, with the device's own stamps in nanoseconds."""

    name: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class TracedCall:
    """What one call ran on a GPU, in the order of the starts, behind a flush of the last-level cache that ended at
    `flush_end_ns`."""

    flush_end_ns: int
    records: tuple[DeviceRecord, ...]

    def busy_s(self, after: int = 0) -> float:
        """Seconds in which something ran, without the first `after` records and without what ran beside them.

        >>> call = TracedCall(0, (DeviceRecord("a", 0, 1000), DeviceRecord("b", 900, 3000)))
        >>> call.busy_s(), call.busy_s(after=1)
        (3e-06, 2e-06)
        """
        total, covered = 0, max([self.flush_end_ns, *(r.end_ns for r in self.records[:after])])
        for record in self.records[after:]:
            total += max(0, record.end_ns - max(record.start_ns, covered))
            covered = max(covered, record.end_ns)
        return total / 1e9


class MeasuringContext(Protocol):
    """What the process of a runner and each rank process offer: a device, clocks, rounds."""

    @property
    def device(self) -> Device:
        """The device of this process; a rank has the device of the plan at its rank."""

    @property
    def torch_device(self) -> str:
        """The name for ``torch.device``, for example ``cuda:1`` or ``cpu``. Of CUDA it is torch's current device already."""

    @property
    def budget_s(self) -> float:
        """Seconds of measuring per case."""

    @property
    def seed(self) -> int:
        """The seed of synthetic data."""

    @property
    def folder(self) -> Path:
        """An empty folder on a disk, removed when the process has ended, however it ended."""

    def progress(self, step: WorkloadStep, variant: str = "", done: int | None = None, of: int | None = None) -> None:
        """Say what happens now. A step that sends nothing for `Workload.most_s` counts as hung."""

    def synchronize(self) -> None:
        """Wait until the device has done everything; no effect on a processor."""

    def timed(self, call: Callable[[], object]) -> float:
        """Seconds of one call: between two CUDA events in the current stream on a GPU, by the host's clock on a processor. The
        device is idle before."""

    def timed_by_host(self, call: Callable[[], object]) -> float:
        """Seconds of one call by the host's clock, from an idle device to the end of its work."""

    @property
    def clock(self) -> Clock:
        """The clock of `timed`."""

    def traced(self, calls: Sequence[Callable[[], object]]) -> tuple[TracedCall, ...]:
        """What each call ran on the GPU, each behind a flush of the last-level cache. The GPU then rests, so that the next calls
        have its burst clock. Not on a processor. Errors: RuntimeError if no tracer works there, or if the records are not
        those of the calls."""

    def rounds(
        self, calls: Mapping[str, Callable[[], Sample]], *, baseline: str | None = None, warm_up: int = 1
    ) -> Mapping[str, Series]:
        """Call each variant once per round, in random order, and the baseline twice; stop when the budget of all is used (but not
        before `rounds_min`) or `rounds_max` is reached. Each call measures itself and returns its sample (by `timed`, say).
        `warm_up`: rounds before the first, which are not kept. A call that raises is the failure of its case: it is left
        out of the answer. In a rank process rank 0 decides how many rounds there are, and all ranks have the same order."""

    def measured(
        self,
        samples: Sequence[float],
        *,
        rounds: Sequence[int] = (),
        again: Sequence[float] = (),
        clock: Clock | None = None,
    ) -> Measured:
        """The median with its 95 % interval. `clock`: that of `timed` unless stated."""

    def counted(self, value: float, clock: Clock = "arithmetic") -> Counted:
        """A counted value."""


class WorkloadContext(MeasuringContext, Protocol):
    """What the worker offers to a runner."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices of the plan: one, or two of which each rank gets one."""

    @property
    def backend(self) -> CollectiveBackend | None:
        """How ranks communicate: NCCL on GPUs, gloo on a processor; None for a workload of one process."""

    def case(self, case: WorkloadCase) -> AbstractContextManager[None]:
        """What is done inside is done for this case: an exception becomes its failure (out of memory, or a crash with the
        exception) and is swallowed; if the process dies, this case killed it, and the others are measured again."""

    def failed(self, case: WorkloadCase) -> bool:
        """Whether the case has a failure already, so that it is not measured."""

    def ranks(self, function: str, arguments: object) -> tuple[Any, ...]:
        """Call ``name(rank_context, arguments)`` in `Workload.ranks` new processes, and return what each returned, by rank.
        `function`: ``module:name``, or ``:name`` in the declaring module. Arguments and answers travel as JSON (msgspec). If a
        rank fails or dies, the others are killed, and `RankFailed` is raised, which `case` turns into the failure of its case."""

    def fresh(self, function: str, arguments: object) -> Any:
        """Call ``name(rank_context, arguments)`` in one new process, a world of one, and return its answer. For what a process
        can do only once (imports, peak resident memory)."""


class RankContext(MeasuringContext, Protocol):
    """What the worker offers to the function of a rank process. The process group is initialised, and destroyed afterwards."""

    @property
    def rank(self) -> int:
        """The rank of this process."""

    @property
    def world_size(self) -> int:
        """How many ranks there are."""

    @property
    def backend(self) -> CollectiveBackend | None:
        """NCCL or gloo; None in a process of `fresh`, which has no process group."""

    def barrier(self) -> None:
        """Wait for all ranks by the host, without a collective on the device."""


Runner = Callable[[Sequence[WorkloadCase], WorkloadContext], Iterable[WorkloadMeasurement]]


class RankFailed(Exception):
    """A rank process ended without an answer. `rank`: which one was first. `kind`: the type of its exception, empty if it died.
    `out_of_memory`: whether the exception says so. `signal`, `exit_code`: how it ended, where it died. `log`: the end of what it
    printed."""

    def __init__(
        self,
        rank: int,
        kind: str = "",
        text: str = "",
        *,
        out_of_memory: bool = False,
        signal: str | None = None,
        exit_code: int | None = None,
        log: str = "",
    ) -> None:
        self.rank, self.kind, self.text, self.out_of_memory = rank, kind, text, out_of_memory
        self.signal, self.exit_code, self.log = signal, exit_code, log
        super().__init__(f"rank {rank}: {kind or signal or 'it ended'}: {text or log}")


@dataclass(frozen=True, slots=True)
class DeclaredWorkload:
    """A workload with the module that declares it."""

    workload: Workload
    module: str

    def function(self, name: str) -> Callable[..., Any]:
        """The function ``module:name`` or ``:name``. Imports its module, so only a worker calls it. Errors: BadField."""
        module, _, function = name.partition(":")
        try:
            collected = getattr(importlib.import_module(module or self.module), function)
        except (ImportError, AttributeError) as error:
            raise BadField("runner", name, f"it cannot be imported: {error}") from error
        if not callable(collected):
            raise BadField("runner", name, "it is no function")
        return collected  # type: ignore[no-any-return]


@functools.cache
def workloads() -> Mapping[str, DeclaredWorkload]:
    """All workloads of the package by name, in the order of their modules and declarations. Imports no torch."""
    collected: dict[str, DeclaredWorkload] = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.name != "catalog":
            collected |= _declared(importlib.import_module(f"kernelviz.workloads.{module.name}"))
    return MappingProxyType(collected)


def with_plugins(paths: Iterable[str]) -> Mapping[str, DeclaredWorkload]:
    """The workloads of the package and those of the files at `paths`, whose code is run. Errors: BadField with the path."""
    collected = dict(workloads())
    for path in paths:
        module = _load(Path(path))
        own = _declared(module)
        if not own:
            raise BadField("plug-in", path, "it declares no workload; write WORKLOADS = (Workload(…),)")
        collected |= own
    return MappingProxyType(collected)


def workload_named(name: str, known: Mapping[str, DeclaredWorkload] | None = None) -> DeclaredWorkload:
    """The workload of that name. Errors: UnknownName with the nearest name."""
    among = workloads() if known is None else known
    try:
        return among[name]
    except KeyError:
        raise UnknownName("workload", name, among) from None


def _declared(module: ModuleType) -> dict[str, DeclaredWorkload]:
    return {w.name: DeclaredWorkload(w, module.__name__) for w in getattr(module, "WORKLOADS", ())}


def _load(path: Path) -> ModuleType:
    """The module of a plug-in file, imported under a name that any process makes of the same path."""
    if not path.is_file():
        raise BadField("plug-in", path, "there is no such file")
    name = "kernelviz_workload_" + "".join(c if c.isalnum() else "_" for c in str(path.resolve().with_suffix("")))
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadField("plug-in", path, "it is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise BadField("plug-in", path, f"importing it raised {type(error).__name__}: {error}") from error
    return module
