"""What the process of the naive protocol is asked, and what it answers."""

from kernelviz.core import NaiveTiming, Problem
from kernelviz.core.problem import Struct


class NaiveRequest(Struct, frozen=True, kw_only=True):
    """A case. `variant` may name a configuration; `configuration`: the one that it is bound with, where it has parameters.
    `calls`: how many calls the second pair of events is around. `plugins`: files with a user's own variants."""

    device: str
    problem: Problem
    variant: str
    configuration: dict[str, int] | None = None
    calls: int
    plugins: tuple[str, ...] = ()


class NaiveAnswer(Struct, frozen=True, kw_only=True):
    """The times, or the error that the variant raised."""

    timing: NaiveTiming | None = None
    error: str = ""
