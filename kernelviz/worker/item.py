"""What a device is asked to do, and who is told what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from kernelviz.core.events import Event
from kernelviz.core.problem import Method, Problem
from kernelviz.core.result import Result
from kernelviz.core.run import Environment
from kernelviz.core.tuning import Tuned

ItemEnd = Literal["finished", "cancelled", "interrupted"]


class Sink(Protocol):
    """Who is told what becomes of an item. Called in the supervisor's thread."""

    @property
    def cancelled(self) -> bool:
        """Has the end of the run been asked for? True stays True."""
        ...

    def begun(self, environment: Environment) -> None:
        """The worker is ready, the item is next."""
        ...

    def tell(self, event: Event) -> None: ...

    def ended(self, end: ItemEnd, message: str) -> None:
        """Nothing more will come of this item."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class SelftestAsked:
    """Which checks: all, or those whose name is, or begins with, one of `only`; `quick`: fewer repetitions of each."""

    only: tuple[str, ...] = ()
    quick: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class InspectionAsked:
    """Which case is to be looked at."""

    problem: Problem
    variant: str


@dataclass(frozen=True, kw_only=True)
class Item:
    """What is queued: one problem of a run, a selftest, an inspection, or (none of these) a calibration.

    `known_baseline`: asked, when the item's turn comes, for the baseline's result so far, when it is not among the variants
    (it was measured with the prompt ones, or before a run was resumed).
    `later`: it is done when nothing else waits on the device (figures beside device cold). `standing`: asked, when its turn
    comes, for which variants it is done; None: for all. `tuned`: the configurations of variants that were tuned for this problem.
    """

    run_id: str
    owner: str
    sink: Sink
    problem: Problem | None = None
    variants: tuple[str, ...] = ()
    baseline: str = ""
    method: Method = field(default_factory=Method)
    plugins: tuple[str, ...] = ()
    selftest: SelftestAsked | None = None
    inspection: InspectionAsked | None = None
    known_baseline: Callable[[], Result | None] | None = None
    later: bool = False
    standing: Callable[[], tuple[str, ...]] | None = None
    tuned: Mapping[str, Tuned] = field(default_factory=dict)
