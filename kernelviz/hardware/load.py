"""How busy other programs keep the processors of this machine: what this process and its descendants use is left out.

Each reading covers the time since the last one. At the first reading, and after a long pause, the system's load average of one
minute is used, less what this process itself has used on average.
"""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from kernelviz.core import Device
from kernelviz.core.notices import Notice

SHORTEST_S, LONGEST_S = 1.0, 60.0
"""A reading over less time counts single scheduler ticks; one over more time hides what began just now."""
BUSY_SHARE = 0.25
"""From this share on, a warning: on two processors, half of one is then taken from a measurement that uses both."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessorTimes:
    """Seconds of all processors that were busy, and of this process and its descendants, until a moment.

    `average`: the load average of the last minute, None where the system has none.
    """

    at_s: float
    busy_s: float
    own_s: float
    average: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class OtherLoad:
    """The number of processors that other programs keep busy, on average, and how many the machine has."""

    busy: float
    processors: int

    @property
    def fraction(self) -> float:
        return self.busy / self.processors


def other_load(before: ProcessorTimes | None, now: ProcessorTimes, processors: int) -> OtherLoad | None:
    """What others used between two moments; None if it is unknown.

    >>> then = ProcessorTimes(at_s=0.0, busy_s=100.0, own_s=10.0)
    >>> other_load(then, ProcessorTimes(at_s=10.0, busy_s=115.0, own_s=13.0), 2)
    OtherLoad(busy=1.2, processors=2)
    """
    since = before or ProcessorTimes(at_s=0.0, busy_s=0.0, own_s=0.0)  # the start of this process
    passed_s = max(now.at_s - since.at_s, SHORTEST_S)
    own = (now.own_s - since.own_s) / passed_s
    if before is not None and passed_s <= LONGEST_S:
        busy = (now.busy_s - before.busy_s) / passed_s - own
    elif now.average is not None:
        busy = now.average - own
    else:
        return None
    return OtherLoad(busy=min(max(busy, 0.0), float(processors)), processors=processors)


def processor_times() -> ProcessorTimes:
    """The times until now; `at_s` counts from the start of this process."""
    times = psutil.cpu_times()
    # "guest" is counted in "user" already.
    names = ("user", "nice", "system", "irq", "softirq", "steal")
    return ProcessorTimes(
        at_s=time.time() - psutil.Process().create_time(),
        busy_s=sum(getattr(times, name, 0.0) for name in names),
        own_s=_own_s(),
        average=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    )


def _own_s() -> float:
    """Processor time of this process and its descendants; a descendant that has ended is counted in its parent."""
    own = psutil.Process()
    seconds = 0.0
    for process in (own, *own.children(recursive=True)):
        try:
            seconds += sum(process.cpu_times()[:4])
        except psutil.Error:  # it ended meanwhile
            continue
    return seconds


class LoadMeter:
    """Remembers the last reading. Every method may be called from any thread."""

    def __init__(self, times: Callable[[], ProcessorTimes] = processor_times, processors: int | None = None) -> None:
        self._times, self._processors = times, processors or psutil.cpu_count() or 1
        self._lock = threading.Lock()
        self._before: ProcessorTimes | None = None
        self._load: OtherLoad | None = None

    def read(self) -> OtherLoad | None:
        """What other programs use now; None if it is unknown. Takes a millisecond."""
        with self._lock:
            try:
                now = self._times()
            except (OSError, psutil.Error):
                return None
            if self._before is None or now.at_s - self._before.at_s >= SHORTEST_S:
                self._load, self._before = other_load(self._before, now, self._processors), now
            return self._load


METER = LoadMeter()


def busy_machine(device: Device, load: OtherLoad | None) -> Notice | None:
    """A notice if other programs use a quarter of the processors or more. On a GPU only the host's part of calls suffers."""
    if load is None or load.fraction < BUSY_SHARE:
        return None
    data = {"percent": round(load.fraction * 100), "processors": load.processors}
    if device.kind == "cuda":
        return Notice("busy_host", data, "neighbours", "info")
    return Notice("busy_machine", data, "neighbours")
