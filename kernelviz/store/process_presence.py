"""Which process measures a run, and whether it still lives."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec
import psutil


class Presence(msgspec.Struct, frozen=True, kw_only=True):
    """A process, told apart from a later one with the same number: host, boot, process id and its start (s since 1970)."""

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
        """False when it has certainly ended. What another host does is not known here: True."""
        if self.host != socket.gethostname():
            return True
        if self.boot_id != boot_id():
            return False
        started_s = _started_s(self.pid)
        # psutil derives the time from ticks since boot: the same process reads the same to a tick (10 ms).
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
