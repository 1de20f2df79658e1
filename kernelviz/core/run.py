"""A run: id, environment, method, plan, results in order. As a file it is a snapshot, schema ``kernelviz/1``."""

from __future__ import annotations

from typing import Literal

from kernelviz.core.problem import Method, Plan, Struct
from kernelviz.core.result import Result

SCHEMA = "kernelviz/1"

Status = Literal["queued", "running", "finished", "cancelled", "interrupted"]
LIVING: tuple[Status, ...] = ("queued", "running")
"""A run in one of these is being measured, or will be; in any other it has ended."""
DeviceKind = Literal["cuda", "cpu"]
RoofName = Literal["read", "copy", "write", "read2_write1", "read1_write2", "matmul"]


class Device(Struct, frozen=True, kw_only=True):
    """A device as its driver describes it. `id` is ``cuda:0`` or ``cpu``; unknown facts are None.

    `usable` is False when the worker cannot run on it, with the reason and the remedy in `reason`.
    """

    id: str
    kind: DeviceKind
    name: str
    uuid: str
    memory_bytes: int | None = None
    last_level_cache_bytes: int | None = None
    multiprocessors: int | None = None
    compute_capability: tuple[int, int] | None = None
    driver: str | None = None
    driver_cuda: str | None = None
    threads: int | None = None
    usable: bool = True
    reason: str = ""


class Roof(Struct, frozen=True, kw_only=True):
    """A measured ceiling of one device: bytes/s of a stream with that read:write mix, or flop/s of a matrix product.

    `name` is the mix or ``matmul``; `precision` is set for matmul. Exactly one of the two rates is set.
    """

    name: RoofName
    precision: str | None = None
    bandwidth_bytes_per_s: float | None = None
    rate_flop_per_s: float | None = None
    low: float | None = None
    high: float | None = None
    moved_bytes: int | None = None
    clock_hz: float | None = None
    timer: str | None = None
    how: str = ""
    measured_at: str = ""


class Environment(Struct, frozen=True, kw_only=True):
    """Where a run was measured: the device, software versions by package, and the roofs known at that time."""

    device: Device
    host: str
    platform: str
    python: str
    kernelviz: str
    versions: dict[str, str] = {}
    roofs: tuple[Roof, ...] = ()
    threads: int | None = None
    tracer: str | None = None


class Run(Struct, frozen=True, kw_only=True):
    """The document. `status` is ``finished`` when every case of the plan has a result."""

    schema: str = SCHEMA
    id: str
    title: str
    note: str = ""
    created_at: str
    status: Status = "finished"
    environment: Environment
    method: Method
    plan: Plan
    results: tuple[Result, ...] = ()
