"""What the instrument found when it was tested on a machine: checks with pass or fail, and the picture of one measurement."""

from typing import Literal

from kernelviz.core.problem import Struct
from kernelviz.core.run import Environment

SELFTEST_SCHEMA = "kernelviz-selftest/1"

MarkKind = Literal["poison", "restore", "flush", "call", "marker"]
CheckUnit = Literal["s", "fraction", "bytes_per_s", "count", "hz"]


class Mark(Struct, frozen=True, kw_only=True):
    """One thing that the device did while a block was taken. Seconds from the first mark of its timeline."""

    kind: MarkKind
    name: str
    start_s: float
    end_s: float


class Timeline(Struct, frozen=True, kw_only=True):
    """A few consecutive iterations of a real measurement, by the tracer's own stamps.

    `case` is what was measured, in words; `counted` are the spans that became samples, seconds on the same scale.
    """

    case: str
    timer: str
    marks: tuple[Mark, ...]
    counted: tuple[tuple[float, float], ...]


class Check(Struct, frozen=True, kw_only=True):
    """One claim about the instrument, put to the test here.

    `passed` is None when it could not be made on this machine, and `message` then says why. `value` is compared with
    `limit` (both in `unit`); a check of several cases has its worst one here and all of them in `figures`, by name.
    """

    name: str
    question: str
    passed: bool | None
    value: float | None = None
    limit: float | None = None
    unit: CheckUnit | None = None
    at_most: bool = True
    message: str = ""
    figures: dict[str, float] = {}
    took_s: float | None = None


class Selftest(Struct, frozen=True, kw_only=True):
    """All checks of one go on one device, in the order in which they were made."""

    schema: str = SELFTEST_SCHEMA
    id: str
    created_at: str
    environment: Environment
    checks: tuple[Check, ...] = ()
    timeline: Timeline | None = None

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(c for c in self.checks if c.passed is False)
