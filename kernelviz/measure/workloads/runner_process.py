"""The process of a runner: it measures cases at the same values of the axes, and sends progress and measurements.

    python -P -m kernelviz.measure.workloads.runner_process DESCRIPTOR FOLDER

stdout and stderr are the log. FOLDER has the request (``request.json``); what a workload writes goes into folders inside of it.
"""

import faulthandler
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from kernelviz.core import Device, Failure
from kernelviz.core.reasons import NoResult, Raised, WorkerEnded
from kernelviz.core.workload import WorkloadCase, WorkloadMeasurement, finite_measurement
from kernelviz.measure.workloads.messages import (
    CurrentVariant,
    MeasurementDone,
    RankRequest,
    RunnerEnded,
    RunnerRequest,
    Sender,
)
from kernelviz.measure.workloads.process_context import (
    ProcessContext,
    end_without_waiting,
    failure_of,
    prefer_this_process_when_memory_is_short,
)
from kernelviz.measure.workloads.ranks import call_ranks
from kernelviz.workloads.catalog import (
    CollectiveBackend,
    DeclaredWorkload,
    RankFailed,
    with_plugins,
    workload_named,
)

REQUEST, CURRENT = "request.json", "current"


class RunnerContext(ProcessContext):
    """The context of a runner."""

    def __init__(self, request: RunnerRequest, declared: DeclaredWorkload, folder: Path, sender: Sender) -> None:
        own = folder / "files"
        own.mkdir()
        super().__init__(
            device=request.devices[0],
            method=request.method,
            headline=declared.workload.headline.name,
            point=request.cases[0].point,
            folder=own,
            sender=sender,
            current=CurrentVariant(str(folder / CURRENT)),
        )
        self._request, self._declared, self._root = request, declared, folder
        self._failures: dict[str, Failure] = {}
        self._groups = 0

    @property
    def devices(self) -> tuple[Device, ...]:
        return self._request.devices

    @property
    def backend(self) -> CollectiveBackend | None:
        if self._declared.workload.ranks < 2:
            return None
        return "nccl" if self._device.kind == "cuda" else "gloo"

    @contextmanager
    def case(self, case: WorkloadCase) -> Iterator[None]:
        self._current.set(case.variant)
        try:
            yield
        except Exception as error:
            traceback.print_exc()
            self._fail(case, error)
        finally:
            self._current.set("")

    def failed(self, case: WorkloadCase) -> bool:
        return case.variant in self._failures

    def call_raised(self, variant: str, error: Exception) -> None:
        traceback.print_exception(error)
        self._fail(next(case for case in self._request.cases if case.variant == variant), error)

    def _fail(self, case: WorkloadCase, error: Exception) -> None:
        failure = of_rank(error) if isinstance(error, RankFailed) else failure_of(error)
        self._failures[case.variant] = failure
        self._sender.send(MeasurementDone(measurement=WorkloadMeasurement(case=case, failure=failure)))

    def ranks(self, function: str, arguments: object) -> tuple[Any, ...]:
        return self._start(function, arguments, self._declared.workload.ranks, self.backend)

    def fresh(self, function: str, arguments: object) -> Any:
        return self._start(function, arguments, 1, None)[0]

    def _start(
        self, function: str, arguments: object, count: int, backend: CollectiveBackend | None
    ) -> tuple[Any, ...]:
        self._groups += 1
        folder = self._root / f"group-{self._groups}"
        requests = []
        for rank in range(count):
            (files := folder / f"files-{rank}").mkdir(parents=True)
            requests.append(
                RankRequest(
                    workload=self._declared.workload.name,
                    plugins=self._request.plugins,
                    function=function,
                    arguments=arguments,
                    rank=rank,
                    world_size=count,
                    backend=backend,
                    rendezvous=str(folder / "rendezvous"),
                    device=self.devices[min(rank, len(self.devices) - 1)],
                    method=self._method,
                    folder=str(files),
                    current=str(self._root / CURRENT),
                )
            )
        point = self._point
        return call_ranks(
            requests,
            folder,
            lambda progress: self._sender.send(msgspec.structs.replace(progress, point=progress.point or point)),
        )


def of_rank(error: RankFailed) -> Failure:
    """The failure of a case whose rank process failed."""
    message = f"rank {error.rank}: {error.text or error.log or 'it printed nothing'}"
    if error.out_of_memory:
        return Failure(stage="out_of_memory", message=message)
    reason = Raised(type=error.kind) if error.kind else WorkerEnded(signal=error.signal, exit_code=error.exit_code)
    return Failure(stage="crash", reasons=(reason,), message=message)


def measure(request: RunnerRequest, declared: DeclaredWorkload, context: RunnerContext, sender: Sender) -> None:
    """Call the runner and send what it returns."""
    runner = declared.function(declared.workload.runner)
    wanted = {case.variant for case in request.cases}
    for measurement in runner(request.cases, context):
        if context.failed(measurement.case) or measurement.case.variant not in wanted:
            continue
        wanted.discard(measurement.case.variant)
        sender.send(MeasurementDone(measurement=finite_measurement(measurement)))
    _without_result(context, [c for c in request.cases if c.variant in wanted and not context.failed(c)], sender)
    sender.send(RunnerEnded())


def _without_result(context: RunnerContext, cases: Sequence[WorkloadCase], sender: Sender) -> None:
    for case in cases:
        failure = Failure(stage="crash", reasons=(NoResult(),))
        sender.send(MeasurementDone(measurement=WorkloadMeasurement(case=case, failure=failure)))


def main(arguments: list[str]) -> None:
    """Run the process. `arguments`: the descriptor of the pipe for messages, and the folder."""
    faulthandler.enable()
    prefer_this_process_when_memory_is_short()
    sender, folder = Sender(int(arguments[0])), Path(arguments[1])
    current = folder / CURRENT
    try:
        request = msgspec.json.decode((folder / REQUEST).read_bytes(), type=RunnerRequest)
        declared = workload_named(request.cases[0].workload, with_plugins(request.plugins))
        context = RunnerContext(request, declared, folder, sender)
        context.progress("starting")
        if declared.workload.ranks < 2:
            context.use_device()
        measure(request, declared, context, sender)
    except BaseException as error:
        traceback.print_exc()
        failure = of_rank(error) if isinstance(error, RankFailed) else failure_of(error)
        sender.send(RunnerEnded(failure=failure, variant=CurrentVariant.read(str(current))))
    end_without_waiting()


if __name__ == "__main__":
    main(sys.argv[1:])
