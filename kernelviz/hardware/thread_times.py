"""How long the threads of this process have run, and waited for a processor that another thread used."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

THREADS = Path("/proc/self/task")


@dataclass(frozen=True, slots=True)
class ThreadTimes:
    """Seconds, summed over the threads of this process that live now, since each began."""

    ran_s: float
    waited_s: float

    def waited_fraction(self, before: ThreadTimes) -> float:
        """The part of the time since `before` in which a thread that was ready waited for a processor.

        >>> before = ThreadTimes(2.0, 0.5)
        >>> ThreadTimes(3.0, 1.5).waited_fraction(before), before.waited_fraction(before)
        (0.5, 0.0)
        """
        ran_s, waited_s = max(0.0, self.ran_s - before.ran_s), max(0.0, self.waited_s - before.waited_s)
        return waited_s / (ran_s + waited_s) if waited_s else 0.0


def thread_times(folder: Path = THREADS) -> ThreadTimes | None:
    """The times until now; None where the system does not count them. `folder`: where Linux lists the threads."""
    ran_ns = waited_ns = threads = 0
    with suppress(OSError):
        for thread in folder.iterdir():
            with suppress(OSError, ValueError):  # it ended meanwhile
                ran, waited, _ = (thread / "schedstat").read_text().split()
                ran_ns, waited_ns, threads = ran_ns + int(ran), waited_ns + int(waited), threads + 1
    return ThreadTimes(ran_ns / 1e9, waited_ns / 1e9) if threads else None
