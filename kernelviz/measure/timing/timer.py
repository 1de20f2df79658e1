"""The interface of a device's timer for the rounds: prepare a call, measure blocks of samples."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from kernelviz.core import Kernel, LaunchMode, Note, Timer
from kernelviz.core.reasons import PersistingL2
from kernelviz.measure.timing.host_calls import Calls
from kernelviz.ops import Launch


@dataclass(slots=True)
class BlockSamples:
    """One block: its samples in seconds in the order of measuring."""

    samples: list[float]
    busy: list[float]
    started_s: float
    clock_hz: float | None = None


@dataclass(frozen=True, slots=True)
class BoundLaunch:
    """A launch bound to one copy of the problem's tensors, and the function that restores the inputs that it changes."""

    launch: Launch
    restore: Callable[[], object] | None = None


class Timed(Protocol):
    """A call that is ready to be timed. The timer subtracts `correction_s` from each sample."""

    launch_mode: LaunchMode
    kernels: tuple[Kernel, ...]
    notes: tuple[Note, ...]
    launches: list[BoundLaunch]
    correction_s: float

    def run_once(self) -> tuple[Tensor, ...]:
        """Poison the outputs, run exactly what will be timed, wait, and return the outputs of the first launch."""


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

    def block_s(self, timed: Timed) -> float:
        """About how long one block takes, seconds."""

    def describe(self, timed: Timed) -> str:
        """The method of measurement as one line of text."""

    def flush(self) -> None:
        """Flush the problem's data from the caches, as before every timed call."""

    @property
    def worn(self) -> str | None:
        """Why this process should no longer be used for timing, or None."""
        return None

    def collect(self, rounds: Sequence[Sequence[Timed]]) -> list[list[BlockSamples]]:
        """One block of every call, round by round, in the order given. Raises when the device fails."""

    def sustain(self, timed: Timed, blocks: int, before_s: float, stop: Callable[[], bool]) -> list[BlockSamples]:
        """Back-to-back blocks, after at least `before_s` seconds of the same load. Fewer, or none, when stopped."""

    def calls(self, bound_launch: BoundLaunch) -> Calls:
        """The call as a program makes it, by the host's clock."""

    def waits_s(self, coming_s: float) -> float:
        """About how long `rest` would wait now, seconds."""
        return 0.0

    def rest(self, coming_s: float) -> None:
        """Wait until `coming_s` more of load fits into a burst, and count it as load."""
        return None

    def refused(self) -> PersistingL2 | None:
        """A change of the device's settings since the last query that would spoil later times, or None; it is undone now."""
        return None
