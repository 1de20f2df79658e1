"""A call as a program makes it, by the host's clock: from idle to done, until Python continues, as a graph, back to back."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kernelviz.ops import Launch


@dataclass(frozen=True, slots=True)
class Calls:
    """One bound call. `wait` returns when the device is idle; `replay` launches a graph of this one call, and is None where
    there are no graphs or the call cannot be captured (`no_graph` says why). Times in seconds; no tracer is attached."""

    launch: Launch
    wait: Callable[[], object]
    restore: Callable[[], object] | None = None
    replay: Callable[[], object] | None = None
    no_graph: str = ""

    def eager(self, count: int) -> tuple[list[float], list[float]]:
        """The times (from idle to done, until Python continues) of each of `count` calls."""
        whole, enqueue = [], []
        with _undisturbed():
            for _ in range(count):
                self._idle()
                begun = time.perf_counter_ns()
                self.launch()
                gone_on = time.perf_counter_ns()
                self.wait()
                whole.append((time.perf_counter_ns() - begun) / 1e9)
                enqueue.append((gone_on - begun) / 1e9)
        return whole, enqueue

    def graph(self, count: int) -> list[float]:
        """The times from idle to done of each of `count` launches of the graph. Only where `replay` is not None."""
        assert self.replay is not None
        times = []
        with _undisturbed():
            for _ in range(count):
                self._idle()
                begun = time.perf_counter_ns()
                self.replay()
                self.wait()
                times.append((time.perf_counter_ns() - begun) / 1e9)
        return times

    def back_to_back(self, count: int) -> float:
        """The time of one of `count` back-to-back eager calls: from the first launch to the last end, divided by `count`.

        Inputs that the call declares it changes are not restored in between, so that the loop contains only the calls.
        """
        launch = self.launch
        with _undisturbed():
            self._idle()
            begun = time.perf_counter_ns()
            for _ in range(count):
                launch()
            self.wait()
            return (time.perf_counter_ns() - begun) / count / 1e9

    def _idle(self) -> None:
        if self.restore is not None:
            self.restore()
        self.wait()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Disable the garbage collector, which would interrupt some calls for milliseconds; it runs between blocks instead."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
