"""The process that measures a run, and whether it still runs."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec
import psutil


class Presence(msgspec.Struct, frozen=True, kw_only=True):
    """A process, identified by host, boot, process id and its start (s since 1970), so that ids that are used again differ."""

    host: str
    boot_id: str
    pid: int
    started_s: float

    @classmethod
    def own(cls) -> Presence:
        return cls(
            host=socket.gethostname(), boot_id=boot_id(), pid=os.getpid(), started_s=_started_s(os.getpid()) or 0.0
        )

    def alive(self) -> bool:
        """False when the process has certainly ended. True for a process of another host, whose state is unknown here."""
        if self.host != socket.gethostname():
            return True
        if self.boot_id != boot_id():
            return False
        started_s = _started_s(self.pid)
        # psutil derives the time from ticks since boot, so the start of one process varies by at most a tick (10 ms).
        return started_s is not None and abs(started_s - self.started_s) < 1.0


def boot_id() -> str:
    """An identifier of this boot of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return f"boot at {psutil.boot_time():.0f}"


def _started_s(pid: int) -> float | None:
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.NoSuchProcess:
        return None
    except psutil.Error:
        return 0.0
