"""The interface of a device's timer: prepare a call, measure blocks of samples, and time calls as a program makes them."""

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from torch import Tensor

from kernelviz.core import Kernel, LaunchMode, Note, Timer
from kernelviz.core.reasons import PersistingL2
from kernelviz.measure.timing.burst import Pace
from kernelviz.ops import Launch

T = TypeVar("T")


@dataclass(slots=True)
class BlockSamples:
    """One block: its samples in seconds in the order of measuring."""

    samples: list[float]
    busy: list[float]
    started_s: float
    clock_hz: float | None = None


class CallRaised(Exception):
    """A timed call raised an exception, which is the cause of this one. `launch`: the call."""

    def __init__(self, launch: Launch) -> None:
        super().__init__("a timed call raised an exception")
        self.launch = launch


def raised_by_call(error: BaseException) -> BaseException:
    """The exception that the timed call raised, or this one if it is no CallRaised."""
    return error.__cause__ or error if isinstance(error, CallRaised) else error


@dataclass(frozen=True, slots=True)
class BoundLaunch:
    """A launch bound to one copy of the problem's tensors, and the function that restores the inputs that it changes."""

    launch: Launch
    restore: Callable[[], object] | None = None

    def called(self) -> Tensor | tuple[Tensor, ...]:
        """What one call returns. Raises CallRaised."""
        try:
            return self.launch()
        except Exception as error:
            raise CallRaised(self.launch) from error

    def restore_inputs(self) -> None:
        """Restore the inputs that the call changes, if there are any."""
        if self.restore is not None:
            self.restore()


@dataclass(frozen=True, slots=True)
class Calls:
    """A call as a program makes it, timed by the host clock: from idle to done, until it returns, as a graph, back to back.

    `wait` returns when the device is idle. `replay` launches a graph of this one call; it is None where there are no graphs or
    the call cannot be captured (`no_graph` says why). Times in seconds; no tracer is attached.
    """

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
                try:  # costs nothing while nothing is raised
                    self.launch()
                except Exception as error:
                    raise CallRaised(self.launch) from error
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
            try:
                for _ in range(count):
                    launch()
            except Exception as error:
                raise CallRaised(launch) from error
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


class Timed(Protocol):
    """A call that is ready to be timed. The timer subtracts `correction_s` from each sample."""

    kernels: tuple[Kernel, ...]
    notes: tuple[Note, ...]
    launches: list[BoundLaunch]
    correction_s: float

    @property
    def launch_mode(self) -> LaunchMode:
        """How its calls are launched when they are timed."""

    @property
    def captured(self) -> bool:
        """Whether the call is in graphs, also if it is launched into the stream beside others."""

    def run_once(self) -> tuple[Tensor, ...]:
        """Poison the outputs, run exactly what will be timed, wait, and return the outputs of the first launch."""


def may_compile(timed: Sequence[Timed]) -> list[Timed]:
    """The calls that may have compiled something while they were timed. The replay of a graph cannot. Captured calls that run in
    the stream are returned only if no other call runs there, since they are less likely to have compiled."""
    in_stream = [one for one in timed if one.launch_mode == "stream"]
    return [one for one in in_stream if not one.captured] or in_stream


class DeviceTimer(Protocol):
    """The timing method of a device. A timer without limits of its own inherits the methods that have a body here."""

    name: Timer

    def prepare(self, first: BoundLaunch, more: Iterable[BoundLaunch] = (), *, warm: bool = False) -> Timed:
        """Make a call ready, after its first call: estimate its length, choose the samples per block, capture it.

        `more`, consumed one by one as needed, bind the same call to further copies of its tensors: the samples of a block
        rotate over the launches, and its last sample uses the first one. `warm`: each timed call follows an untimed one of the
        same launch, instead of a flush.
        """

    def refine(self, timed: Timed) -> None:
        """Measure the time that the instrument adds to each sample, to subtract it from now on (`correction_s`)."""
        return None

    def refine_like(self, timed: Timed, refined: Timed) -> None:
        """Use for `timed` what `refine` found for the same call."""
        timed.correction_s = refined.correction_s

    def launch_alike(self, timed: Sequence[Timed], beside: Sequence[Timed] = ()) -> None:
        """Launch these calls, which are to be compared, in the same way where another way would change the comparison.

        `beside`: calls that will be measured with them, as they are.
        """
        return None

    def timer_of(self, timed: Timed) -> Timer:
        """The source of this call's times: `name`, or events where the usual source would change the call."""
        return self.name

    def block_s(self, timed: Timed) -> float:
        """About how long one block takes, seconds."""

    def describe(self, timed: Timed) -> str:
        """The method of measurement as one line of text."""

    def flush(self) -> None:
        """Flush the problem's data from the caches, as before every timed call."""

    @property
    def worn(self) -> str | None:
        """The reason why this process should no longer be used for timing, or None."""
        return None

    def collect(self, rounds: Sequence[Sequence[Timed]]) -> list[list[BlockSamples]]:
        """One block of every call, round by round, in the order given. Raises when the device fails."""

    def discard(self) -> None:
        """The last batch of `collect` does not count, because something disturbed it; the next one follows a rest."""
        return None

    def sustain(self, timed: Timed, blocks: int, before_s: float, stop: Callable[[], bool]) -> list[BlockSamples]:
        """Back-to-back blocks, after at least `before_s` seconds of the same load. Fewer, or none, when stopped."""

    def calls(self, bound_launch: BoundLaunch) -> Calls:
        """The call as a program makes it, by the host's clock."""

    def waits_s(self, coming_s: float) -> float:
        """About how long `collect` would rest before more load of the same calls, in seconds."""
        return 0.0

    def rest(self, coming_s: float) -> None:
        """Wait until `coming_s` more of load fits into a burst, and count it as load."""
        return None

    def paced(self, pace: Pace, coming_s: float, work: Callable[[], T]) -> tuple[T, bool]:
        """Time calls by the host's clock: do this work, which loads the device for about `coming_s` seconds. Returns what it
        returns, and whether the device had rested before. The work follows a rest where `pace` says that these calls need one, or
        where their clock is not known yet; if their clock fell without a rest, it is done again behind one."""
        return work(), True

    def refused(self) -> PersistingL2 | None:
        """A change of the device's settings since the last query that would spoil later times, or None; it is undone now."""
        return None
