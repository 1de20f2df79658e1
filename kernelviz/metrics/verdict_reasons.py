"""What a verdict rests on, and why none may be called: tagged values. `kernelviz.text.verdicts` turns them into text."""

from dataclasses import dataclass
from typing import Literal

from kernelviz.core import Clock, Data, DeviceKind, LaunchMode, Stage, Timer
from kernelviz.metrics.figures import Headline

Side = Literal["A", "B"]


@dataclass(frozen=True, slots=True)
class NoSharedRounds:
    """No round measured both; `with_baseline`: neither did any measure each of them with the baseline."""

    with_baseline: bool = True


@dataclass(frozen=True, slots=True)
class FewSharedRounds:
    rounds: int
    needed: int


@dataclass(frozen=True, slots=True)
class Clears:
    """Where the whole interval lies: below, above or inside of the noise floor."""

    where: Literal["below", "above", "inside"]


@dataclass(frozen=True, slots=True)
class FloorTooWide:
    """The interval lies inside a noise floor (a fraction) that is too wide to call the two the same."""

    floor: float


@dataclass(frozen=True, slots=True)
class Straddles:
    """The interval straddles the noise floor."""


@dataclass(frozen=True, slots=True)
class SamplesUnknown:
    """The samples of one side are not known."""

    needed: int


@dataclass(frozen=True, slots=True)
class FewBlocks:
    """One side has so few blocks."""

    blocks: int
    needed: int


DirectReason = NoSharedRounds | FewSharedRounds | Clears | FloorTooWide | Straddles | SamplesUnknown | FewBlocks


@dataclass(frozen=True, slots=True)
class ByBaseline:
    """The two share no rounds: each was compared with the baseline, and this is what came of it."""

    reason: DirectReason


VerdictReason = DirectReason | ByBaseline


@dataclass(frozen=True, slots=True)
class SameCode:
    """The same machine code ran on both sides: what differs is noise."""


@dataclass(frozen=True, slots=True)
class Failed:
    """One side has no correct time."""

    side: Side
    stage: Stage


@dataclass(frozen=True, slots=True)
class NoTime:
    """One side has no such time."""

    side: Side
    headline: Headline


@dataclass(frozen=True, slots=True)
class OtherDevices:
    before: DeviceKind
    after: DeviceKind


@dataclass(frozen=True, slots=True)
class OtherClocks:
    before: Clock | None
    after: Clock | None


@dataclass(frozen=True, slots=True)
class OtherData:
    before: Data | None
    after: Data | None


@dataclass(frozen=True, slots=True)
class OtherTimers:
    before: Timer
    after: Timer


@dataclass(frozen=True, slots=True)
class OtherLaunches:
    before: LaunchMode
    after: LaunchMode


@dataclass(frozen=True, slots=True)
class MethodUnknown:
    """It is not known on these sides how the time was taken."""

    what: Literal["timer", "launch"]
    sides: tuple[Side, ...]


@dataclass(frozen=True, slots=True)
class TracingUnknown:
    """What tracing adds is not known on these sides."""

    sides: tuple[Side, ...]


@dataclass(frozen=True, slots=True)
class TracingSubtracted:
    """What tracing adds was subtracted on one side only."""

    side: Side


@dataclass(frozen=True, slots=True)
class OneMeasurement:
    """Both sides are one measurement."""


Incomparable = (
    Failed
    | NoTime
    | OtherDevices
    | OtherClocks
    | OtherData
    | OtherTimers
    | OtherLaunches
    | MethodUnknown
    | TracingUnknown
    | TracingSubtracted
    | OneMeasurement
)
PairReason = VerdictReason | SameCode | Incomparable
