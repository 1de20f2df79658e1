"""What the rounds need of a device's timer, whatever the device: prepare a call, take blocks of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from kernelviz.core.result import Kernel, LaunchMode, Timer
from kernelviz.ops import Launch


@dataclass(slots=True)
class Taken:
    """One block: samples in seconds in the order in which they were taken."""

    samples: list[float]
    busy: list[float]
    started_s: float
    clock_hz: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A launch bound to tensors at one place in memory, and what restores the inputs that it changes."""

    launch: Launch
    restore: Callable[[], None] | None = None


class Timed(Protocol):
    """A call that is ready to be timed."""

    launch_mode: LaunchMode
    kernels: tuple[Kernel, ...]
    notes: tuple[str, ...]

    def run_once(self) -> tuple[Tensor, ...]:
        """Poison the outputs, run exactly what will be timed, wait, and return what it wrote at the first place."""
        ...


class DeviceTimer(Protocol):
    """The timing method of a device."""

    name: Timer

    def prepare(self, first: Place, others: Iterable[Place] = ()) -> Timed:
        """Make a call ready: estimate its length, choose the samples a block, capture it. Its first call is over by now.

        `others`, taken one by one as they are needed, bind the same call to tensors elsewhere in memory: the samples of a
        block go round the places, and its last sample is at the first.
        """
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

    def collect(self, rounds: Sequence[Sequence[Timed]]) -> list[list[Taken]]:
        """One block of every call, round by round, in the order given. Raises when the device fails."""
        ...
