"""The result of a selftest of the instrument on a machine: checks that pass or fail, and the timeline of one measurement."""

from typing import Literal

from kernelviz.core.problem import Struct
from kernelviz.core.run import Environment

SELFTEST_SCHEMA = "kernelviz-selftest/1"

MarkKind = Literal["poison", "restore", "flush", "call", "marker"]
CheckUnit = Literal["s", "fraction", "bytes_per_s", "count", "hz"]


class Mark(Struct, frozen=True, kw_only=True):
    """One operation of the device during a block. Times are in seconds from the first mark of the timeline."""

    kind: MarkKind
    name: str
    start_s: float
    end_s: float


class Timeline(Struct, frozen=True, kw_only=True):
    """A few consecutive iterations of a real measurement, by the tracer's timestamps.

    `case` describes the measured case. `counted` are the spans that became samples, in seconds on the same scale.
    """

    case: str
    timer: str
    marks: tuple[Mark, ...]
    counted: tuple[tuple[float, float], ...]


class Check(Struct, frozen=True, kw_only=True):
    """A check of one property of the instrument on this machine.

    `passed` is None if the check cannot run on this machine; `message` then says why. `value` is compared with `limit`, both in
    `unit`. If a check has several cases, `value` is the worst of them, and `figures` contains all of them by name.
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
    """All checks of one selftest of a device, in the order in which they ran."""

    schema: str = SELFTEST_SCHEMA
    id: str
    created_at: str
    environment: Environment
    checks: tuple[Check, ...] = ()
    timeline: Timeline | None = None

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(c for c in self.checks if c.passed is False)
