"""A measuring session: one device, its timer and its bound variants, for the life of one worker process."""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Mapping

import torch

from kernelviz.core.errors import one_line
from kernelviz.core.events import CaseDone
from kernelviz.core.problem import Method, Problem
from kernelviz.core.result import Conditions
from kernelviz.core.run import Device, Environment
from kernelviz.hardware.telemetry import conditions
from kernelviz.measure import faults
from kernelviz.measure.binding import BoundProblem
from kernelviz.measure.contract import Emit, Stop
from kernelviz.measure.environment import device_of, environment_of
from kernelviz.measure.roofs import calibrate
from kernelviz.measure.task import Task
from kernelviz.measure.timer import DeviceTimer
from kernelviz.measure.trace import TraceError, WrongWork
from kernelviz.ops import Op, op_named, with_plugins

KEPT_SHARE = 0.3
"""Bound problems are kept while they take less than this share of the device's memory, least recently used goes first."""
KEPT_PROBLEMS = 64


class DeviceSession:
    """Measures problems on one device; see measure.contract.Session."""

    def __init__(self, device: Device, ops: Mapping[str, Op], timer: DeviceTimer, tracer: str | None) -> None:
        self.device, self.ops, self.timer = device, ops, timer
        self._torch_device = torch.device(device.id)
        self._environment = environment_of(device, tracer)
        self._kept: OrderedDict[str, BoundProblem] = OrderedDict()
        self._spoilt: str | None = None

    def environment(self) -> Environment:
        return self._environment

    @property
    def spoilt(self) -> str | None:
        return self._spoilt or self.timer.worn

    def measure(
        self, problem: Problem, variants: tuple[str, ...], baseline: str, method: Method, emit: Emit, stop: Stop
    ) -> None:
        """See Session.measure. Returns early, with cases left, when the process is spoilt."""
        op = op_named(problem.op, self.ops)
        task = Task(self, op, problem, baseline, method, emit, stop)
        for name in variants:
            task.step(name, "binding")
        try:
            bound = self._bound(op, problem)
        except Exception as error:
            self.note(error)
            for name in variants:
                emit(CaseDone(result=task.result(op.variant_named(name), faults.failure(error, calling=False))))
            return
        chosen = [op.variant_named(v) for v in variants]
        # What is compiled already, and what compiles at once, is measured first.
        prompt = [v for v in chosen if not v.late or v.name in bound.variants]
        late = [v for v in chosen if v not in prompt]
        task.measure_together(bound, prompt)
        for variant in late:
            if self.spoilt is None:
                task.measure_together(bound, [variant])
        self._trim()

    def calibrate(self, emit: Emit, stop: Stop) -> None:
        self._kept.clear()
        self._release()
        calibrate(self.device, self.timer, emit, stop)
        self._release()

    def launch(self, problem: Problem, variant: str, calls: int) -> None:
        """Bind, then flush + call `calls` times with no tracer attached (to point ncu at)."""
        op = op_named(problem.op, self.ops)
        bound = self._bound(op, problem)
        chosen = op.variant_named(variant)
        launch, _ = bound.bind(chosen, bound.inputs)
        restore = bound.restore(chosen, bound.inputs)
        for _ in range(calls):
            if restore is not None:
                restore()
            self.timer.flush()
            launch()
        if self._torch_device.type == "cuda":
            torch.cuda.synchronize(self._torch_device)

    def conditions(self) -> Conditions:
        return conditions(self.device)

    def _bound(self, op: Op, problem: Problem) -> BoundProblem:
        found = self._kept.get(problem.key)
        if found is not None:
            self._kept.move_to_end(problem.key)
            return found
        if op.needed_bytes(problem) > self._free_bytes():
            self._kept.clear()
            self._release()
        bound = BoundProblem.allocate(op, problem, self._torch_device, self._free_bytes(), self.device.name)
        self._kept[problem.key] = bound
        return bound

    def _free_bytes(self) -> int:
        if self._torch_device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self._torch_device)
            cached = torch.cuda.memory_reserved(self._torch_device) - torch.cuda.memory_allocated(self._torch_device)
            return int(free + cached)
        import psutil

        return int(psutil.virtual_memory().available)

    def _trim(self) -> None:
        limit = KEPT_SHARE * (self.device.memory_bytes or self._free_bytes())
        while len(self._kept) > KEPT_PROBLEMS:
            self._kept.popitem(last=False)
        while self._kept and self._held_bytes() > limit:
            self._kept.popitem(last=False)
            self._release()

    def _held_bytes(self) -> int:
        """What the kept problems take: on a GPU all that torch holds (graphs' memory and places included)."""
        if self._torch_device.type == "cuda":
            return torch.cuda.memory_reserved(self._torch_device)
        return sum(b.needed_bytes for b in self._kept.values())

    def _release(self) -> None:
        gc.collect()
        if self._torch_device.type == "cuda" and self._spoilt is None:
            torch.cuda.empty_cache()

    def note(self, error: Exception) -> None:
        """After an error: is this process still good for the next problem?"""
        if isinstance(error, TraceError) and not isinstance(error, WrongWork):
            self._spoilt = f"the tracer lost its records: {error}"
        elif faults.sticky(error):
            self._spoilt = f"CUDA error: {one_line(error, 200)}"
        elif faults.out_of_memory(error):
            self._kept.clear()
            self._release()
            if self._torch_device.type == "cuda":
                held = torch.cuda.memory_reserved(self._torch_device)
                if held > 0.5 * (self.device.memory_bytes or held * 2):
                    self._spoilt = f"memory stays high after out-of-memory ({held / 2**30:.1f} GiB)"


def open_session(device_id: str, plugins: tuple[str, ...] = ()) -> DeviceSession:
    """Open the device and its tools. Raises UnknownName, DeviceError (with the remedy), BadField for a plug-in."""
    device = device_of(device_id)
    ops = with_plugins(plugins)
    if device.kind == "cuda":
        from kernelviz.measure.cuda import CudaTimer
        from kernelviz.measure.instruments import Instruments
        from kernelviz.measure.trace import open_tracer

        torch.cuda.set_device(torch.device(device_id))
        tracer, line = open_tracer()
        return DeviceSession(device, ops, CudaTimer(Instruments(torch.device(device_id)), tracer), line)
    from kernelviz.measure.host import HostTimer

    return DeviceSession(device, ops, HostTimer(device.last_level_cache_bytes), None)
