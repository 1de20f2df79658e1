"""The answer of the limiter and its evidence, as data. `kernelviz.text.limiter` turns them into text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kernelviz.core import Roof
from kernelviz.metrics.occupancy import ResidencyLimit

LimiterKind = Literal["launch", "latency", "bandwidth", "L2", "compute", "issue", "unclear"]
EvidenceKind = Literal[
    "one_launch", "launches", "launches_and_gaps", "faster_than_memory", "share_of_l2", "moved", "computed", "chain", "fused",
    "few_blocks", "uneven_blocks", "low_occupancy", "small_grid", "few_in_flight", "too_short", "short_wave", "queued_wave",
    "warm_is_faster",
    "occupancy", "occupancy_and_waves", "enough_in_flight", "host_bound", "capped_clock", "low_clock", "other_empty_kernel",
    "one_call", "rest_unexplained", "moved_least", "counted_dram", "counted_l2", "busy_pipe", "busy_issue", "waiting_warps",
    "usual_occupancy",
]  # fmt: skip
MissingKind = Literal["device_time", "gpu", "empty_kernel", "cost", "bandwidth", "compute_rate", "resources"]


Values = Mapping[str, float | str | Roof | ResidencyLimit]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A fact that supports the answer. The names of its `values` end with their units; a roof is a value, too."""

    kind: EvidenceKind
    values: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Missing:
    """A fact that a rule needs and that is unknown. `which`: the headline or the precision that it is about."""

    kind: MissingKind
    which: str = ""


@dataclass(frozen=True, slots=True)
class Limiter:
    """The answer, its evidence (the deciding fact first), and the facts that are missing for a better answer."""

    kind: LimiterKind
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[Missing, ...] = ()
