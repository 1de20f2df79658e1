"""A run: its id, environment, method, plan and results in order. A run is stored as a document of schema ``kernelviz/2``."""

from typing import Literal

from msgspec import UNSET, UnsetType

from kernelviz.core.code import CodeContent
from kernelviz.core.problem import Method, Plan, Struct
from kernelviz.core.result import Result

SCHEMA = "kernelviz/2"

Status = Literal["queued", "running", "finished", "cancelled", "interrupted"]
LIVING: tuple[Status, ...] = ("queued", "running")
"""A run with one of these statuses is being measured or will be. A run with any other status has ended."""
DeviceKind = Literal["cuda", "cpu"]
StreamName = Literal["read", "copy", "write", "read2_write1", "read1_write2"]
RoofName = Literal[StreamName, "matmul", "fma", "mma", "launch", "h2d", "d2h"]
Level = Literal["dram", "l2"]
"""Where a stream's data was before the call: in memory (caches flushed), or in the last-level cache (also a CPU's)."""
Unit = Literal["tensor", "vector"]
"""The arithmetic units of a GPU: the tensor cores, or the units that all other instructions use."""
LaunchCost = Literal["empty_kernel", "torch_call", "kernel_launch", "graph_launch"]
"""The cost of a launch. ``empty_kernel`` is the time of an empty kernel on the device. The others are the host's time until the
call returns: of one eager torch call, of one of this project's NVRTC kernels, or of one graph with a single kernel."""


class Device(Struct, frozen=True, kw_only=True):
    """A device as its driver describes it. `id` is, for example, ``cuda:0`` or ``cpu``. Unknown facts are None.

    `usable` is False when the worker cannot run on the device; `reason` then says why and what to do.
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
    """A measured ceiling of one device (for a launch: a floor).

    `name` is one of: a stream, named by its mix of reads and writes, in bytes/s; ``matmul`` (a matrix product), ``fma``
    (multiply-adds in registers) or ``mma`` (a loop of tensor-core instructions without memory), in flop/s; ``h2d`` and ``d2h``
    (copies from pinned host memory to the device and back), in bytes/s; ``launch``, in seconds, whose kind is in `what`. Exactly
    one of the two rates and `time_s` is set; `low` and `high` have its unit.

    `level` is set for streams. It is None if a version that did not distinguish memory and cache measured the stream.
    `moved_bytes` is the number of bytes of one call; for the level ``l2``, of one pass over the working set. `unit` is set for
    the arithmetic of a GPU.
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
        """A key that is equal for two roofs if the newer one replaces the older one.

        The size is part of the key of a stream, because a stream is measured at each size. It is not part of the key of a
        product or a transfer, because their best size is a result of the measurement.

        >>> Roof(name="read", level="dram", moved_bytes=2**29).key, Roof(name="matmul", precision="bf16", moved_bytes=1).key
        ('read dram 536870912', 'matmul bf16')
        """
        size = self.moved_bytes if self.level else None
        parts = (self.name, self.what, self.precision, self.unit, self.level, size)
        return " ".join(str(part) for part in parts if part is not None)


class DataSheetRoof(Roof, frozen=True, kw_only=True):
    """A roof from a data sheet, not a measured one. No run contains one."""


class SameModelRoof(Roof, frozen=True, kw_only=True):
    """A roof that was measured on another device of the same model. No run contains one."""


TracerName = Literal["cupti", "kineto"]
TracerFault = Literal[
    "cupti_not_allowed", "other_profiler", "no_cupti", "other_cupti_version", "nothing_traced", "cupti_error"
]
"""Why a tracer cannot be used; ``cupti_error``: another error, which the message states."""


class TracerFailure(Struct, frozen=True, kw_only=True):
    """A tracer that cannot be used on a device, and why. `message`: the error in the tracer's own words."""

    tracer: TracerName
    fault: TracerFault
    message: str = ""


class Environment(Struct, frozen=True, kw_only=True):
    """The environment of a run: the device, the software versions by package, and the roofs known at the time of the run.

    `tracer`: for people, the name of the tracer and the errors of the tracers that were tried before it. `tracer_failures`: these
    errors as facts; not set where there are none, so that the digests of documents without them stay as they are.
    """

    device: Device
    host: str
    platform: str
    python: str
    kernelviz: str
    versions: dict[str, str] = {}
    roofs: tuple[Roof, ...] = ()
    threads: int | None = None
    tracer: str | None = None
    tracer_failures: tuple[TracerFailure, ...] | UnsetType = UNSET


class Run(Struct, frozen=True, kw_only=True, weakref=True):
    """The document of a run. `status` is ``finished`` when every case of the plan has a result.

    `code`: the contents of artifacts that results name, in documents that were written with code; not set otherwise. They are no
    part of the digest of the document, because results name them by their own digests.
    """

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
    code: tuple[CodeContent, ...] | UnsetType = UNSET
