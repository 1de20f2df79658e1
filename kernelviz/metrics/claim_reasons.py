"""The reasons of the verdicts on published claims, as tagged values. `kernelviz.text.claims` has the text."""

from dataclasses import dataclass
from typing import Literal

from kernelviz.core import DeviceKind, Failure
from kernelviz.core.reasons import Refusal
from kernelviz.metrics.quality import Part
from kernelviz.metrics.verdict_reasons import VerdictReason

ClaimVerdict = Literal["holds", "does not hold", "wrong result", "unclear", "not measured yet", "cannot be tested here"]
"""In the order in which counts list them."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The whole interval meets the claim, with its tolerance."""


@dataclass(frozen=True, slots=True)
class Missed:
    """The whole interval is below or above what the claim allows."""

    side: Literal["below", "above"]


@dataclass(frozen=True, slots=True)
class Straddling:
    """The interval contains the limit of what the claim allows."""


@dataclass(frozen=True, slots=True)
class WithoutInterval:
    """The number has no interval: too few blocks, or two levels. `reason`: of the verdict on two times, where there is one."""

    reason: VerdictReason | None = None


@dataclass(frozen=True, slots=True)
class Unreliable:
    """The quality of a time that counts is suspect: it may be wrong by more than its interval. `part`: why."""

    variant: str
    part: Part


@dataclass(frozen=True, slots=True)
class TooWide:
    """The interval of the number is so wide that something disturbed the measurement. `half_width`: a fraction."""

    half_width: float


@dataclass(frozen=True, slots=True)
class Decided:
    """The verdict on two times decides a claim without a number. `kind`: of `case` against the fastest of the others."""

    kind: Literal["faster", "slower", "same", "unclear"]
    reason: VerdictReason


@dataclass(frozen=True, slots=True)
class Wrong:
    """The outputs of the variant are wrong, or its time is impossible, for the reasons of the failure. `caption`: that of the
    variant, which names the mistake; empty if it is not known."""

    variant: str
    failure: Failure
    caption: str = ""


@dataclass(frozen=True, slots=True)
class CaseFailed:
    """A case that the claim needs has no time: it does not compile, does not fit, or crashed."""

    variant: str
    failure: Failure


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """So many of the cases that the claim needs have no result yet (or lack the figure)."""

    cases: int


@dataclass(frozen=True, slots=True)
class NotCalibrated:
    """The device has no measured roof of that kind."""


@dataclass(frozen=True, slots=True)
class MemoryUnknown:
    """The result has no peak memory, because it was measured before kernelviz read it."""


@dataclass(frozen=True, slots=True)
class NoDataSheet:
    """No data sheet of that card, or none that states the value."""

    card: str


@dataclass(frozen=True, slots=True)
class NeedsWork:
    """Nothing here tests it. `takes`: what it would take."""

    takes: str


@dataclass(frozen=True, slots=True)
class NeedsKind:
    """The claim is about the other kind of device."""

    kind: DeviceKind


@dataclass(frozen=True, slots=True)
class NeedsCard:
    """The claim is about one of these cards."""

    cards: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NeedsCapability:
    """The claim needs that compute capability or a later one."""

    capability: tuple[int, int]


@dataclass(frozen=True, slots=True)
class NeedsGpus:
    """The claim needs so many GPUs."""

    gpus: int


@dataclass(frozen=True, slots=True)
class NeedsMemory:
    """The claim needs so much memory of the device."""

    memory_bytes: int


@dataclass(frozen=True, slots=True)
class NeedsVariant:
    """The catalogue has no such op or variant."""

    op: str
    variant: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The variant cannot run on the device, or does not take the problem."""

    variant: str
    reason: Refusal


Obstacle = (
    NeedsWork
    | NeedsKind
    | NeedsCard
    | NeedsCapability
    | NeedsGpus
    | NeedsMemory
    | NeedsVariant
    | Refused
    | CaseFailed
    | MemoryUnknown
    | NoDataSheet
)
"""Why a claim cannot be tested on a device."""
ClaimReason = (
    Reached
    | Missed
    | Straddling
    | WithoutInterval
    | Unreliable
    | TooWide
    | Decided
    | Wrong
    | NotMeasured
    | NotCalibrated
    | Obstacle
)
