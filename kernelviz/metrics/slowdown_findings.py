"""What can make B slower than A, as tagged values with both sides, by topic. `kernelviz.text.slowdown` has the text.

Where A is the slower side, the same findings are told from A to B (`metrics/speedup.py`); `side` says which side a finding is of.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from kernelviz.core import Failure
from kernelviz.core.code_changes import CodeChange, CodeSide

Topic = Literal["kernels", "precondition", "spills", "occupancy", "error", "clock", "environment"]
TOPICS: tuple[Topic, ...] = get_args(Topic)
Status = Literal["differs", "same", "unknown"]
Unknown = Literal["not_read", "no_launches", "no_machine_code", "no_occupancy", "no_accuracy", "no_clock", "no_time"]
"""Why a topic is unknown: machine code is not read while a run goes on, no launch was traced, a side has no machine code here,
its occupancy cannot be computed, its error was not measured or is infinite, the device has no clock counter, or B has no time."""
EnvironmentPart = Literal["device", "card", "driver", "python", "kernelviz", "threads", "package"]


@dataclass(frozen=True, slots=True)
class NoCorrectTime:
    """B has no correct time: it was refused, failed, or is wrong."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class OtherKernels:
    """Kernels that only one side launches, by name. `same_source`: the source of the variant is the same, so that it chose
    another kernel for the same problem; None if that is unknown."""

    a: tuple[str, ...]
    b: tuple[str, ...]
    same_source: bool | None = None


@dataclass(frozen=True, slots=True)
class OtherMachineCode:
    """Both sides launch kernels of the same names, which were compiled to other machine code."""


@dataclass(frozen=True, slots=True)
class OtherKernelCount:
    """B launches more kernels for a call."""

    a: int
    b: int


@dataclass(frozen=True, slots=True)
class OtherSource:
    """The source of the variant has changed."""


@dataclass(frozen=True, slots=True)
class OtherConfiguration:
    """Parameters of the configuration with other values: name, value of A, value of B (None: not a parameter of that side)."""

    parameters: tuple[tuple[str, int | None, int | None], ...]


@dataclass(frozen=True, slots=True)
class TuningNotUsed:
    """A tuning of B was not used, because it was for another version of the source or for another space."""

    another: Literal["source", "space"]
    side: CodeSide = "b"


@dataclass(frozen=True, slots=True)
class UnusualKernel:
    """At this problem, B launches another main kernel than at most of the other problems of its run, as after a fallback."""

    kernel: str
    usual: str
    problems: int
    side: CodeSide = "b"


@dataclass(frozen=True, slots=True)
class OtherGrid:
    """The same kernel with another number of blocks, or of threads in a block."""

    kernel: str
    a_blocks: int
    b_blocks: int
    a_threads: int
    b_threads: int


@dataclass(frozen=True, slots=True)
class LostInCode:
    """A change of the machine code in A's favour: narrower accesses, a technique that is gone, or spills."""

    change: CodeChange


@dataclass(frozen=True, slots=True)
class LowerOccupancy:
    """By the launches: the share of a multiprocessor's warps that the longest kernel can keep resident."""

    a_fraction: float
    b_fraction: float


@dataclass(frozen=True, slots=True)
class LargerError:
    """The relative error (L2 norm) against the float64 reference, and the largest error as a share of its bound."""

    a_relative: float | None
    b_relative: float | None
    a_of_bound: float | None
    b_of_bound: float | None


@dataclass(frozen=True, slots=True)
class LowerClock:
    """Median SM clock of the blocks of this case. `at_equal_clock`: B's time over A's as it would be at one clock."""

    a_hz: float
    b_hz: float
    at_equal_clock: float | None


@dataclass(frozen=True, slots=True)
class SlowedDown:
    """Reasons of the driver to lower the clock that were active in B and not in A."""

    reasons: tuple[str, ...]
    side: CodeSide = "b"


@dataclass(frozen=True, slots=True)
class MoreProcesses:
    """Other processes that used the device."""

    a: int
    b: int


@dataclass(frozen=True, slots=True)
class OtherEnvironment:
    """A part of the environment with another value; `name`: of a package. None: unknown."""

    part: EnvironmentPart
    name: str
    a: str | None
    b: str | None


Finding = (
    NoCorrectTime
    | OtherKernels
    | OtherMachineCode
    | OtherKernelCount
    | OtherSource
    | OtherConfiguration
    | TuningNotUsed
    | UnusualKernel
    | OtherGrid
    | LostInCode
    | LowerOccupancy
    | LargerError
    | LowerClock
    | SlowedDown
    | MoreProcesses
    | OtherEnvironment
)


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What is known of a topic. `unknown`: why something of it is unknown, also beside findings."""

    topic: Topic
    findings: tuple[Finding, ...] = ()
    unknown: Unknown | None = None

    @property
    def status(self) -> Status:
        return "differs" if self.findings else "unknown" if self.unknown else "same"
