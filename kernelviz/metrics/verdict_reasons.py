"""The reasons of verdicts, and the reasons why there is no verdict, as tagged values. `kernelviz.text.verdicts` has the text."""

from dataclasses import dataclass
from typing import Literal

from kernelviz.core import Stage
from kernelviz.metrics.headline import Headline

Side = Literal["A", "B"]
MethodPart = Literal["device", "clock", "load", "data", "timer", "launch"]


@dataclass(frozen=True, slots=True)
class NoSharedRounds:
    """No round measured both. `with_baseline`: False if there are no rounds of each of them with the baseline either."""

    with_baseline: bool = True


@dataclass(frozen=True, slots=True)
class FewSharedRounds:
    """Fewer rounds measured both than an interval needs."""

    rounds: int
    needed: int


@dataclass(frozen=True, slots=True)
class Clears:
    """The whole interval is below, above or inside the noise floor (a fraction)."""

    where: Literal["below", "above", "inside"]
    floor: float


@dataclass(frozen=True, slots=True)
class FloorTooWide:
    """The interval is inside a noise floor (a fraction) that is too wide to call the two the same."""

    floor: float


@dataclass(frozen=True, slots=True)
class Straddles:
    """The interval is partly inside the noise floor (a fraction)."""

    floor: float


@dataclass(frozen=True, slots=True)
class FewBlocks:
    """One side has too few blocks; None: its samples are unknown."""

    blocks: int | None
    needed: int


@dataclass(frozen=True, slots=True)
class NotStable:
    """One of the times has two levels, and which of the two times is shorter depends on the level."""


@dataclass(frozen=True, slots=True)
class OtherLaunch:
    """One call was timed in a graph and the other in the stream, which alone can change the ratio by this fraction."""

    floor: float


DirectReason = (
    NoSharedRounds | FewSharedRounds | Clears | FloorTooWide | Straddles | FewBlocks | NotStable | OtherLaunch
)


@dataclass(frozen=True, slots=True)
class ByBaseline:
    """The two share no rounds, so each was compared with the baseline; this is the reason of the result."""

    reason: DirectReason


@dataclass(frozen=True, slots=True)
class Apart:
    """The two were measured in processes of their own, as untrusted variants are, so no round measured both."""

    reason: DirectReason


VerdictReason = DirectReason | ByBaseline | Apart


@dataclass(frozen=True, slots=True)
class SameCode:
    """Both sides used the same machine code, so the difference is noise."""


@dataclass(frozen=True, slots=True)
class Failed:
    """One side has no correct time."""

    side: Side
    stage: Stage


@dataclass(frozen=True, slots=True)
class NoTime:
    """One side or both have no such time."""

    sides: tuple[Side, ...]
    headline: Headline


@dataclass(frozen=True, slots=True)
class OtherMethod:
    """The two sides were measured by different methods. None means unknown."""

    what: MethodPart
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class MethodUnknown:
    """On these sides it is unknown how the time was measured."""

    what: MethodPart
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


@dataclass(frozen=True, slots=True)
class OtherTool:
    """Another tool measured both sides, and its files have this time without samples: the ratio is known, its interval is not."""

    time: str


Incomparable = (
    Failed | NoTime | OtherMethod | MethodUnknown | TracingUnknown | TracingSubtracted | OneMeasurement | OtherTool
)
PairReason = VerdictReason | SameCode | Incomparable
