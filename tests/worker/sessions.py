"""Measuring sessions that behave and misbehave as variants do, for the worker's child process. No torch."""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelviz.core.events import CaseDone, CaseStep, CheckDone, InspectionDone, RoofDone, Step, TimelineDone
from kernelviz.core.problem import Case, Cost, Method, Problem
from kernelviz.core.result import Block, Failure, Figure, Outcome, Result, Timing
from kernelviz.core.run import Device, Environment, Roof
from kernelviz.core.selftest import Check, Mark, Timeline
from kernelviz.core.tuning import Tuned
from kernelviz.measure.compile_ahead.messages import UpcomingCases
from kernelviz.measure.compile_ahead.processes import CompilesAhead
from kernelviz.measure.session.contract import UNTUNED, CaseFailed, Emit, Stop
from tests import sample_inspections as inspections

DEVICE = Device(id="cpu", kind="cpu", name="Test processor", uuid="CPU-test")


def figure(first: float = 1e-6) -> Figure:
    samples = tuple(first * (1 + 0.001 * i) for i in range(10))
    first_round = time.time_ns()
    blocks = tuple(Block(size=5, started_s=float(i), round=first_round + i) for i in range(2))
    return Figure(estimate=first, low=first * 0.99, high=first * 1.01, samples=samples, blocks=blocks, timer="host")


def result(problem: Problem, variant: str, outcome: Outcome | None = None) -> Result:
    return Result(
        problem=problem,
        variant=variant,
        outcome=outcome or Timing(device_cold_s=figure()),
        cost=Cost(work_flop=1, read_bytes=2, written_bytes=3),
        measured_at="2026-01-01T00:00:00+00:00",
    )


def check(name: str, passed: bool | None, count: int = 100) -> Check:
    return Check(
        name=name,
        question=f"Does it {name}?",
        passed=passed,
        value=None if passed is None else 2e-6,
        limit=3e-6 if passed else 1e-6,
        unit="s",
        message="no tool for it" if passed is None else "",
        figures={"comparisons": float(count)},
    )


def _abort() -> None:
    sys.stderr.write("about to abort\n")
    os.abort()


def _segfault() -> None:
    ctypes.string_at(0)


def _hang() -> None:
    # PyDLL keeps the interpreter lock: no Python thread of the worker can run meanwhile.
    ctypes.PyDLL(None).sleep(60)


def _garbage() -> None:
    os.write(1, b'{"say": "done", "work_id": 1}\nno message \xff\xfe\n' * 10)
    sys.stdout.write("printed by a variant\n")


def _compiler() -> None:
    """A compiler-like grandchild in a session of its own, whose parent ends at once, then one that stays a child."""
    code = (
        "import os, sys, time\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "open(sys.argv[1], 'w').write(str(os.getpid()))\n"
        "time.sleep(60)\n"
    )
    folder = Path(os.environ["KERNELVIZ_TEST_PIDS"])
    subprocess.Popen([sys.executable, "-S", "-c", code, str(folder / "orphan.part")]).wait()
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    (folder / "child.part").write_text(str(child.pid))
    (folder / "worker.part").write_text(str(os.getpid()))
    while not (folder / "orphan.part").exists() or not (folder / "orphan.part").read_text():
        time.sleep(0.005)
    for name in ("child", "orphan", "worker"):
        (folder / f"{name}.part").rename(folder / f"{name}.pid")
    _hang()


def _raises() -> None:
    raise RuntimeError("the session itself broke")


FAULTS: dict[str, Callable[[], None]] = {
    "abort": _abort,
    "segfault": _segfault,
    "hang": _hang,
    "garbage": _garbage,
    "compiler": _compiler,
    "raises": _raises,
}


class Session:
    """Variants are called by what they do: a name of FAULTS does it while measured, ``checking:abort`` while checked."""

    def __init__(self, device: str, plugins: tuple[str, ...]) -> None:
        self.device, self.plugins = device, plugins
        self._spoilt: str | None = None

    def environment(self) -> Environment:
        return Environment(
            device=DEVICE,
            host=socket.gethostname(),
            platform=platform.system(),
            python=platform.python_version(),
            kernelviz="test",
            versions={"pid": str(os.getpid()), "plugins": ",".join(self.plugins)},
        )

    def compile_with(self, compilers: CompilesAhead, plugins: tuple[str, ...]) -> None:
        """Compiles nothing."""

    def compile_ahead(self, run_id: str, upcoming: Sequence[UpcomingCases]) -> None:
        """Compiles nothing."""

    @property
    def spoilt(self) -> str | None:
        return self._spoilt

    def measure(
        self,
        problem: Problem,
        variants: tuple[str, ...],
        baseline: str,
        method: Method,
        emit: Emit,
        stop: Stop,
        *,
        tuned: Mapping[str, Tuned] = UNTUNED,
        following: str | None = None,
    ) -> None:
        def step(variant: str, name: Step) -> None:
            emit(CaseStep(case=Case(problem=problem, variant=variant), step=name))

        for variant in variants:
            step(variant, "binding")
        for variant in variants:
            step(variant, "checking")
            if variant.startswith("checking:"):
                FAULTS[variant.partition(":")[2]]()
        for variant in variants:
            step(variant, "measuring")
        if "cold" not in method.figures:
            self._measure_others(problem, variants, method, emit, stop)
            return
        for variant in variants:
            if variant in FAULTS:
                FAULTS[variant]()
            if variant == "until_cancelled":
                while not stop():
                    time.sleep(0.002)
            if stop():
                emit(CaseDone(result=result(problem, variant, Failure(stage="cancelled", message="cancelled"))))
            elif variant == "out_of_memory":
                self._spoilt = "memory stays high"
                emit(
                    CaseDone(result=result(problem, variant, Failure(stage="out_of_memory", message="no memory left")))
                )
                return
            elif variant == "not_finite":
                bad = Figure(estimate=float("nan"), samples=(float("nan"), 1.0))
                emit(CaseDone(result=result(problem, variant, Timing(device_cold_s=bad, busy_s=figure()))))
            elif variant in tuned:
                told = result(problem, variant)
                given = {"configuration": tuned[variant].configuration, "tuned_by": tuned[variant].run_id}
                emit(CaseDone(result=msgspec.structs.replace(told, **given)))
            elif variant != "forgotten":
                emit(CaseDone(result=result(problem, variant)))
            if variant == "twice":
                emit(CaseDone(result=result(problem, variant, Timing(device_cold_s=figure(2e-6)))))

    def _measure_others(
        self, problem: Problem, variants: tuple[str, ...], method: Method, emit: Emit, stop: Stop
    ) -> None:
        """Figures beside device cold; `later_abort` breaks down only here, `later_waits` waits for a cancel."""
        for variant in variants:
            if variant == "later_abort":
                _abort()
            while variant == "later_waits" and not stop():
                time.sleep(0.002)
            if not stop():
                emit(CaseDone(result=result(problem, variant, Timing(device_warm_s=figure(5e-7), loop_s=figure(9e-7)))))

    def calibrate(self, emit: Emit, stop: Stop) -> None:
        for name, rate in (("read", 2e11), ("copy", 1e11)):
            roof = Roof(name=name, bandwidth_bytes_per_s=rate, measured_at="2026-01-01T00:00:00+00:00")  # type: ignore[arg-type]
            emit(RoofDone(roof=roof))

    def selftest(self, emit: Emit, stop: Stop, *, only: tuple[str, ...] = (), quick: bool = False) -> None:
        """Checks are called by what they do, as variants are; without names one passes, one fails, one is not here."""
        mark = Mark(kind="call", name="k", start_s=0.0, end_s=1e-6)
        emit(TimelineDone(timeline=Timeline(case="a call", timer="host", marks=(mark,), counted=((0.0, 1e-6),))))
        for name in only or ("passes", "fails", "absent"):
            if name in FAULTS:
                FAULTS[name]()
            if name == "until_cancelled":
                while not stop():
                    time.sleep(0.002)
            if stop():
                return
            passed = {"fails": False, "absent": None}.get(name, True)
            emit(CheckDone(check=check(name, passed, count=20 if quick else 100)))

    def inspect(
        self, problem: Problem, variant: str, emit: Emit, stop: Stop, *, tuned: Mapping[str, Tuned] = UNTUNED
    ) -> None:
        """Variants are called by what they do; `b` is wrong, any other is right."""
        emit(CaseStep(case=Case(problem=problem, variant=variant), step="checking"))
        if variant in FAULTS:
            FAULTS[variant]()
        if variant == "out_of_memory":
            raise CaseFailed(Failure(stage="out_of_memory", message="no memory left"))
        while variant == "until_cancelled" and not stop():
            time.sleep(0.002)
        if not stop():
            found = inspections.wrong_tile if variant == "b" else inspections.right
            emit(InspectionDone(inspection=found(problem=problem, variant=variant, environment=self.environment())))


def open_session(device: str, plugins: tuple[str, ...] = ()) -> Session:
    return Session(device, plugins)


def cannot_open(device: str, plugins: tuple[str, ...] = ()) -> Session:
    raise RuntimeError("no such device here")


def dies_at_start(device: str, plugins: tuple[str, ...] = ()) -> Session:
    os.abort()


GPU = Device(id="cuda:0", kind="cuda", name="Test GPU", uuid="GPU-test")


class GpuSession(Session):
    """The same on a GPU."""

    def environment(self) -> Environment:
        return msgspec.structs.replace(super().environment(), device=GPU)


def open_gpu_session(device: str, plugins: tuple[str, ...] = ()) -> GpuSession:
    return GpuSession(device, plugins)
