"""Other programs on a GPU."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from kernelviz.core import Device
from kernelviz.core.notices import Datum, Notice, NoticeKind
from kernelviz.hardware import nvml

SILENT_BYTES = 256 * 2**20
"""More than the used memory of a GPU without programs (H200: 0 B beside the driver's own), and less than one CUDA context."""
_FIRST_NAMESPACE = "pid:[4026531836]"
"""The machine's own namespace of process ids: PROC_PID_INIT_INO in Linux's include/linux/proc_ns.h."""
_WORKERS = frozenset({"kernelviz.worker", "kernelviz.worker.fork_server"})
"""The modules in the command lines of workers; a worker that is a copy of the fork server has that of the fork server."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A process on the GPU. `name` is None where it is hidden; `waits`: whether it is a worker of kernelviz, which never
    measures while another worker does (worker/device_lock.py)."""

    pid: int
    name: str | None
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """The driver's report on a device's users. `same_ids`: whether its process ids are those of this process's namespace.

    In a container they are not: the list is then empty (driver 580) or holds the ids of the host. `worker`: whether a worker of
    this server is among the users. `used_bytes` excludes the driver's own memory; None when unknown.
    """

    listed: tuple[Neighbour, ...]
    same_ids: bool
    worker: bool
    used_bytes: int | None = None


def neighbours(seen: Seen, own: Collection[int]) -> Notice | None:
    """A notice of other programs on the GPU; None where they cannot be distinguished from this server's processes."""
    if seen.same_ids or any(n.pid in own for n in seen.listed):
        processes = tuple((n.pid, n.name) for n in seen.listed if n.pid not in own and not n.waits)
        kind: NoticeKind = "more_programs" if len(processes) > 3 else "programs"
        data: dict[str, Datum] = {"processes": processes[:3], "more": len(processes) - 3}
        return Notice(kind, data, "neighbours") if processes else None
    if seen.worker:
        return None
    if seen.listed:
        kind = "hidden_programs" if len(seen.listed) > 1 else "hidden_program"
        return Notice(kind, {"count": len(seen.listed)}, "neighbours")
    if (seen.used_bytes or 0) > SILENT_BYTES:
        return Notice("hidden_memory", {"used_bytes": seen.used_bytes}, "neighbours")
    return None


def look(device: Device, *, worker: bool) -> Seen:
    """The current users of a GPU; none where the driver does not answer. `worker`: whether this server has a worker on it."""
    reached = nvml.reached(device)
    if reached is None:
        return Seen((), same_ids=False, worker=worker)
    library, handle = reached
    listed = nvml.ask(library.nvmlDeviceGetComputeRunningProcesses, handle) or []
    # The first version counts the memory that the driver reserves for itself as used: 0.6 GB on an idle H200.
    version = getattr(library, "nvmlMemory_v2", None)
    memory: Any = None if version is None else nvml.ask(library.nvmlDeviceGetMemoryInfo, handle, version)
    return Seen(
        tuple(_neighbour(p.pid) for p in listed),
        same_ids=same_ids(),
        worker=worker,
        used_bytes=None if memory is None else int(memory.used),
    )


def same_ids(proc: Path = Path("/proc")) -> bool:
    """Whether the driver's process ids are those of this process's namespace, which is not so in a container."""
    try:
        return str((proc / "self/ns/pid").readlink()) == _FIRST_NAMESPACE
    except OSError:
        return False


def _neighbour(pid: int) -> Neighbour:
    try:
        process = psutil.Process(pid).as_dict(["name", "cmdline"])  # None where access is denied
    except psutil.Error:
        return Neighbour(pid, None)
    return Neighbour(pid, process["name"], waits=not _WORKERS.isdisjoint(process["cmdline"] or ()))
