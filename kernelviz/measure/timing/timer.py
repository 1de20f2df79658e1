"""What the rounds need of a device's timer, whatever the device: prepare a call, take blocks of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from kernelviz.core.notes import Note
from kernelviz.core.reasons import PersistingL2
from kernelviz.core.result import Kernel, LaunchMode, Timer
from kernelviz.measure.timing.host_calls import Calls
from kernelviz.ops import Launch


@dataclass(slots=True)
class BlockSamples:
    """One block: samples in seconds in the order in which they were taken."""

    samples: list[float]
    busy: list[float]
    started_s: float
    clock_hz: float | None = None


@dataclass(frozen=True, slots=True)
class BoundLaunch:
    """A launch bound to tensors at one place in memory, and what restores the inputs that it changes."""

    launch: Launch
    restore: Callable[[], None] | None = None


class Timed(Protocol):
    """A call that is ready to be timed. `correction_s` is taken off each sample by the timer; 0 where nothing is."""

    launch_mode: LaunchMode
    kernels: tuple[Kernel, ...]
    notes: tuple[Note, ...]
    launches: list[BoundLaunch]
    correction_s: float

    def run_once(self) -> tuple[Tensor, ...]:
        """Poison the outputs, run exactly what will be timed, wait, and return what it wrote at the first place."""
        ...


class DeviceTimer(Protocol):
    """The timing method of a device."""

    name: Timer

    def prepare(self, first: BoundLaunch, more: Iterable[BoundLaunch] = (), *, warm: bool = False) -> Timed:
        """Make a call ready: estimate its length, choose the samples a block, capture it. Its first call is over by now.

        `others`, taken one by one as they are needed, bind the same call to tensors elsewhere in memory: the samples of a
        block go round the places, and its last sample is at the first. `warm`: each timed call follows an untimed one of the
        same place, instead of a flush.
        """
        ...

    def refine(self, timed: Timed) -> None:
        """Find out what the instrument itself adds to each sample, to be taken off from now on (`correction_s`)."""
        ...

    def block_s(self, timed: Timed) -> float:
        """About how long one block takes, seconds."""
        ...

    def describe(self, timed: Timed) -> str:
        """The method in one line, for people."""
        ...

    def flush(self) -> None:
        """Empty the caches of the problem's data, as before every timed call."""
        ...

    @property
    def worn(self) -> str | None:
        """Why this process should no longer be used for timing, or None."""
        ...

    def collect(self, rounds: Sequence[Sequence[Timed]]) -> list[list[BlockSamples]]:
        """One block of every call, round by round, in the order given. Raises when the device fails."""
        ...

    def sustain(self, timed: Timed, blocks: int, before_s: float, stop: Callable[[], bool]) -> list[BlockSamples]:
        """Blocks back to back, behind at least `before_s` seconds of the same load. Fewer, or none, when stopped."""
        ...

    def calls(self, bound_launch: BoundLaunch) -> Calls:
        """The call as a program makes it, by the host's clock."""
        ...

    def waits_s(self, coming_s: float) -> float:
        """How long `rest` would wait now, about, seconds."""
        ...

    def rest(self, coming_s: float) -> None:
        """Wait until so much more load fits into what burst measuring allows; it counts as taken then."""
        ...

    def refused(self) -> PersistingL2 | None:
        """What was done to the device since the last time it was asked that would spoil later times; undone by now."""
        ...
