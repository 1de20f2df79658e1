"""The use cases, shared by pages, CLI, notebooks and tests: plan, run, follow, cancel, resume, load, calibrate.

`Bench` owns one executor (supervisor + queue + device lock) per device and the store. `current()` makes the process's
one Bench, once, under a lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelviz.core.events import CaseStep, Event
from kernelviz.core.problem import Method, Plan
from kernelviz.core.result import Conditions
from kernelviz.core.run import Device, Roof, Run, Status
from kernelviz.ops import Op, Variant


@dataclass(frozen=True, slots=True)
class Offer:
    """A variant as it is on one device: usable here, or not and why (with the remedy)."""

    variant: Variant
    available: bool
    reason: str


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A line of the list of runs."""

    id: str
    title: str
    op: str
    device: str
    created_at: str
    status: Status
    cases: int
    done: int
    failed: int


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands. `steps` by case key, for cases that have begun and have no result yet; `sequence` grows with each event."""

    status: Status
    done: int
    failed: int
    total: int
    ahead: int
    message: str
    steps: Mapping[str, CaseStep]
    sequence: int


class Bench:
    def devices(self) -> tuple[Device, ...]:
        """Devices of this machine, GPUs first; ``cpu`` is always there."""
        raise NotImplementedError

    def device(self, device_id: str) -> Device:
        """One device; raises UnknownName."""
        raise NotImplementedError

    def default_device(self) -> str:
        """``cuda:0`` where a usable GPU is, else ``cpu``."""
        raise NotImplementedError

    def ops(self) -> Mapping[str, Op]:
        """The catalogue, with the variants of the server's plug-ins (metadata as the worker reported it)."""
        raise NotImplementedError

    def offers(self, op: str, device_id: str) -> tuple[Offer, ...]:
        """The op's variants in ladder order, each with whether it can run on that device. Raises UnknownName."""
        raise NotImplementedError

    def plan(
        self,
        op: str,
        *,
        sizes: Mapping[str, str] | None = None,
        preset: str | None = None,
        variants: tuple[str, ...] | None = None,
        dtype: str | None = None,
        compute: str | None = None,
        direction: str = "forward",
        data: str = "normal",
        baseline: str | None = None,
        device: str | None = None,
        plugins: tuple[str, ...] = (),
    ) -> Plan:
        """A checked plan; None takes the op's default (sizes: the axes' default for the device; variants: those
        available). Raises UnknownName and BadField, which name the field and the nearest valid value."""
        raise NotImplementedError

    def run(self, plan: Plan, method: Method | None = None, *, owner: str = "", title: str = "") -> str:
        """Store the plan, queue it, return the run's id at once. `owner` is who waits, for fair turns."""
        raise NotImplementedError

    def cancel(self, run_id: str) -> None:
        """End the run after its current block; cases without result get Failure(cancelled). No-op when it has ended."""
        raise NotImplementedError

    def resume(self, run_id: str, *, owner: str = "") -> None:
        """Queue the cases of an interrupted or cancelled run that have no result (or were cancelled)."""
        raise NotImplementedError

    def follow(self, run_id: str, after: int = 0, timeout_s: float | None = None) -> Iterator[tuple[int, Event]]:
        """Events with their sequence number from `after` on, blocking for new ones; ends behind RunEnded, or when
        nothing came for `timeout_s`. For a run that ended before this process started: just RunEnded. Raises UnknownRun."""
        raise NotImplementedError

    def progress(self, run_id: str) -> Progress:
        """A snapshot of where the run stands (cheap: called at each redraw). Raises UnknownRun."""
        raise NotImplementedError

    def load(self, run_id: str) -> Run:
        """The run with all results so far. Raises UnknownRun."""
        raise NotImplementedError

    def runs(self, limit: int = 50) -> tuple[RunSummary, ...]:
        """The newest runs first."""
        raise NotImplementedError

    def roofs(self, device_id: str) -> tuple[Roof, ...]:
        """The roofs measured on that device, newest of each; empty when not calibrated."""
        raise NotImplementedError

    def calibrate(self, device_id: str, *, owner: str = "") -> str:
        """Queue a calibration; returns an id for follow() and progress() (events RoofDone, then RunEnded)."""
        raise NotImplementedError

    def conditions(self, device_id: str) -> Conditions:
        """Clocks, power, temperature, other processes now (NVML; psutil on CPU). Never while reading would disturb."""
        raise NotImplementedError

    def health(self) -> dict[str, object]:
        """State of each device's worker, for the health route."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop the workers; running cases become interrupted."""
        raise NotImplementedError


def current() -> Bench:
    """The process's one Bench, made at the first call under a lock."""
    raise NotImplementedError
