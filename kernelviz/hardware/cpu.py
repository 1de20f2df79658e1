"""The processor of this machine, from /proc, /sys and psutil."""

import contextlib
import hashlib
import os
import platform
import re
import socket
from pathlib import Path

import psutil

from kernelviz.core import BadField, Device

PROC = Path("/proc")
SYS = Path("/sys")
CACHE_VARIABLE = "KERNELVIZ_CPU_CACHE_BYTES"
"""The environment variable that says how large the last-level cache is, where that is not what the kernel reports: a virtual
machine may report less than its host has, or the 260 MiB that it shares with many others. Runs store it with the device."""


def cpu() -> Device:
    """The processor as a device; `memory_bytes` is the smaller of the machine's memory and the container's limit.

    Errors: BadField where `CACHE_VARIABLE` is no whole number above 0.
    """
    return Device(
        id="cpu",
        kind="cpu",
        name=name(),
        uuid=machine_uuid(),
        memory_bytes=memory_bytes(),
        last_level_cache_bytes=last_level_cache_bytes(),
        threads=threads(),
    )


def name(proc: Path = PROC) -> str:
    """The model name that the kernel reports, else the architecture."""
    with contextlib.suppress(OSError):
        if match := re.search(r"^model name[ \t]*:[ \t]*(\S.*)$", (proc / "cpuinfo").read_text(), re.MULTILINE):
            return match[1].strip()
    return platform.processor() or platform.machine() or "CPU"


def threads() -> int:
    """The number of hardware threads that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def last_level_cache_bytes(sys: Path = SYS) -> int | None:
    """Bytes of the data caches of the highest level, summed over the instances that this process may use.

    A flush must read more than this sum. None where the kernel does not report it. `CACHE_VARIABLE` has priority.
    Errors: BadField where that is no whole number above 0.
    """
    if given := os.environ.get(CACHE_VARIABLE, "").strip():
        if not (given.isascii() and given.isdecimal() and int(given)):
            remedy = "give a whole number of bytes above 0, for example 33554432, or unset it to use what the machine reports"
            raise BadField(CACHE_VARIABLE, given, remedy)
        return int(given)
    caches: dict[tuple[int, str], int] = {}
    for index in sys.glob("devices/system/cpu/cpu[0-9]*/cache/index*"):
        with contextlib.suppress(OSError, ValueError):
            if (index / "type").read_text().strip() != "Instruction":
                instance = (int((index / "level").read_text()), (index / "shared_cpu_list").read_text().strip())
                caches[instance] = _size_bytes((index / "size").read_text().strip())
    if not caches:
        return None
    highest = max(level for level, _ in caches)
    return sum(size for (level, _), size in caches.items() if level == highest)


def _size_bytes(text: str) -> int:
    """
    >>> _size_bytes("32768K"), _size_bytes("512")
    (33554432, 512)
    """
    scales = {"K": 2**10, "M": 2**20, "G": 2**30}
    return int(text[:-1]) * scales[text[-1]] if text[-1:] in scales else int(text)


def memory_bytes(sys: Path = SYS) -> int:
    """The most memory that this process can use."""
    total = int(psutil.virtual_memory().total)
    for limit in (sys / "fs/cgroup/memory.max", sys / "fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            return min(total, int(limit.read_text()))
        except (OSError, ValueError):  # no such group, or "max"
            continue
    return total


def machine_uuid(identity: Path = Path("/etc/machine-id")) -> str:
    """An identifier that stays the same on this machine; the machine id itself is not shown, as its manual asks."""
    name = ""
    with contextlib.suppress(OSError):  # there is no such file, or this user must not read it
        name = identity.read_text().strip()
    return "CPU-" + hashlib.sha256(f"kernelviz:{name or socket.gethostname()}".encode()).hexdigest()[:24]
