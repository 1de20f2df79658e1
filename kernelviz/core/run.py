"""A run: id, environment, method, plan, results in order. As a file it is a snapshot, schema ``kernelviz/2``."""

from typing import Literal

from kernelviz.core.problem import Method, Plan, Struct
from kernelviz.core.result import Result

SCHEMA = "kernelviz/2"

Status = Literal["queued", "running", "finished", "cancelled", "interrupted"]
LIVING: tuple[Status, ...] = ("queued", "running")
"""A run in one of these is being measured, or will be; in any other it has ended."""
DeviceKind = Literal["cuda", "cpu"]
StreamName = Literal["read", "copy", "write", "read2_write1", "read1_write2"]
RoofName = Literal[StreamName, "matmul", "fma", "launch", "h2d", "d2h"]
Level = Literal["dram", "l2"]
"""Where a stream's bytes lay before the call: in memory (caches flushed), or in the last-level cache, a CPU's too."""
Unit = Literal["tensor", "vector"]
"""Which arithmetic units of a GPU: the tensor cores, or the ones that every other instruction uses."""
LaunchCost = Literal["empty_kernel", "torch_call", "kernel_launch", "graph_launch"]
"""Of a launch: how long an empty kernel takes on the device, or how long the host is busy until Python goes on after one
eager torch call, one kernel of our own (NVRTC), or one graph of a single kernel."""


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
    """A measured ceiling (or floor, for a launch) of one device.

    `name`: a stream by its read:write mix, in bytes/s; ``matmul`` (a matrix product) or ``fma`` (multiply-adds in registers),
    in flop/s; ``h2d`` and ``d2h`` (pinned host memory to the device and back), in bytes/s; ``launch``, in seconds, of which
    `what` says the kind. Exactly one of the two rates and `time_s` is set; `low` and `high` are in its unit.

    `level` is set for streams (None: measured by a version that knew only memory, large and small sizes in one);
    `moved_bytes`: bytes of one call, for the l2 level one pass over the working set; `unit` is set for a GPU's arithmetic.
    """

    name: RoofName
    precision: str | None = None
    level: Level | None = None
    unit: Unit | None = None
    what: LaunchCost | None = None
    bandwidth_bytes_per_s: float | None = None
    rate_flop_per_s: float | None = None
    time_s: float | None = None
    low: float | None = None
    high: float | None = None
    moved_bytes: int | None = None
    clock_hz: float | None = None
    timer: str | None = None
    how: str = ""
    measured_at: str = ""

    @property
    def key(self) -> str:
        """Equal for roofs of which the newer replaces the older. The best size of a product or of a transfer is part of what
        was found, that of a stream is what was asked.

        >>> Roof(name="read", level="dram", moved_bytes=2**29).key, Roof(name="matmul", precision="bf16", moved_bytes=1).key
        ('read dram 536870912', 'matmul bf16')
        """
        size = self.moved_bytes if self.level else None
        parts = (self.name, self.what, self.precision, self.unit, self.level, size)
        return " ".join(str(part) for part in parts if part is not None)


class DataSheetRoof(Roof, frozen=True, kw_only=True):
    """A roof that was read off a data sheet, not measured. No run holds one."""


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
